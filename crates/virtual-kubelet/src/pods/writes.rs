//! The writes that a pod's plan asks for, on both sides.

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use spillway_api::offloading::ShadowPod;
use spillway_api::well_known::{annotation, field_manager};
use spillway_api::{RawObject, RawPod};
use spillway_operator::ObjectKey;
use spillway_operator::error::{RequestError, found, only, settled, while_trying};

use super::digest::Held;
use super::forge::{self, Context, Refusal};

/// The seconds that what is left of a former life has to end: nobody waits for it any more but its successor.
const GRACE_OF_A_FORMER_LIFE: i64 = 1;

pub struct Writes {
    pub home: Client,
    pub away: Client,
}

impl Writes {
    pub async fn create_shadow(&self, away: &ObjectKey, shadow: &ShadowPod) -> kube::Result<()> {
        let params =
            PostParams { field_manager: Some(field_manager::VIRTUAL_KUBELET.to_owned()), ..PostParams::default() };
        self.shadows_away(away).create(&params, shadow).await.map(drop)
    }

    /// Carries over what changed of a running pod, or says why it can't be. Seldom, so both objects are read: no index keeps
    /// them whole.
    pub async fn update_shadow(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        local_uid: &str,
        context: &Context,
    ) -> kube::Result<Option<Refusal>> {
        let Some(pod) = self.local(home, local_uid).await? else { return Ok(None) };
        let Some(there) = found(self.shadows_away(away).get(&away.name).await)? else { return Ok(None) };
        if there.annotations().get(annotation::ORIGIN_UID).is_some_and(|uid| uid != local_uid) {
            return Ok(None); // of another life: its event is on the way
        }
        let wanted = match forge::shadow_pod(&pod, context) {
            Ok(wanted) => wanted,
            Err(refusal) => return Ok(Some(refusal)),
        };
        let patch = Patch::Merge(forge::update::patch(&there, &wanted));
        tracing::info!(pod = %home, shadow = %away, "carrying over what changed of the pod");
        settled(self.shadows_away(away).patch(&away.name, &params(), &patch).await).map(|()| None)
    }

    /// The pod, if it is still the one that was meant.
    pub async fn local(&self, home: &ObjectKey, uid: &str) -> kube::Result<Option<RawPod>> {
        let read = found(self.pods_at_home(home).get(&home.name).await)?;
        Ok(read.filter(|read| read.uid().as_deref() == Some(uid)))
    }

    pub async fn delete_shadow(&self, away: &ObjectKey, uid: String, grace: Option<i64>) -> Result<(), RequestError> {
        if let Some(grace) = grace {
            self.pass_on_grace(away, &uid, grace).await?;
        }
        let params = DeleteParams { preconditions: Some(only(uid)), ..DeleteParams::default() };
        settled(self.shadows_away(away).delete(&away.name, &params).await).map_err(while_trying("delete the ShadowPod"))
    }

    /// A watch that lags behind must not cost a living pod its twin: the API server is asked first.
    pub async fn delete_former(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        uid: String,
        origin_uid: Option<String>,
    ) -> Result<(), RequestError> {
        if self.is_alive(home, &origin_uid).await? {
            return Ok(()); // its event is on the way
        }
        self.delete_shadow(away, uid, Some(GRACE_OF_A_FORMER_LIFE)).await
    }

    /// Lets a ShadowPod go whose outcome nobody waits for any more: it was noted (`noted`), or its local pod is gone.
    pub async fn release_shadow(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        step: (String, Option<String>, Held),
        noted: bool,
    ) -> Result<(), RequestError> {
        let (uid, origin_uid, held) = step;
        if !noted && self.is_alive(home, &origin_uid).await? {
            return Ok(());
        }
        let patch = json!({"metadata": {
            "uid": uid, "resourceVersion": held.resource_version, "finalizers": held.others,
        }});
        let patched = self.shadows_away(away).patch_metadata(&away.name, &params(), &Patch::Merge(patch)).await;
        settled(patched).map_err(while_trying("let the ShadowPod go"))
    }

    async fn is_alive(&self, home: &ObjectKey, uid: &Option<String>) -> Result<bool, RequestError> {
        let local = found(self.pods_at_home(home).get(&home.name).await).map_err(while_trying("look for the pod"))?;
        Ok(uid.is_some() && local.and_then(|pod| pod.uid()) == *uid)
    }

    pub async fn pass_on_grace(&self, away: &ObjectKey, uid: &str, grace: i64) -> Result<(), RequestError> {
        let annotations = json!({annotation::DELETION_GRACE_SECONDS: grace.max(0).to_string()});
        let patch = Patch::Merge(json!({"metadata": {"uid": uid, "annotations": annotations}}));
        let patched = self.shadows_away(away).patch_metadata(&away.name, &params(), &patch).await;
        settled(patched).map_err(while_trying("pass on the grace period"))
    }

    pub async fn finish_local(&self, home: &ObjectKey, uid: String) -> Result<(), RequestError> {
        let params =
            DeleteParams { grace_period_seconds: Some(0), preconditions: Some(only(uid)), ..DeleteParams::default() };
        settled(self.pods_at_home(home).delete(&home.name, &params).await).map_err(while_trying("finish the pod"))
    }

    pub async fn write_status(&self, home: &ObjectKey, uid: &str, status: RawObject) -> Result<(), RequestError> {
        let patch = Patch::Strategic(json!({"metadata": {"uid": uid}, "status": status}));
        let patched = self.pods_at_home(home).patch_status(&home.name, &params(), &patch).await;
        settled(patched).map_err(while_trying("write the pod's status"))
    }

    pub async fn shadow(&self, away: &ObjectKey) -> Result<Option<ShadowPod>, RequestError> {
        found(self.shadows_away(away).get(&away.name).await).map_err(while_trying("look for the ShadowPod"))
    }

    fn pods_at_home(&self, key: &ObjectKey) -> Api<RawPod> {
        Api::namespaced(self.home.clone(), &key.namespace)
    }

    fn shadows_away(&self, key: &ObjectKey) -> Api<ShadowPod> {
        Api::namespaced(self.away.clone(), &key.namespace)
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(field_manager::VIRTUAL_KUBELET.to_owned()), ..PatchParams::default() }
}
