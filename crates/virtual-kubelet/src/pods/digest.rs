//! What the indexes keep of local pods, of their ShadowPods and of the remote pods.

use std::sync::atomic::AtomicU64;

use kube::ResourceExt;
use parking_lot::Mutex;
use serde_json::Value;
use spillway_api::offloading::{ShadowPod, ShadowPodStatus};
use spillway_api::raw_pod::str_of;
use spillway_api::well_known::{annotation, finalizer};
use spillway_api::{Packed, RawObject, RawPod};

use super::forge::{self, Context, Refusal};

/// Marks the copy of a static pod, which is its own kubelet's business.
const MIRROR_POD: &str = "kubernetes.io/config.mirror";

/// What is kept of a local pod that is bound to this node.
#[derive(Debug, Default)]
pub struct LocalDigest {
    pub uid: String,
    pub generation: Option<i64>,
    /// The grace that the user asked for, if the pod is being deleted.
    pub deletion_grace: Option<i64>,
    /// The grace that the pod asks for itself.
    pub own_grace: Option<i64>,
    /// Somebody will look at the pod after it was deleted.
    pub has_finalizers: bool,
    pub restarts: Restarts,
    /// The containers that have rules of their own for it.
    pub own_rules: Vec<String>,
    /// The types of the conditions that must be True before the pod is Ready.
    pub gates: Vec<String>,
    /// What the ShadowPod should bear as its live digest.
    pub live: String,
    pub has_ended: bool,
    /// No container of it was ever heard of.
    pub never_started: bool,
    pub status: Packed,
    /// A hash of the last patch of its status that was written since this was seen: the event of it is on the way, or it
    /// changed nothing, and it need not be written again.
    pub written: AtomicU64,
    /// What to create, forged when the pod was seen; taken once it was created, and forged again if ever needed.
    pub forged: Mutex<Option<Result<Box<ShadowPod>, Refusal>>>,
}

/// Which containers may run again after they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Restarts {
    #[default]
    Always,
    OnFailure,
    Never,
}

pub fn has_ended(status: &RawObject) -> bool {
    matches!(str_of(status, "phase"), "Succeeded" | "Failed")
}

fn never_started(status: &RawObject) -> bool {
    matches!(str_of(status, "phase"), "Pending" | "") && !status.contains_key("containerStatuses")
}

/// `None` for the copy of a static pod.
pub fn local(pod: RawPod, context: &Context) -> Option<LocalDigest> {
    if pod.annotations().contains_key(MIRROR_POD) {
        return None;
    }
    let deletion_grace =
        pod.metadata.deletion_timestamp.as_ref().map(|_| pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
    let never_started = never_started(&pod.status);
    // Most events come from pods that have long crossed: nothing is forged for those.
    let may_be_new = never_started && deletion_grace.is_none();
    let forged = may_be_new.then(|| forge::shadow_pod(&pod, context).map(Box::new));
    let containers = ["containers", "initContainers"].into_iter().filter_map(|list| pod.spec.get(list)?.as_array());
    let has_own_rules = |container: &&Value| {
        ["restartPolicy", "restartPolicyRules"]
            .iter()
            .any(|rule| container.get(rule).is_some_and(|rule| !rule.is_null()))
    };
    let own_rules = containers.flatten().filter(has_own_rules);
    let gates = pod.spec.get("readinessGates").and_then(Value::as_array).into_iter().flatten();
    Some(LocalDigest {
        uid: pod.uid().unwrap_or_default(),
        generation: pod.metadata.generation,
        deletion_grace,
        own_grace: pod.spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64),
        has_finalizers: !pod.finalizers().is_empty(),
        restarts: match pod.spec_str("restartPolicy") {
            "OnFailure" => Restarts::OnFailure,
            "Never" => Restarts::Never,
            _ => Restarts::Always,
        },
        own_rules: own_rules.filter_map(|container| container.get("name")?.as_str().map(str::to_owned)).collect(),
        gates: gates.filter_map(|gate| gate.get("conditionType")?.as_str().map(str::to_owned)).collect(),
        live: forge::live_digest(&pod, context),
        has_ended: has_ended(&pod.status),
        never_started,
        status: Packed::of(&pod.status),
        written: AtomicU64::new(0),
        forged: Mutex::new(forged),
    })
}

/// What is kept of a ShadowPod that is marked as ours.
#[derive(Clone, Debug, Default)]
pub struct ShadowDigest {
    pub uid: String,
    /// The local pod that it was made for, if it says so.
    pub origin_uid: Option<String>,
    pub generation: Option<i64>,
    pub is_deleting: bool,
    /// The grace that was passed on with the deletion.
    pub deletion_grace: Option<i64>,
    /// Set for one that is only there until its outcome has been noted here.
    pub held: Option<Held>,
    /// What was last carried over to it.
    pub live: Option<String>,
    pub status: ShadowPodStatus,
}

/// What it takes to let a ShadowPod go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub resource_version: String,
    pub others: Vec<String>,
}

fn held(shadow: &ShadowPod) -> Option<Held> {
    let ends = shadow.metadata.deletion_timestamp.is_some();
    let known = shadow.status.as_ref().is_some_and(|status| status.outcome.is_some());
    let guard = |name: &&String| *name == finalizer::SHADOW_POD;
    (ends && known && shadow.finalizers().iter().any(|name| guard(&name))).then(|| Held {
        resource_version: shadow.resource_version().unwrap_or_default(),
        others: shadow.finalizers().iter().filter(|name| !guard(name)).cloned().collect(),
    })
}

pub fn shadow(shadow: ShadowPod) -> ShadowDigest {
    let annotations = shadow.annotations();
    ShadowDigest {
        generation: shadow.metadata.generation,
        held: held(&shadow),
        uid: shadow.uid().unwrap_or_default(),
        origin_uid: annotations.get(annotation::ORIGIN_UID).cloned(),
        is_deleting: shadow.metadata.deletion_timestamp.is_some(),
        deletion_grace: annotations.get(annotation::DELETION_GRACE_SECONDS).and_then(|value| value.parse().ok()),
        live: annotations.get(annotation::LIVE_DIGEST).cloned(),
        status: shadow.status.unwrap_or_default(),
    }
}

/// What is kept of a remote pod that is marked as ours.
#[derive(Clone, Debug, Default)]
pub struct RemoteDigest {
    pub uid: String,
    /// The UID of the ShadowPod that controls it.
    pub owner: String,
    /// The local pod that it was made for, if it says so.
    pub origin_uid: Option<String>,
    /// Its kubelet has seen the latest of its spec.
    pub is_up_to_date: bool,
    pub is_deleting: bool,
    pub has_ended: bool,
    pub has_succeeded: bool,
    pub status: Packed,
}

/// `None` for a pod that no ShadowPod controls.
pub fn remote(pod: RawPod) -> Option<RemoteDigest> {
    let owner =
        pod.owner_references().iter().find(|owner| owner.controller == Some(true) && owner.kind == "ShadowPod")?;
    Some(RemoteDigest {
        uid: pod.uid().unwrap_or_default(),
        owner: owner.uid.clone(),
        origin_uid: pod.annotations().get(annotation::ORIGIN_UID).cloned(),
        is_up_to_date: pod.status.get("observedGeneration").and_then(Value::as_i64) == pod.metadata.generation,
        is_deleting: pod.metadata.deletion_timestamp.is_some(),
        has_ended: has_ended(&pod.status),
        has_succeeded: str_of(&pod.status, "phase") == "Succeeded",
        status: Packed::of(&pod.status),
    })
}
