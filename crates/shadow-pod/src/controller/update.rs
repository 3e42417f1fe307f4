//! Carrying changes over to a pod that runs. Rare, so that the objects are read when it happens and not kept.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::Patch;
use serde_json::{Value, json};
use spillway_api::well_known::annotation;
use spillway_operator::error::{RequestError, found, is_not_found, settled, while_trying, words};
use spillway_operator::{Action, Categorised, Category, ObjectKey};

use super::{Controller, patch_params};
use crate::digest::{self, PodDigest, ShadowDigest};
use crate::forge;
use crate::plan::update_refused;
use crate::update::{Update, carried, update};

impl Controller {
    /// How long a change that was refused is still left alone.
    pub(super) fn update_pause(
        &self,
        key: &ObjectKey,
        shadow: Option<&ShadowDigest>,
        pod: Option<&PodDigest>,
    ) -> Option<Duration> {
        self.refused_updates.wait(key, &change(shadow?, pod?))
    }

    pub(super) async fn update_pod(
        &self,
        key: &ObjectKey,
        shadow: &ShadowDigest,
        pod: &PodDigest,
    ) -> Result<Action, RequestError> {
        let read = found(self.shadows_in(key).get(&key.name).await).map_err(while_trying("read the ShadowPod"))?;
        let now = found(self.pods_in(key).get(&key.name).await).map_err(while_trying("read the pod"))?;
        let read = read.filter(|read| read.uid().as_ref() == Some(&shadow.uid));
        let now = now.filter(|now| now.uid().as_ref() == Some(&pod.uid) && now.metadata.deletion_timestamp.is_none());
        let (Some(read), Some(now)) = (read, now) else { return Ok(Action::Await) }; // an event tells what is next
        let wanted = forge::wanted(&read);
        let digest = annotation::LIVE_DIGEST;
        let carried_over = now.annotations().get(digest) == wanted.annotations().get(digest);
        if carried_over && digest::marks(now.labels()) == digest::marks(wanted.labels()) {
            return Ok(Action::Await); // a moment ago
        }
        let Update { ephemeral_containers, resize, pod: in_place } = update(&wanted, &now);
        let mut refusals = Vec::new();
        for (subresource, patch) in [("ephemeralcontainers", ephemeral_containers), ("resize", resize)] {
            if let Some(patch) = patch {
                refusals.extend(self.patch_pod(key, &pod.uid, Some(subresource), patch).await?);
            }
        }
        let in_place = if refusals.is_empty() { Some(carried(in_place, &wanted, &now)) } else { in_place };
        if let Some(patch) = in_place {
            refusals.extend(self.patch_pod(key, &pod.uid, None, patch).await?);
        }
        if refusals.is_empty() {
            tracing::info!(%key, uid = pod.uid, "changes carried over to the pod");
            self.refused_updates.forget(key);
            return Ok(Action::Await);
        }
        let pause = self.refused_updates.failed(key, &change(shadow, pod));
        tracing::warn!(%key, ?pause, refusals = refusals.join("; "), "changes refused");
        let status = update_refused(shadow, pod, refusals.join("; "));
        if status != shadow.status {
            self.write_status(key, shadow, &status).await?;
        }
        Ok(Action::LookAgain(pause))
    }

    /// What the API server has against it, if it has; an error if it could not be asked.
    async fn patch_pod(
        &self,
        key: &ObjectKey,
        uid: &str,
        subresource: Option<&str>,
        patch: Value,
    ) -> Result<Option<String>, RequestError> {
        let (pods, params, patch) = (self.pods_in(key), patch_params(), Patch::Strategic(patch));
        let patched = match subresource {
            Some(subresource) => pods.patch_subresource(subresource, &key.name, &params, &patch).await.map(drop),
            None => pods.patch_metadata(&key.name, &params, &patch).await.map(drop),
        };
        match patched {
            // Gone meanwhile, and an event will tell; or an older API server lacks the subresource.
            Err(error) if is_not_found(&error) => {
                let there = found(pods.get_metadata(&key.name).await).map_err(while_trying("look for the pod"))?;
                Ok(there.filter(|there| there.uid().as_deref() == Some(uid)).map(|_| words(&error)))
            }
            Err(error) if error.category() == Category::Permanent => Ok(Some(words(&error))),
            patched => patched.map(|()| None).map_err(while_trying("carry changes over to the pod")),
        }
    }

    pub(super) async fn adopt_pod(
        &self,
        key: &ObjectKey,
        uid: &str,
        shadow: &ShadowDigest,
    ) -> Result<(), RequestError> {
        let owner = forge::owner(&key.name, &shadow.uid);
        let patch = Patch::Strategic(json!({"metadata": {"uid": uid, "ownerReferences": [owner]}}));
        let patched = self.pods_in(key).patch_metadata(&key.name, &patch_params(), &patch).await;
        settled(patched).map_err(while_trying("give the pod its owner back"))
    }
}

/// Names a change: another one, or another pod, may be tried at once.
fn change(shadow: &ShadowDigest, pod: &PodDigest) -> String {
    format!("{} {}", shadow.live, pod.uid)
}
