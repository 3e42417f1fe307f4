//! Making a pod.

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Patch, PostParams};
use serde_json::json;
use spillway_api::RawPod;
use spillway_api::offloading::{ShadowPod, ShadowPodStatus};
use spillway_api::well_known::{field_manager, finalizer, label};
use spillway_operator::error::{RequestError, found, is_conflict, settled, while_trying, words};
use spillway_operator::{Action, Categorised, Category, ObjectKey};

use super::{Controller, patch_params};
use crate::digest::{self, PodDigest, ShadowDigest};
use crate::forge;

/// On a ShadowPod: its pod was refused, by a quota, by admission, or because it is not valid.
const POD_REFUSED: &str = "PodRefused";
/// On a ShadowPod: a pod that is none of ours has the name.
const POD_NAME_TAKEN: &str = "PodNameTaken";
/// On a ShadowPod: its pod ends as soon as it is made.
const RECREATION_BACK_OFF: &str = "RecreationBackOff";

impl Controller {
    pub(super) async fn create_pod(
        &self,
        key: &ObjectKey,
        shadow: &ShadowDigest,
        now: Timestamp,
    ) -> Result<Action, RequestError> {
        let version = shadow.version();
        if let Some(left) = self.refused_creations.wait(key, &version) {
            return Ok(Action::LookAgain(left));
        }
        let last = self.pods.last(key);
        if let Some(left) = self.lives.coming(key, last.as_ref().map(|last| last.uid.as_str())) {
            return Ok(Action::LookAgain(left));
        }
        if let Some(pause) = self.lives.pause(key, &version, now) {
            self.report(key, shadow, RECREATION_BACK_OFF, pause.message).await?;
            return Ok(Action::LookAgain(pause.left));
        }
        self.leisure.busy();
        let Some(pod) = self.pod_to_create(key, shadow).await? else { return Ok(Action::Await) };
        self.lives.making(key);
        let params = PostParams { field_manager: Some(field_manager::SHADOW_POD.to_owned()), ..PostParams::default() };
        match self.pods_in(key).create(&params, &pod).await {
            Ok(created) => {
                tracing::info!(%key, uid = created.uid(), recreation = shadow.status != Default::default(), "pod created");
                self.refused_creations.forget(key);
                self.lives.made(key, created.uid().unwrap_or_default());
                shadow.pod.lock().take();
                // One that can't go without this controller, which holds its finalizer: no removal can have been missed.
                if let Some(digest) = digest::pod(created, None).filter(|digest| digest.has_finalizer) {
                    self.pods.insert_absent(key.clone(), digest);
                }
                Ok(Action::Await)
            }
            Err(error) if is_conflict(&error) => {
                self.lives.none_unseen(key);
                self.name_taken(key, shadow, error).await
            }
            // The ShadowPod goes with its namespace: there is nothing to tell.
            Err(error) if is_namespace_terminating(&error) => {
                self.lives.none_unseen(key);
                Ok(Action::LookAgain(self.refused_creations.failed(key, &version)))
            }
            Err(error) => {
                if matches!(&error, kube::Error::Api(status) if status.code < 500) {
                    self.lives.none_unseen(key);
                }
                let pause = self.refused_creations.failed(key, &version);
                // A server that is only busy or hiccups once is no news.
                if error.category() == Category::Permanent || pause > self.refused_creations.first() {
                    self.report(key, shadow, POD_REFUSED, words(&error)).await?;
                }
                Err(while_trying("create the pod")(error))
            }
        }
    }

    /// `None` if the ShadowPod is gone: its event is on the way.
    async fn pod_to_create(&self, key: &ObjectKey, shadow: &ShadowDigest) -> Result<Option<RawPod>, RequestError> {
        if let Some(pod) = &*shadow.pod.lock() {
            return Ok(Some(RawPod::clone(pod)));
        }
        let read = found(self.shadows_in(key).get(&key.name).await).map_err(while_trying("read the ShadowPod"))?;
        // What is known of it here may be behind: what has finished or is to go gets no pod.
        let is_over = |read: &ShadowPod| {
            read.metadata.deletion_timestamp.is_some()
                || read.status.as_ref().is_some_and(|status| status.phase.is_final())
        };
        let read = read.filter(|read| read.uid().as_ref() == Some(&shadow.uid) && !is_over(read));
        Ok(read.map(|read| forge::pod(&read)))
    }

    /// Puts the label back without which no watch shows the pod, and the finalizer, if it can still have one.
    async fn mark(&self, key: &ObjectKey, shadow: &ShadowDigest, pod: &PodDigest) -> Result<Action, RequestError> {
        let mut metadata = json!({"uid": pod.uid, "labels": {label::MANAGED_BY: label::MANAGED_BY_SHADOW_POD}});
        if shadow.holds_pod && pod.deletion.is_none() {
            metadata["finalizers"] = json!([finalizer::OUTCOME]);
        }
        tracing::warn!(%key, uid = pod.uid, "somebody took the marks of Spillway from a pod: they are put back");
        let patch = Patch::Strategic(json!({"metadata": metadata}));
        let patched = self.pods_in(key).patch_metadata(&key.name, &patch_params(), &patch).await;
        settled(patched).map_err(while_trying("mark the pod as ours"))?;
        Ok(Action::Await)
    }

    /// Notes what a lost pod leaves behind; unless it is only out of sight, because somebody took the label from it by which
    /// it is watched.
    pub(super) async fn count_lost(
        &self,
        key: &ObjectKey,
        shadow: &ShadowDigest,
        uid: &str,
        status: &ShadowPodStatus,
    ) -> Result<Action, RequestError> {
        let there = found(self.pods_in(key).get(&key.name).await).map_err(while_trying("look for the pod"))?;
        let there = there.filter(|pod| pod.uid().as_deref() == Some(uid)).and_then(|pod| digest::pod(pod, None));
        match there {
            Some(pod) => self.mark(key, shadow, &pod).await,
            None => self.write_status(key, shadow, status).await.map(|()| Action::Await),
        }
    }

    /// The name is in use: by our own pod that the watch has not shown yet, or by one that is none of ours.
    async fn name_taken(
        &self,
        key: &ObjectKey,
        shadow: &ShadowDigest,
        error: kube::Error,
    ) -> Result<Action, RequestError> {
        let there = found(self.pods_in(key).get(&key.name).await).map_err(while_trying("read the pod of that name"))?;
        let mark = |pod: &RawPod| {
            pod.labels().get(label::MANAGED_BY).map(String::as_str) == Some(label::MANAGED_BY_SHADOW_POD)
        };
        let is_marked = there.as_ref().is_some_and(mark);
        match there.map(|pod| digest::pod(pod, None)) {
            Some(Some(pod)) if shadow.owns(&pod) && is_marked => Ok(Action::Await),
            Some(Some(pod)) if shadow.owns(&pod) => self.mark(key, shadow, &pod).await,
            // Of a former ShadowPod and on its way out, or gone already, or a conflict about something else.
            Some(Some(_)) | None => Err(while_trying("create the pod")(error)),
            Some(None) => {
                let message = format!(
                    "a pod named {} that Spillway does not manage is in the way; rename or delete it",
                    key.name
                );
                self.refused_creations.failed(key, &shadow.version());
                self.report(key, shadow, POD_NAME_TAKEN, message).await?;
                Err(while_trying("create the pod")(error))
            }
        }
    }
}

fn is_namespace_terminating(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::Value;

    #[rstest]
    #[case::goes_with_its_namespace(json!({"causes": [{"reason": "NamespaceTerminating", "message": "x is being terminated"}]}), true)]
    #[case::a_quota(json!({"causes": [{"reason": "FieldValueInvalid"}]}), false)]
    #[case::admission(json!(null), false)]
    fn a_refusal_because_of_a_terminating_namespace_is_known(#[case] details: Value, #[case] terminating: bool) {
        let status =
            json!({"status": "Failure", "code": 403, "reason": "Forbidden", "message": "no", "details": details});
        let error = kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()));
        assert_eq!(is_namespace_terminating(&error), terminating);
    }
}
