//! Deleting pods, and letting go of pods and ShadowPods.

use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use spillway_api::offloading::ShadowPod;
use spillway_api::well_known::{annotation, finalizer};
use spillway_operator::ObjectKey;
use spillway_operator::error::{RequestError, found, is_not_found, only, settled, while_trying};

use super::Controller;
use crate::digest::ShadowDigest;

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
