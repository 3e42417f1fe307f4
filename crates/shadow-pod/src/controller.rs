//! Carries out the plan: the only place with a client.

use std::sync::Arc;

use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, TestOperation};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use spillway_api::RawPod;
use spillway_api::offloading::{ShadowPod, ShadowPodPhase, ShadowPodStatus};
use spillway_api::well_known::{field_manager, finalizer};
use spillway_operator::error::{RequestError, found, is_conflict, is_not_found, only, settled, while_trying, words};
use spillway_operator::{Action, Categorised, Category, Index, ObjectKey};

use crate::digest::{PodDigest, ShadowDigest};
use crate::forge;
use crate::plan::{Step, plan};

pub struct Controller {
    pub client: Client,
    pub shadows: Arc<Index<ShadowDigest>>,
    pub pods: Arc<Index<PodDigest>>,
}

impl Controller {
    /// Both indexes must be complete before the first call: absence is acted upon.
    pub async fn reconcile(&self, key: ObjectKey) -> Result<Action, RequestError> {
        let (shadow, pod) = (self.shadows.get(&key), self.pods.get(&key));
        let shadow = shadow.as_deref();
        match (plan(shadow, pod.as_deref(), Timestamp::now()), shadow) {
            (Step::Wait(delay), _) => return Ok(Action::LookAgain(delay)),
            (Step::DeletePod { uid, grace_seconds }, _) => self.delete_pod(&key, uid, grace_seconds).await?,
            (Step::ReleasePod { uid }, _) => self.release_pod(&key, &uid).await?,
            (Step::ReleaseOrphan { uid, owner }, _) => self.release_orphan(&key, &uid, &owner).await?,
            (Step::CreatePod, Some(shadow)) => self.create_pod(&key, shadow).await?,
            (Step::ReleaseShadow, Some(shadow)) => self.set_guard(&key, shadow, false).await?,
            (Step::GuardShadow, Some(shadow)) => self.set_guard(&key, shadow, true).await?,
            (Step::WriteStatus(status), Some(shadow)) => self.write_status(&key, &shadow.uid, &status).await?,
            (Step::Nothing, _) | (_, None) => {}
        }
        Ok(Action::Await)
    }

    async fn create_pod(&self, key: &ObjectKey, shadow: &ShadowDigest) -> Result<(), RequestError> {
        let pod = match &shadow.pod {
            Some(pod) => pod.clone(),
            None => {
                let read =
                    found(self.shadows_in(key).get(&key.name).await).map_err(while_trying("read the ShadowPod"))?;
                match read.filter(|read| read.uid().as_ref() == Some(&shadow.uid)) {
                    Some(read) => forge::pod(&read),
                    None => return Ok(()), // deleted meanwhile: its event is on the way
                }
            }
        };
        match self.pods_in(key).create(&params(), &pod).await {
            Ok(created) => {
                tracing::info!(%key, uid = created.uid(), recreation = shadow.status.pod_uid.is_some(), "pod created");
                // It can't go without this controller, which holds its finalizer: no removal can have been missed.
                if let Some(digest) = crate::digest::pod(created) {
                    self.pods.insert_absent(key.clone(), digest);
                }
                Ok(())
            }
            Err(error) if is_conflict(&error) => self.name_taken(key, shadow, error).await,
            Err(error) => {
                if error.category() == Category::Permanent {
                    self.report(key, shadow, "PodRefused", words(&error)).await?;
                }
                Err(while_trying("create the pod")(error))
            }
        }
    }

    /// The name is in use: by our own pod that the watch has not shown yet, or by one that is none of ours.
    async fn name_taken(&self, key: &ObjectKey, shadow: &ShadowDigest, error: kube::Error) -> Result<(), RequestError> {
        let there = found(self.pods_in(key).get(&key.name).await).map_err(while_trying("read the pod of that name"))?;
        match there.map(|pod| crate::digest::pod(pod).map(|pod| pod.owner)) {
            Some(Some(owner)) if owner == shadow.uid => Ok(()),
            // Of a former ShadowPod and on its way out, or gone already, or a conflict about something else.
            Some(Some(_)) | None => Err(while_trying("create the pod")(error)),
            Some(None) => {
                let message = format!(
                    "a pod named {} that Spillway does not manage is in the way; rename or delete it",
                    key.name
                );
                self.report(key, shadow, "PodNameTaken", message).await?;
                Err(while_trying("create the pod")(error))
            }
        }
    }

    /// Says on the ShadowPod why its pod is not there; once.
    async fn report(
        &self,
        key: &ObjectKey,
        shadow: &ShadowDigest,
        reason: &str,
        message: String,
    ) -> Result<(), RequestError> {
        let status = ShadowPodStatus {
            phase: ShadowPodPhase::Pending,
            reason: Some(reason.to_owned()),
            message: Some(message),
            observed_generation: shadow.generation,
            ..shadow.status.clone()
        };
        if status == shadow.status {
            return Ok(());
        }
        self.write_status(key, &shadow.uid, &status).await
    }

    async fn delete_pod(&self, key: &ObjectKey, uid: String, grace_seconds: Option<u32>) -> Result<(), RequestError> {
        let params = DeleteParams {
            grace_period_seconds: grace_seconds,
            preconditions: Some(only(uid)),
            ..DeleteParams::default()
        };
        settled(self.pods_in(key).delete(&key.name, &params).await).map_err(while_trying("delete the pod"))
    }

    async fn release_pod(&self, key: &ObjectKey, uid: &str) -> Result<(), RequestError> {
        let patch = json!({"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [finalizer::OUTCOME]}});
        let patched =
            self.pods_in(key).patch_metadata(&key.name, &PatchParams::default(), &Patch::Strategic(patch)).await;
        settled(patched).map_err(while_trying("release the pod"))
    }

    /// A watch that lags behind must not let an outcome be lost: the API server is asked first.
    async fn release_orphan(&self, key: &ObjectKey, uid: &str, owner: &str) -> Result<(), RequestError> {
        let shadow =
            found(self.shadows_in(key).get(&key.name).await).map_err(while_trying("look for the ShadowPod"))?;
        match shadow {
            Some(shadow) if shadow.uid().as_deref() == Some(owner) => Ok(()), // its event is on the way
            _ => self.release_pod(key, uid).await,
        }
    }

    /// Adds or takes away our finalizer. The list has no merge key, so the resource version guards the others.
    async fn set_guard(&self, key: &ObjectKey, shadow: &ShadowDigest, guard: bool) -> Result<(), RequestError> {
        let others = shadow.finalizers.iter().map(String::as_str).filter(|name| *name != finalizer::SHADOW_POD);
        let finalizers: Vec<_> = others.chain(guard.then_some(finalizer::SHADOW_POD)).collect();
        let patch = json!({"metadata": {
            "uid": shadow.uid, "resourceVersion": shadow.resource_version, "finalizers": finalizers,
        }});
        let patched =
            self.shadows_in(key).patch_metadata(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        match patched {
            Err(error) if is_not_found(&error) => Ok(()),
            patched => patched.map(drop).map_err(while_trying("change the finalizers of the ShadowPod")),
        }
    }

    async fn write_status(&self, key: &ObjectKey, uid: &str, status: &ShadowPodStatus) -> Result<(), RequestError> {
        // A merge patch of a custom resource's status ignores the UID; only a test keeps the outcome of a former life away
        // from a new ShadowPod of the same name. The status has one writer, so it is replaced whole.
        let patch = [
            PatchOperation::Test(TestOperation { path: pointer(["metadata", "uid"]), value: json!(uid) }),
            PatchOperation::Add(AddOperation { path: pointer(["status"]), value: json!(status) }),
        ];
        let patch = Patch::Json::<()>(json_patch::Patch(patch.into()));
        let patched = self.shadows_in(key).patch_status(&key.name, &PatchParams::default(), &patch).await;
        settled(patched).map_err(while_trying("write the status of the ShadowPod"))
    }

    fn pods_in(&self, key: &ObjectKey) -> Api<RawPod> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    fn shadows_in(&self, key: &ObjectKey) -> Api<ShadowPod> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

fn pointer<const N: usize>(path: [&str; N]) -> PointerBuf {
    PointerBuf::from_tokens(path)
}

fn params() -> PostParams {
    PostParams { field_manager: Some(field_manager::SHADOW_POD.to_owned()), ..PostParams::default() }
}
