//! What the indexes keep of local pods, of their ShadowPods and of the remote pods.

use kube::ResourceExt;
use parking_lot::Mutex;
use spillway_api::offloading::{ShadowPod, ShadowPodStatus};
use spillway_api::raw_pod::str_of;
use spillway_api::well_known::annotation;
use spillway_api::{RawObject, RawPod};

use super::forge::{self, Context};

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
    pub status: RawObject,
    /// What to create, forged when the pod was seen; taken once it was created, and forged again if ever needed.
    pub forged: Mutex<Option<Box<ShadowPod>>>,
}

impl LocalDigest {
    pub fn phase(&self) -> &str {
        str_of(&self.status, "phase")
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.phase(), "Succeeded" | "Failed")
    }

    pub fn never_started(&self) -> bool {
        never_started(&self.status)
    }
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
    // Most events come from pods that have long crossed: nothing is forged for those.
    let may_be_new = never_started(&pod.status) && deletion_grace.is_none();
    let forged = may_be_new.then(|| Box::new(forge::shadow_pod(&pod, context)));
    Some(LocalDigest {
        uid: pod.uid().unwrap_or_default(),
        generation: pod.metadata.generation,
        deletion_grace,
        own_grace: pod.spec.get("terminationGracePeriodSeconds").and_then(serde_json::Value::as_i64),
        status: pod.status,
        forged: Mutex::new(forged),
    })
}

/// What is kept of a ShadowPod that is marked as ours.
#[derive(Clone, Debug, Default)]
pub struct ShadowDigest {
    pub uid: String,
    /// The local pod that it was made for, if it says so.
    pub origin_uid: Option<String>,
    pub is_deleting: bool,
    /// The grace that was passed on with the deletion.
    pub deletion_grace: Option<i64>,
    pub status: ShadowPodStatus,
}

pub fn shadow(shadow: ShadowPod) -> ShadowDigest {
    ShadowDigest {
        uid: shadow.uid().unwrap_or_default(),
        origin_uid: shadow.annotations().get(annotation::ORIGIN_UID).cloned(),
        is_deleting: shadow.metadata.deletion_timestamp.is_some(),
        deletion_grace: shadow
            .annotations()
            .get(annotation::DELETION_GRACE_SECONDS)
            .and_then(|value| value.parse().ok()),
        status: shadow.status.unwrap_or_default(),
    }
}

/// What is kept of a remote pod that is marked as ours.
#[derive(Clone, Debug, Default)]
pub struct RemoteDigest {
    /// The UID of the ShadowPod that controls it.
    pub owner: String,
    pub is_deleting: bool,
    pub status: RawObject,
}

/// `None` for a pod that no ShadowPod controls.
pub fn remote(pod: RawPod) -> Option<RemoteDigest> {
    let owner =
        pod.owner_references().iter().find(|owner| owner.controller == Some(true) && owner.kind == "ShadowPod")?;
    Some(RemoteDigest {
        owner: owner.uid.clone(),
        is_deleting: pod.metadata.deletion_timestamp.is_some(),
        status: pod.status,
    })
}
