//! What to do about a ShadowPod and its pod, as a pure function of what the indexes hold. One step at a time: what
//! follows from the step comes back as an event.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spillway_api::RawObject;
use spillway_api::offloading::{ShadowPodPhase, ShadowPodStatus};

use crate::digest::{PodDigest, ShadowDigest};
use crate::disruption::{self, Cause};
use crate::outcome::{Verdict, judge};

/// A pod that starts sooner costs no write of its Pending phase.
const PENDING_SHOWN_AFTER: SignedDuration = SignedDuration::from_secs(2);

/// On a ShadowPod: a change could not be carried over to its pod, which runs on as it was.
pub const UPDATE_REFUSED: &str = "UpdateRefused";

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Nothing,
    /// Look again after this time.
    Wait(Duration),
    CreatePod,
    /// Carry over to the pod what its ShadowPod changed since.
    UpdatePod,
    /// Give the pod its owner back.
    AdoptPod {
        uid: String,
    },
    DeletePod {
        uid: String,
        grace_seconds: Option<u32>,
    },
    /// Delete a pod that no ShadowPod owns, if the one that it was made for is really gone, and not only missing here.
    DeleteOrphan {
        uid: String,
        origin_uid: Option<String>,
    },
    /// Let the pod object go: nothing more is to be learnt from it.
    ReleasePod {
        uid: String,
    },
    /// The same, if the ShadowPod that it belongs to is really gone.
    ReleaseOrphan {
        uid: String,
        owner: String,
        origin_uid: Option<String>,
    },
    /// Let the ShadowPod go: its pod is gone.
    ReleaseShadow,
    /// Add our finalizer, which a ShadowPod written by hand may lack.
    GuardShadow,
    WriteStatus(Box<ShadowPodStatus>),
}

/// What the objects themselves do not say.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    pub now: Timestamp,
    /// The pod's node is lost, and the policy is not to wait for it.
    pub node_is_lost: bool,
    /// A change was refused a moment ago; it is left alone for now.
    pub update_waits: bool,
}

pub fn plan(shadow: Option<&ShadowDigest>, pod: Option<&PodDigest>, around: Circumstances) -> Step {
    let Some(shadow) = shadow else {
        return pod.map_or(Step::Nothing, clear);
    };
    let ours = pod.filter(|pod| shadow.owns(pod));
    // Else nothing would tell any more whose it is once it is let go.
    if let Some(orphan) = ours.filter(|pod| pod.is_orphan() && pod.has_finalizer) {
        return Step::AdoptPod { uid: orphan.uid.clone() };
    }
    if shadow.deletion.is_some() {
        return unwind(shadow, ours, around);
    }
    if !shadow.has_finalizer() && !shadow.is_finished() {
        return Step::GuardShadow;
    }
    match (pod, ours) {
        _ if shadow.is_finished() => ours.map_or(Step::Nothing, release_if_deleted),
        (None, _) => Step::CreatePod,
        // A pod of a ShadowPod that had this name before: it must go first.
        (Some(former), None) => clear(former),
        (_, Some(pod)) => attend(shadow, pod, around),
    }
}

/// The ShadowPod of this pod is gone, and nobody needs its outcome. The garbage collector deletes the pod, unless it was
/// told to leave it behind.
fn clear(pod: &PodDigest) -> Step {
    let (uid, origin_uid) = (pod.uid.clone(), pod.origin_uid.clone());
    match pod.deletion {
        Some(_) if pod.has_finalizer => Step::ReleaseOrphan { uid, owner: pod.owner.clone(), origin_uid },
        None if pod.is_orphan() => Step::DeleteOrphan { uid, origin_uid },
        _ => Step::Nothing,
    }
}

fn release_if_deleted(pod: &PodDigest) -> Step {
    match pod.deletion {
        Some(_) if pod.has_finalizer => Step::ReleasePod { uid: pod.uid.clone() },
        _ => Step::Nothing,
    }
}

fn delete(pod: &PodDigest, grace_seconds: Option<u32>) -> Step {
    Step::DeletePod { uid: pod.uid.clone(), grace_seconds }
}

/// The consumer wants it gone.
fn unwind(shadow: &ShadowDigest, pod: Option<&PodDigest>, around: Circumstances) -> Step {
    let Some(pod) = pod else {
        return if shadow.has_finalizer() { Step::ReleaseShadow } else { Step::Nothing };
    };
    let asked = shadow.deletion.and_then(|deletion| deletion.grace_seconds);
    let Some(deletion) = pod.deletion else { return delete(pod, asked) };
    match asked.or(pod.own_grace) {
        _ if pod.has_finalizer => Step::ReleasePod { uid: pod.uid.clone() },
        _ if around.node_is_lost && deletion.grace_seconds > 0 => delete(pod, Some(0)),
        Some(grace) if i64::from(grace) < deletion.grace_seconds => delete(pod, Some(grace)),
        _ => Step::Nothing,
    }
}

/// The consumer wants it to run, and there is a pod.
fn attend(shadow: &ShadowDigest, pod: &PodDigest, around: Circumstances) -> Step {
    match (judge(pod), pod.deletion) {
        (Verdict::Finished(phase), _) => record(shadow, pod, phase, pod.last_status.clone().unwrap_or_default()),
        (Verdict::Disrupted, _) => replace(shadow, pod, around),
        (Verdict::Alive, None) => show(shadow, pod, around),
        // Nothing of it runs or will run: there is no outcome to wait for.
        (Verdict::Alive, Some(deletion)) if deletion.grace_seconds == 0 || pod.node.is_none() => {
            replace(shadow, pod, around)
        }
        (Verdict::Alive, Some(_)) if around.node_is_lost => delete(pod, Some(0)),
        // The status of a disruption is shown to no one; what comes after it is.
        (Verdict::Alive, Some(_)) => Step::Nothing,
    }
}

/// The cluster took it away: it makes room for another, once what it leaves behind is recorded; unless it is not to run
/// twice.
fn replace(shadow: &ShadowDigest, pod: &PodDigest, around: Circumstances) -> Step {
    let empty = RawObject::new();
    let last = pod.last_status.as_ref().unwrap_or(&empty);
    if shadow.fails_on_disruption && disruption::had_started(last) {
        let cause = if around.node_is_lost { Cause::NodeLost } else { Cause::Deleted };
        return record(shadow, pod, ShadowPodPhase::Failed, disruption::failed(last, cause, around.now));
    }
    if pod.deletion.is_none() {
        return delete(pod, Some(0));
    }
    match with_restarts(shadow, pod, last) {
        Some(status) => Step::WriteStatus(Box::new(status)),
        None => release_if_deleted(pod),
    }
}

/// The status that also counts the restarts of this pod, which is about to be lost; `None` if there is nothing to count or
/// it was counted before. That it was is told by the missing pod: whoever counts takes its UID away in the same write.
fn with_restarts(shadow: &ShadowDigest, pod: &PodDigest, last: &RawObject) -> Option<ShadowPodStatus> {
    let restarts = disruption::restarts(last);
    let counted = shadow.status.pod_uid.is_none() && shadow.status.recreations > 0;
    if restarts.is_empty() || counted {
        return None;
    }
    let mut status = observed(shadow, pod, shadow.status.phase);
    status.pod_uid = None;
    status.recreations += 1;
    for (container, count) in restarts {
        *status.former_restarts.entry(container).or_default() += count;
    }
    Some(status)
}

fn record(shadow: &ShadowDigest, pod: &PodDigest, phase: ShadowPodPhase, outcome: RawObject) -> Step {
    Step::WriteStatus(Box::new(ShadowPodStatus { outcome: Some(outcome), ..observed(shadow, pod, phase) }))
}

fn show(shadow: &ShadowDigest, pod: &PodDigest, around: Circumstances) -> Step {
    let differs = pod.live.as_ref() != Some(&shadow.live);
    if differs && !around.update_waits {
        return Step::UpdatePod;
    }
    let mut status = observed(shadow, pod, phase(pod));
    if differs && shadow.status.reason.as_deref() == Some(UPDATE_REFUSED) {
        status.reason = shadow.status.reason.clone();
        status.message = shadow.status.message.clone();
    }
    if status == shadow.status {
        return Step::Nothing;
    }
    let age = around.now.duration_since(pod.created);
    let young = !age.is_negative() && age < PENDING_SHOWN_AFTER;
    if status.phase == ShadowPodPhase::Pending && shadow.status == ShadowPodStatus::default() && young {
        return Step::Wait(PENDING_SHOWN_AFTER.unsigned_abs());
    }
    Step::WriteStatus(Box::new(status))
}

/// The status of a ShadowPod whose pod runs, but not with the latest changes.
pub fn update_refused(shadow: &ShadowDigest, pod: &PodDigest, message: String) -> ShadowPodStatus {
    ShadowPodStatus {
        reason: Some(UPDATE_REFUSED.to_owned()),
        message: Some(message),
        ..observed(shadow, pod, phase(pod))
    }
}

fn phase(pod: &PodDigest) -> ShadowPodPhase {
    match pod.phase.as_str() {
        "Running" => ShadowPodPhase::Running,
        "Pending" | "" => ShadowPodPhase::Pending,
        _ => ShadowPodPhase::Unknown,
    }
}

fn observed(shadow: &ShadowDigest, pod: &PodDigest, phase: ShadowPodPhase) -> ShadowPodStatus {
    let before = &shadow.status;
    let recreated = before.pod_uid.as_ref().is_some_and(|uid| *uid != pod.uid);
    ShadowPodStatus {
        phase,
        pod_uid: Some(pod.uid.clone()),
        recreations: before.recreations + i64::from(recreated),
        former_restarts: before.former_restarts.clone(),
        reason: None,
        message: None,
        observed_generation: shadow.generation,
        outcome: None,
    }
}

#[cfg(test)]
mod convergence;
#[cfg(test)]
mod tests;
