//! Which pods of a Node that is to go are asked to leave, in which order, and how patiently. Pure: the clock is a parameter.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use spillway_operator::ObjectKey;
use spillway_operator::queue::MAX_BACK_OFF;

use super::cordon;
use super::status::Progress;

/// Pods of other namespaces are not watched here: while some are in the way, they are looked for again after this.
pub const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Many are listed less often.
const PODS_PER_SECOND: u64 = 200;
/// So many of those that stay are named.
const NAMED: usize = 3;

/// Who sees to it that a pod leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its controller makes another elsewhere, or nobody does: it is evicted, if its disruption budget allows.
    Moves,
    /// It belongs to the node, and goes after the others. A DaemonSet does not put it back on a closed node.
    OfNode,
    /// The same, but its DaemonSet puts it back for as long as there is a Node.
    ComesBack,
}

/// A pod that is bound to the Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub key: ObjectKey,
    pub uid: String,
    pub role: Role,
    pub leaving: bool,
}

impl Bound {
    /// `None` for the mirror of a static pod, which is its kubelet's business.
    pub fn of(pod: &Pod) -> Option<Self> {
        if pod.annotations().contains_key("kubernetes.io/config.mirror") {
            return None;
        }
        let of_daemon_set =
            pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet" && owner.controller == Some(true));
        let role = match of_daemon_set {
            false => Role::Moves,
            true if cordon::defies(pod) => Role::ComesBack,
            true => Role::OfNode,
        };
        Some(Self {
            key: ObjectKey::of(pod),
            uid: pod.uid().unwrap_or_default(),
            role,
            leaving: pod.meta().deletion_timestamp.is_some(),
        })
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Evict these, and wait for those that are leaving.
    Evict(Vec<Bound>),
    /// Delete these, and wait for those that are leaving.
    Delete(Vec<Bound>),
    /// Only a Node without pods, or with such as come back, is left.
    NodeMayGo { pods: usize },
}

pub fn next(pods: &[Bound], node_exists: bool) -> Next {
    let of = |role: Role| pods.iter().filter(move |pod| pod.role == role);
    if of(Role::Moves).next().is_some() {
        return Next::Evict(of(Role::Moves).filter(|pod| !pod.leaving).cloned().collect());
    }
    let waited_for = |pod: &&Bound| pod.role == Role::OfNode || !node_exists;
    if pods.iter().any(|pod| waited_for(&pod)) {
        return Next::Delete(pods.iter().filter(waited_for).filter(|pod| !pod.leaving).cloned().collect());
    }
    Next::NodeMayGo { pods: pods.len() }
}

/// How soon to look again.
pub fn interval(pods: usize) -> Duration {
    (LOOK_AGAIN + Duration::from_secs(pods as u64 / PODS_PER_SECOND)).min(MAX_BACK_OFF)
}

/// What one drain remembers between two looks.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    /// Pods that could not be evicted the last time, and why.
    refused: Vec<(ObjectKey, String)>,
    fruitless: u32,
    not_before: Option<Instant>,
    next_look: Option<Instant>,
}

impl Drain {
    /// How long it is until the next look: the status that a look writes wakes its own controller.
    pub fn rests(&self, now: Instant) -> Option<Duration> {
        self.next_look.map(|at| at.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    pub fn rest(&mut self, interval: Duration, now: Instant) {
        self.next_look = Some(now + interval);
    }

    pub fn may_evict(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|at| now >= at)
    }

    /// Notes how a round of `asked` evictions went: the next one comes the later the longer none succeeds.
    pub fn tried(&mut self, asked: usize, refused: Vec<(ObjectKey, String)>, now: Instant) {
        self.fruitless = if !refused.is_empty() && refused.len() == asked { self.fruitless + 1 } else { 0 };
        let pause = LOOK_AGAIN.saturating_mul(1 << self.fruitless.min(8)).min(MAX_BACK_OFF);
        self.not_before = (!refused.is_empty()).then(|| now + pause);
        self.refused = refused;
    }

    pub fn progress(&self, pods: &[Bound]) -> Progress {
        let staying = |key: &ObjectKey| pods.iter().any(|pod| pod.key == *key && !pod.leaving);
        let refused = self.refused.iter().filter(|(key, _)| staying(key));
        Progress {
            pods: pods.len(),
            leaving: pods.iter().filter(|pod| pod.leaving).count(),
            refused: refused.clone().count(),
            named: refused.take(NAMED).map(|(key, why)| format!("{key}: {why}")).collect(),
        }
    }
}

/// Why an eviction was refused, in the API server's words.
pub fn refusal(status: &kube::core::Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes).map(|cause| cause.message.as_str());
    let words: Vec<_> = [status.message.as_str()].into_iter().chain(causes).filter(|text| !text.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests;
