//! Carries out the plan: the only place with a client.

mod create;
mod release;
mod update;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use spillway_api::RawPod;
use spillway_api::offloading::{ShadowPod, ShadowPodPhase, ShadowPodStatus};
use spillway_api::raw_pod::str_of;
use spillway_api::well_known::field_manager;
use spillway_operator::error::{RequestError, settled, while_trying};
use spillway_operator::patience::Patience;
use spillway_operator::{Action, Index, ObjectKey};

use crate::digest::{NodeDigest, PodDigest, ShadowDigest};
use crate::leisure::Leisure;
use crate::lives::Lives;
use crate::plan::{Circumstances, Step, plan};

pub struct Controller {
    client: Client,
    shadows: Arc<Index<ShadowDigest>>,
    pods: Arc<Index<PodDigest>>,
    /// Only where pods of lost nodes are not waited for.
    nodes: Option<Arc<Index<NodeDigest>>>,
    lives: Lives,
    leisure: Leisure,
    refused_creations: Patience,
    refused_updates: Patience,
}

impl Controller {
    pub fn new(
        client: Client,
        shadows: Arc<Index<ShadowDigest>>,
        pods: Arc<Index<PodDigest>>,
        nodes: Option<Arc<Index<NodeDigest>>>,
    ) -> Self {
        let patience = || Patience::new(Duration::from_secs(1), Duration::from_secs(30));
        Self {
            client,
            shadows,
            pods,
            nodes,
            lives: Lives::default(),
            leisure: Leisure::default(),
            refused_creations: patience(),
            refused_updates: patience(),
        }
    }

    /// All indexes must be complete before the first call: absence is acted upon.
    pub async fn reconcile(&self, key: ObjectKey) -> Result<Action, RequestError> {
        // Of what can't be decoded nobody knows what to do about it: an event tells when it can.
        if self.shadows.is_unreadable(&key) || self.pods.is_unreadable(&key) {
            return Ok(Action::Await);
        }
        let (shadow, pod) = (self.shadows.get(&key), self.pods.get(&key));
        let (shadow, pod) = (shadow.as_deref(), pod.as_deref());
        self.take_note(&key, shadow, pod);
        let last = self.pods.last(&key);
        let update_waits = self.update_pause(&key, shadow, pod);
        let around = Circumstances {
            now: Timestamp::now(),
            last: last.as_deref(),
            pod_may_come: self.lives.may_come(&key, last.as_ref().map(|last| last.uid.as_str())),
            node_is_lost: pod.is_some_and(|pod| self.is_on_a_lost_node(pod)),
            update_waits: update_waits.is_some(),
        };
        let step = plan(shadow, pod, around);
        match (step, shadow, pod) {
            (Step::Wait(delay), ..) => return Ok(Action::LookAgain(delay)),
            (Step::CreatePod, Some(shadow), _) => return self.create_pod(&key, shadow, around.now).await,
            (Step::CountLost { uid, status }, Some(shadow), _) => {
                return self.count_lost(&key, shadow, &uid, &status).await;
            }
            (Step::UpdatePod, Some(shadow), Some(pod)) => return self.update_pod(&key, shadow, pod).await,
            (Step::AdoptPod { uid }, Some(shadow), _) => self.adopt_pod(&key, &uid, shadow).await?,
            (Step::DeletePod { uid, grace_seconds }, ..) => self.delete_pod(&key, uid, grace_seconds).await?,
            (Step::DropPod { uid, grace_seconds }, ..) => {
                self.release_pod(&key, &uid).await?;
                self.delete_pod(&key, uid, grace_seconds).await?;
            }
            (Step::DeleteOrphan { uid, origin_uid }, ..) => self.delete_orphan(&key, uid, origin_uid).await?,
            (Step::ReleasePod { uid }, ..) => self.release_pod(&key, &uid).await?,
            (Step::ReleaseOrphan { uid, owner, origin_uid }, ..) => {
                self.release_orphan(&key, &uid, &owner, origin_uid).await?;
            }
            (Step::ReleaseShadow, Some(shadow), _) => self.set_guard(&key, shadow, false).await?,
            (Step::ReleaseUnnoted, Some(shadow), _) => return self.release_unnoted(&key, shadow, around.now).await,
            (Step::GuardShadow, Some(shadow), _) => self.set_guard(&key, shadow, true).await?,
            (Step::WriteStatus(status), Some(shadow), _) => self.write_status(&key, shadow, &status).await?,
            (Step::Show(status), Some(shadow), Some(pod)) => {
                let age = around.now.duration_since(pod.created).unsigned_abs();
                if let Some(wait) = self.leisure.wait(&key, age) {
                    return Ok(Action::LookAgain(wait));
                }
                self.write_status(&key, shadow, &status).await?;
            }
            (Step::Nothing, ..) | (_, None, _) | (_, _, None) => {}
        }
        Ok(update_waits.map_or(Action::Await, Action::LookAgain))
    }

    /// What is remembered besides the indexes.
    fn take_note(&self, key: &ObjectKey, shadow: Option<&ShadowDigest>, pod: Option<&PodDigest>) {
        if shadow.is_none() {
            self.lives.forget(key);
            self.pods.forget_last(key);
            self.refused_creations.forget(key);
            self.refused_updates.forget(key);
        }
        if pod.is_some() {
            self.lives.none_unseen(key);
        }
        if pod.is_some_and(|pod| pod.is_ready) && self.lives.ready(key) {
            self.leisure.busy();
        }
        if let Some(ending) = pod.filter(|pod| !pod.is_ready && pod.last_status.is_some()) {
            let status = ending.last_status();
            let words = [str_of(&status, "reason"), str_of(&status, "message")];
            let words: Vec<_> = words.into_iter().filter(|text| !text.is_empty()).collect();
            self.lives.ending(key, &words.join(": "));
        }
    }

    fn is_on_a_lost_node(&self, pod: &PodDigest) -> bool {
        let (Some(nodes), Some(node)) = (&self.nodes, &pod.node) else { return false };
        nodes.get(&ObjectKey::new("", node.as_str())).is_some_and(|node| node.is_lost)
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
        self.write_status(key, shadow, &status).await
    }

    async fn write_status(
        &self,
        key: &ObjectKey,
        shadow: &ShadowDigest,
        status: &ShadowPodStatus,
    ) -> Result<(), RequestError> {
        // Only in the version that is known here: what was recorded is never written over.
        let metadata = json!({"uid": shadow.uid, "resourceVersion": shadow.resource_version});
        let patch = Patch::Merge(json!({"metadata": metadata, "status": change(&shadow.status, status)}));
        let patched = self.shadows_in(key).patch_status(&key.name, &patch_params(), &patch).await;
        settled(patched).map_err(while_trying("write the status of the ShadowPod"))
    }

    fn pods_in(&self, key: &ObjectKey) -> Api<RawPod> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    fn shadows_in(&self, key: &ObjectKey) -> Api<ShadowPod> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

/// What takes one status to the next; it has one writer, so what is gone is erased.
fn change(before: &ShadowPodStatus, after: &ShadowPodStatus) -> Value {
    let (before, mut change) = (json!(before), json!(after));
    for field in before.as_object().into_iter().flat_map(|before| before.keys()) {
        if change.get(field).is_none() {
            change[field] = Value::Null;
        }
    }
    change
}

/// By the name under which the API server notes what of a pod is ours.
fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(field_manager::SHADOW_POD.to_owned()), ..PatchParams::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_status_no_longer_says_is_erased() {
        let refused = ShadowPodStatus { reason: Some("PodRefused".to_owned()), ..ShadowPodStatus::default() };
        let runs = ShadowPodStatus { phase: ShadowPodPhase::Running, recreations: 1, ..ShadowPodStatus::default() };
        assert_eq!(change(&refused, &runs), json!({"phase": "Running", "recreations": 1, "reason": null}));
    }
}
