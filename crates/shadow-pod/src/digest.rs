//! What the indexes keep of ShadowPods and of their pods.

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::Value;
use spillway_api::offloading::{ShadowPod, ShadowPodStatus};
use spillway_api::raw_pod::str_of;
use spillway_api::well_known::{annotation, finalizer};
use spillway_api::{RawObject, RawPod};

/// What is kept of a ShadowPod.
#[derive(Clone, Debug, Default)]
pub struct ShadowDigest {
    pub uid: String,
    pub resource_version: String,
    pub generation: Option<i64>,
    pub finalizers: Vec<String>,
    pub deletion: Option<ShadowDeletion>,
    pub status: ShadowPodStatus,
    /// The pod to create. Only kept until one was created: later it is read again when it is needed.
    pub pod: Option<RawPod>,
}

/// That a ShadowPod is to go, and how long its pod has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowDeletion {
    pub grace_seconds: Option<u32>,
}

impl ShadowDigest {
    pub fn is_finished(&self) -> bool {
        self.status.phase.is_final()
    }

    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == finalizer::SHADOW_POD)
    }
}

pub fn shadow(shadow: ShadowPod) -> ShadowDigest {
    let grace = shadow.annotations().get(annotation::DELETION_GRACE_SECONDS).and_then(|value| value.parse().ok());
    let status = shadow.status.clone().unwrap_or_default();
    let created = status.pod_uid.is_some();
    ShadowDigest {
        uid: shadow.uid().unwrap_or_default(),
        resource_version: shadow.resource_version().unwrap_or_default(),
        generation: shadow.metadata.generation,
        finalizers: shadow.finalizers().to_vec(),
        deletion: shadow.metadata.deletion_timestamp.is_some().then_some(ShadowDeletion { grace_seconds: grace }),
        status,
        pod: (!created).then(|| crate::forge::pod(&shadow)),
    }
}

/// What is kept of a pod that belongs to a ShadowPod.
#[derive(Clone, Debug, Default)]
pub struct PodDigest {
    pub uid: String,
    /// The UID of the ShadowPod that controls it.
    pub owner: String,
    pub has_finalizer: bool,
    pub deletion: Option<PodDeletion>,
    pub restart_policy: String,
    pub scheduled: bool,
    pub created: Timestamp,
    pub phase: String,
    /// The whole status, kept only of a pod that has ended or is ending.
    pub last_status: Option<RawObject>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodDeletion {
    pub grace_seconds: i64,
    /// When the deletion was asked for.
    pub requested: Timestamp,
}

impl PodDigest {
    pub fn has_ended(&self) -> bool {
        self.phase == "Succeeded" || self.phase == "Failed"
    }
}

/// `None` for a pod that no ShadowPod controls, whatever its labels say.
pub fn pod(pod: RawPod) -> Option<PodDigest> {
    let owner =
        pod.owner_references().iter().find(|owner| owner.controller == Some(true) && owner.kind == "ShadowPod")?;
    let deletion = pod.metadata.deletion_timestamp.as_ref().map(|at| {
        let grace_seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let asked = at.0 - jiff::SignedDuration::from_secs(grace_seconds);
        PodDeletion { grace_seconds, requested: asked }
    });
    let phase = pod.status_str("phase").to_owned();
    let ending = deletion.is_some() || phase == "Succeeded" || phase == "Failed";
    Some(PodDigest {
        uid: pod.uid().unwrap_or_default(),
        owner: owner.uid.clone(),
        has_finalizer: pod.finalizers().iter().any(|name| name == finalizer::OUTCOME),
        deletion,
        restart_policy: pod.spec_str("restartPolicy").to_owned(),
        scheduled: !pod.spec_str("nodeName").is_empty(),
        created: pod.metadata.creation_timestamp.as_ref().map(|at| at.0).unwrap_or_default(),
        phase,
        last_status: ending.then_some(pod.status),
    })
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
