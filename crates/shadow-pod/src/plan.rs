//! What to do about a ShadowPod and its pod, as a pure function of what the indexes hold. One step at a time: what
//! follows from the step comes back as an event.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spillway_api::RawObject;
use spillway_api::offloading::{ShadowPodPhase, ShadowPodStatus};

use crate::digest::{PodDigest, ShadowDigest};
use crate::outcome::{Verdict, judge};

/// A pod that starts sooner costs no write of its Pending phase.
const PENDING_SHOWN_AFTER: SignedDuration = SignedDuration::from_secs(2);

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Nothing,
    /// Look again after this time.
    Wait(Duration),
    CreatePod,
    DeletePod {
        uid: String,
        grace_seconds: Option<u32>,
    },
    /// Let the pod object go: nothing more is to be learnt from it.
    ReleasePod {
        uid: String,
    },
    /// The same, if the ShadowPod that controls it is really gone, and not only missing here.
    ReleaseOrphan {
        uid: String,
        owner: String,
    },
    /// Let the ShadowPod go: its pod is gone.
    ReleaseShadow,
    /// Add our finalizer, which a ShadowPod written by hand may lack.
    GuardShadow,
    WriteStatus(Box<ShadowPodStatus>),
}

pub fn plan(shadow: Option<&ShadowDigest>, pod: Option<&PodDigest>, now: Timestamp) -> Step {
    let Some(shadow) = shadow else {
        // Its ShadowPod is gone: the garbage collector deletes the pod, and nobody needs its outcome.
        return match pod.map(|pod| (release_if_deleted(pod), &pod.owner)) {
            Some((Step::ReleasePod { uid }, owner)) => Step::ReleaseOrphan { uid, owner: owner.clone() },
            _ => Step::Nothing,
        };
    };
    let ours = pod.filter(|pod| pod.owner == shadow.uid);
    if shadow.deletion.is_some() {
        return unwind(shadow, ours);
    }
    if !shadow.has_finalizer() && !shadow.is_finished() {
        return Step::GuardShadow;
    }
    match (pod, ours) {
        _ if shadow.is_finished() => ours.map_or(Step::Nothing, release_if_deleted),
        (None, _) => Step::CreatePod,
        // A pod of a ShadowPod that had this name before: it must go first.
        (Some(former), None) => release_if_deleted(former),
        (_, Some(pod)) => attend(shadow, pod, now),
    }
}

fn release_if_deleted(pod: &PodDigest) -> Step {
    match pod.deletion {
        Some(_) if pod.has_finalizer => Step::ReleasePod { uid: pod.uid.clone() },
        _ => Step::Nothing,
    }
}

/// The consumer wants it gone.
fn unwind(shadow: &ShadowDigest, pod: Option<&PodDigest>) -> Step {
    let wanted = shadow.deletion.and_then(|deletion| deletion.grace_seconds);
    let Some(pod) = pod else {
        return if shadow.has_finalizer() { Step::ReleaseShadow } else { Step::Nothing };
    };
    let delete = Step::DeletePod { uid: pod.uid.clone(), grace_seconds: wanted };
    match (pod.deletion, wanted) {
        (None, _) => delete,
        _ if pod.has_finalizer => Step::ReleasePod { uid: pod.uid.clone() },
        (Some(deletion), Some(wanted)) if i64::from(wanted) < deletion.grace_seconds => delete,
        _ => Step::Nothing,
    }
}

/// The consumer wants it to run, and there is a pod.
fn attend(shadow: &ShadowDigest, pod: &PodDigest, now: Timestamp) -> Step {
    match judge(pod) {
        Verdict::Finished(phase) => Step::WriteStatus(Box::new(ShadowPodStatus {
            outcome: Some(pod.last_status.clone().unwrap_or_default()),
            ..observed(shadow, pod, phase)
        })),
        Verdict::Disrupted if pod.deletion.is_none() => {
            Step::DeletePod { uid: pod.uid.clone(), grace_seconds: Some(0) }
        }
        Verdict::Disrupted => release_if_deleted(pod),
        Verdict::Alive => match pod.deletion {
            // Nothing of it runs or will run: there is no outcome to wait for.
            Some(deletion) if deletion.grace_seconds == 0 || !pod.scheduled => release_if_deleted(pod),
            // The status of a disruption is shown to no one; what comes after it is.
            Some(_) => Step::Nothing,
            None => show(shadow, pod, now),
        },
    }
}

fn show(shadow: &ShadowDigest, pod: &PodDigest, now: Timestamp) -> Step {
    let phase = match pod.phase.as_str() {
        "Running" => ShadowPodPhase::Running,
        "Pending" | "" => ShadowPodPhase::Pending,
        _ => ShadowPodPhase::Unknown,
    };
    let status = observed(shadow, pod, phase);
    if status == shadow.status {
        return Step::Nothing;
    }
    let age = now.duration_since(pod.created);
    let young = !age.is_negative() && age < PENDING_SHOWN_AFTER;
    if phase == ShadowPodPhase::Pending && shadow.status == ShadowPodStatus::default() && young {
        return Step::Wait(PENDING_SHOWN_AFTER.unsigned_abs());
    }
    Step::WriteStatus(Box::new(status))
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
        outcome: None::<RawObject>,
    }
}

#[cfg(test)]
mod tests;
