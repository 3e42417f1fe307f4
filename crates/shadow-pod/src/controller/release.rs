//! Deleting pods, and letting go of pods and ShadowPods.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use spillway_api::k8s::Namespace;
use spillway_api::offloading::{ShadowPod, ShadowPodStatus};
use spillway_api::well_known::{annotation, finalizer};
use spillway_operator::error::{RequestError, found, is_not_found, only, settled, while_trying};
use spillway_operator::{Action, ObjectKey};

use super::Controller;
use crate::digest::ShadowDigest;

/// A consumer that has not come back by then for what became of its pod is not waited for.
const NOTED_WITHIN: SignedDuration = SignedDuration::from_hours(24);
const LOOK_AGAIN: Duration = Duration::from_secs(30);

impl Controller {
    pub(super) async fn delete_pod(
        &self,
        key: &ObjectKey,
        uid: String,
        grace_seconds: Option<u32>,
    ) -> Result<(), RequestError> {
        let params = DeleteParams {
            grace_period_seconds: grace_seconds,
            preconditions: Some(only(uid)),
            ..DeleteParams::default()
        };
        settled(self.pods_in(key).delete(&key.name, &params).await).map_err(while_trying("delete the pod"))
    }

    pub(super) async fn release_pod(&self, key: &ObjectKey, uid: &str) -> Result<(), RequestError> {
        let patch = json!({"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [finalizer::OUTCOME]}});
        let patched =
            self.pods_in(key).patch_metadata(&key.name, &PatchParams::default(), &Patch::Strategic(patch)).await;
        settled(patched).map_err(while_trying("release the pod"))
    }

    /// An outcome waits for its consumer, which lets the ShadowPod go when it has taken note of it; but not for ever, and not
    /// in a namespace that goes anyway.
    pub(super) async fn release_unnoted(
        &self,
        key: &ObjectKey,
        shadow: &ShadowDigest,
        now: Timestamp,
    ) -> Result<Action, RequestError> {
        let waited = shadow.deletion.map(|deletion| now.duration_since(deletion.requested)).unwrap_or_default();
        if waited < NOTED_WITHIN && !self.is_terminating(&key.namespace).await? {
            if waited.unsigned_abs() >= LOOK_AGAIN && shadow.status.message.is_none() {
                let message = "kept until its consumer has taken note of the outcome, or for a day";
                let status = ShadowPodStatus { message: Some(message.to_owned()), ..shadow.status.clone() };
                self.write_status(key, shadow, &status).await?;
            }
            return Ok(Action::LookAgain(LOOK_AGAIN));
        }
        self.set_guard(key, shadow, false).await?;
        Ok(Action::Await)
    }

    async fn is_terminating(&self, namespace: &str) -> Result<bool, RequestError> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let read = found(namespaces.get_metadata(namespace).await).map_err(while_trying("look at the namespace"))?;
        Ok(read.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()))
    }

    /// A watch that lags behind must let no pod be lost: the API server is asked first.
    pub(super) async fn delete_orphan(
        &self,
        key: &ObjectKey,
        uid: String,
        origin_uid: Option<String>,
    ) -> Result<(), RequestError> {
        match self.shadow_now(key).await? {
            Some(shadow) if is_for(&shadow, &origin_uid) => Ok(()), // its event is on the way
            _ => {
                tracing::info!(%key, uid, "pod deleted that its ShadowPod left behind");
                self.delete_pod(key, uid, None).await
            }
        }
    }

    /// Nor an outcome.
    pub(super) async fn release_orphan(
        &self,
        key: &ObjectKey,
        uid: &str,
        owner: &str,
        origin_uid: Option<String>,
    ) -> Result<(), RequestError> {
        match self.shadow_now(key).await? {
            Some(shadow) if shadow.uid().as_deref() == Some(owner) => Ok(()), // its event is on the way
            Some(shadow) if owner.is_empty() && is_for(&shadow, &origin_uid) => Ok(()),
            _ => self.release_pod(key, uid).await,
        }
    }

    async fn shadow_now(&self, key: &ObjectKey) -> Result<Option<ShadowPod>, RequestError> {
        found(self.shadows_in(key).get(&key.name).await).map_err(while_trying("look for the ShadowPod"))
    }

    /// Adds or takes away our finalizer. The list has no merge key, so the resource version guards the others.
    pub(super) async fn set_guard(
        &self,
        key: &ObjectKey,
        shadow: &ShadowDigest,
        guard: bool,
    ) -> Result<(), RequestError> {
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
}

/// Whether it stands for the local pod of that UID.
fn is_for(shadow: &ShadowPod, origin_uid: &Option<String>) -> bool {
    origin_uid.is_some() && shadow.annotations().get(annotation::ORIGIN_UID) == origin_uid.as_ref()
}
