//! What the indexes keep of ShadowPods, of their pods and of nodes.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use parking_lot::Mutex;
use serde_json::Value;
use spillway_api::offloading::{ShadowPod, ShadowPodStatus};
use spillway_api::raw_pod::{restart_policy, str_of};
use spillway_api::well_known::{annotation, finalizer, label};
use spillway_api::{Packed, RawObject, RawPod, k8s};

use crate::{disruption, forge};

/// What is kept of a ShadowPod.
#[derive(Clone, Debug, Default)]
pub struct ShadowDigest {
    pub uid: String,
    pub resource_version: String,
    pub generation: Option<i64>,
    pub finalizers: Vec<String>,
    pub deletion: Option<ShadowDeletion>,
    /// The local pod that it stands for.
    pub origin_uid: Option<String>,
    pub status: ShadowPodStatus,
    /// The digest of what its pod should carry of that which may change while it runs.
    pub live: String,
    /// The labels by which its consumer knows its pod.
    pub marks: Marks,
    /// Whether its pod is held until its outcome is known.
    pub holds_pod: bool,
    /// Whether a pod that was disrupted after it had started is to end as Failed.
    pub fails_on_disruption: bool,
    /// The pod to create. Only kept until one was created: later it is read again when it is needed.
    pub pod: Arc<Mutex<Option<Box<RawPod>>>>,
}

/// That a ShadowPod is to go, and how long its pod has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowDeletion {
    pub grace_seconds: Option<u32>,
    pub requested: Timestamp,
}

impl ShadowDigest {
    pub fn is_finished(&self) -> bool {
        self.status.phase.is_final()
    }

    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == finalizer::SHADOW_POD)
    }

    /// Its pod names it as owner; or names no owner any more, and was made for the same local pod.
    pub fn owns(&self, pod: &PodDigest) -> bool {
        if pod.is_orphan() {
            pod.origin_uid.is_some() && pod.origin_uid == self.origin_uid
        } else {
            pod.owner == self.uid
        }
    }

    /// Names what it asks for: what was refused in one version may be tried again in the next.
    pub fn version(&self) -> String {
        self.generation.unwrap_or_default().to_string()
    }
}

pub fn shadow(shadow: ShadowPod) -> ShadowDigest {
    let annotations = shadow.annotations();
    let deletion = shadow.metadata.deletion_timestamp.as_ref();
    let grace = annotations.get(annotation::DELETION_GRACE_SECONDS).and_then(|value| value.parse().ok());
    let mut status = shadow.status.clone().unwrap_or_default();
    // It is its consumer's: here its phase says enough.
    if status.phase.is_final() {
        status.outcome = None;
    }
    let created = status.pod_uid.is_some() || status.recreations > 0;
    ShadowDigest {
        uid: shadow.uid().unwrap_or_default(),
        resource_version: shadow.resource_version().unwrap_or_default(),
        generation: shadow.metadata.generation,
        finalizers: shadow.finalizers().to_vec(),
        deletion: deletion.map(|at| ShadowDeletion { grace_seconds: grace, requested: at.0 }),
        origin_uid: annotations.get(annotation::ORIGIN_UID).cloned(),
        status,
        live: forge::live_digest(&shadow),
        marks: marks(shadow.labels()),
        holds_pod: forge::can_end(&shadow),
        fails_on_disruption: forge::fails_on_disruption(&shadow),
        pod: Arc::new(Mutex::new((!created).then(|| Box::new(forge::pod(&shadow))))),
    }
}

/// A hash of labels.
pub type Marks = u64;

/// The consumer watches its pods by these.
const MARKS: [&str; 3] = [label::ORIGIN, label::DESTINATION, label::NODE_NAME];

pub fn marks(labels: &BTreeMap<String, String>) -> Marks {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(MARKS.map(|mark| labels.get(mark)))
}

/// What is kept of a pod that belongs to a ShadowPod, or did.
#[derive(Clone, Debug, Default)]
pub struct PodDigest {
    pub uid: String,
    /// The UID of the ShadowPod that controls it; empty if none does (any more).
    pub owner: String,
    /// The local pod that it was made for.
    pub origin_uid: Option<String>,
    pub has_finalizer: bool,
    pub deletion: Option<PodDeletion>,
    /// It had not ended, as far as the API server knew, when its deletion was asked for.
    pub deleted_alive: bool,
    /// See [`restart_policy`].
    pub restart_policy: String,
    /// The grace that it asks for itself.
    pub own_grace: Option<u32>,
    /// Where it was bound to.
    pub node: Option<String>,
    pub created: Timestamp,
    pub phase: String,
    pub is_ready: bool,
    /// The digest of what was last carried over to it.
    pub live: Option<String>,
    /// The labels by which its consumer knows it.
    pub marks: Marks,
    /// How often its containers restarted, by name.
    pub restarts: BTreeMap<String, i64>,
    /// The whole status, kept only of a pod that has ended or is ending.
    pub last_status: Option<Packed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodDeletion {
    pub grace_seconds: i64,
    /// When the deletion was asked for.
    pub requested: Timestamp,
}

impl PodDigest {
    pub fn has_ended(&self) -> bool {
        has_ended(&self.phase)
    }

    pub fn is_orphan(&self) -> bool {
        self.owner.is_empty()
    }

    pub fn always_restarts(&self) -> bool {
        self.restart_policy == "Always"
    }

    /// How it was last seen; empty as long as it has not begun to end.
    pub fn last_status(&self) -> RawObject {
        self.last_status.as_ref().map(Packed::open).unwrap_or_default()
    }
}

fn has_ended(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

/// `before` is what was known of the pod of that name until now. `None` for a pod that is none of ours: no ShadowPod
/// controls it, it never was known as ours, and it lacks one of the marks that only our own pods carry together.
pub fn pod(pod: RawPod, before: Option<&PodDigest>) -> Option<PodDigest> {
    let mut owners = pod.owner_references().iter();
    let owner = owners.find(|owner| owner.controller == Some(true) && owner.kind == "ShadowPod");
    let owner = owner.map(|owner| owner.uid.clone()).unwrap_or_default();
    let uid = pod.uid().unwrap_or_default();
    let before = before.filter(|before| before.uid == uid);
    if owner.is_empty() && !is_marked_as_ours(&pod) && before.is_none() {
        return None;
    }
    let deletion = pod.metadata.deletion_timestamp.as_ref().map(|at| {
        let grace_seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let asked = at.0 - jiff::SignedDuration::from_secs(grace_seconds);
        PodDeletion { grace_seconds, requested: asked }
    });
    let phase = pod.status_str("phase").to_owned();
    let ended = has_ended(&phase);
    // The API server leaves no grace to a pod that has ended: one that has any was alive when its deletion was asked for.
    let seen_alive = deletion.is_some_and(|deletion| deletion.grace_seconds > 0 || !ended);
    let known_alive = before.is_some_and(|before| before.deleted_alive);
    let node = pod.spec_str("nodeName");
    let grace = pod.spec.get("terminationGracePeriodSeconds").and_then(Value::as_u64);
    Some(PodDigest {
        uid,
        owner,
        origin_uid: pod.annotations().get(annotation::ORIGIN_UID).cloned(),
        has_finalizer: has_our_finalizer(&pod),
        deletion,
        deleted_alive: seen_alive || known_alive,
        restart_policy: restart_policy(&pod.spec).to_owned(),
        own_grace: grace.and_then(|seconds| u32::try_from(seconds).ok()),
        node: (!node.is_empty()).then(|| node.to_owned()),
        created: pod.metadata.creation_timestamp.as_ref().map(|at| at.0).unwrap_or_default(),
        is_ready: has_condition(&pod.status, "Ready"),
        live: pod.annotations().get(annotation::LIVE_DIGEST).cloned(),
        marks: marks(pod.labels()),
        phase,
        restarts: disruption::restarts(&pod.status),
        last_status: (deletion.is_some() || ended).then(|| Packed::of(&pod.status)),
    })
}

/// Each of these alone may stand on anyone's pod; all together they are what [`forge::pod`] writes.
fn is_marked_as_ours(pod: &RawPod) -> bool {
    let managed_by = pod.labels().get(label::MANAGED_BY).map(String::as_str);
    let notes = [annotation::ORIGIN_UID, annotation::LIVE_DIGEST];
    managed_by == Some(label::MANAGED_BY_SHADOW_POD)
        && pod.labels().contains_key(label::ORIGIN)
        && (has_our_finalizer(pod) || notes.iter().all(|note| pod.annotations().contains_key(*note)))
}

fn has_our_finalizer(pod: &RawPod) -> bool {
    pod.finalizers().iter().any(|name| name == finalizer::OUTCOME)
}

/// Whether a status holds this condition with status True.
pub fn has_condition(status: &RawObject, kind: &str) -> bool {
    let conditions = status.get("conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .any(|condition| str_of(condition, "type") == kind && str_of(condition, "status") == "True")
}

/// What is kept of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeDigest {
    /// Its kubelet is not heard of, or says itself that it can't work.
    pub is_lost: bool,
}

pub fn node(node: &k8s::Node) -> NodeDigest {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.filter(|condition| condition.type_ == "Ready").any(|ready| ready.status == "True");
    NodeDigest { is_lost: !ready }
}

#[cfg(test)]
mod tests;
