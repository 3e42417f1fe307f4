//! What to do about a ShadowPod and its pod, as a pure function of what the indexes hold. One step at a time: what
//! follows from the step comes back as an event.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spillway_api::RawObject;
use spillway_api::offloading::{ShadowPodPhase, ShadowPodStatus};
use spillway_api::well_known::reason;

use crate::digest::{PodDigest, ShadowDigest};
use crate::disruption::{self, Cause};
use crate::outcome::{Verdict, judge};

/// A pod that starts sooner costs no write of its Pending phase, which its consumer learns from the pod itself.
const PENDING_SHOWN_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// How soon to look again for a pod that was just made.
const COMES_WITHIN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Nothing,
    /// Look again after this time.
    Wait(Duration),
    CreatePod,
    /// Note what a pod leaves behind that is gone, if it really is, and not only out of sight.
    CountLost {
        uid: String,
        status: Box<ShadowPodStatus>,
    },
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
    /// The same for a pod of which nothing is to be learnt any more: it is let go and deleted.
    DropPod {
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
    /// The same, if its consumer has had enough time to take note of the outcome, or will never come to look for it.
    ReleaseUnnoted,
    /// Add our finalizer, which a ShadowPod written by hand may lack.
    GuardShadow,
    WriteStatus(Box<ShadowPodStatus>),
    /// The same, but nobody waits for it: the pod itself tells more.
    Show(Box<ShadowPodStatus>),
}

/// What the objects themselves do not say.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    pub now: Timestamp,
    /// The pod that is gone, as it was last seen.
    pub last: Option<&'a PodDigest>,
    /// A pod was made a moment ago, or may have been, and no watch has shown it yet.
    pub pod_may_come: bool,
    /// The pod's node is lost, and the policy is not to wait for it.
    pub node_is_lost: bool,
    /// A change was refused a moment ago; it is left alone for now.
    pub update_waits: bool,
}

pub fn plan(shadow: Option<&ShadowDigest>, pod: Option<&PodDigest>, around: Circumstances<'_>) -> Step {
    let Some(shadow) = shadow else {
        // One that nothing holds and that has no owner may be a copy that somebody made.
        return pod.filter(|pod| pod.has_finalizer || !pod.is_orphan()).map_or(Step::Nothing, clear);
    };
    let ours = pod.filter(|pod| shadow.owns(pod));
    // Else nothing would tell any more whose it is once it is let go.
    if let Some(orphan) = ours.filter(|pod| pod.is_orphan() && (pod.has_finalizer || pod.deletion.is_none())) {
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
        (None, _) => {
            let lost = around.last.filter(|last| shadow.owns(last));
            let counted = lost.and_then(|last| Some((last.uid.clone(), with_restarts(shadow, last)?)));
            counted.map_or(Step::CreatePod, |(uid, status)| Step::CountLost { uid, status: Box::new(status) })
        }
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

/// The consumer wants it gone. How a pod ends that runs to completion is kept for it all the same.
fn unwind(shadow: &ShadowDigest, pod: Option<&PodDigest>, around: Circumstances<'_>) -> Step {
    let Some(pod) = pod else {
        return match shadow.has_finalizer() {
            true if around.pod_may_come => Step::Wait(COMES_WITHIN),
            true if shadow.is_finished() && shadow.origin_uid.is_some() => Step::ReleaseUnnoted,
            true => Step::ReleaseShadow,
            false => Step::Nothing,
        };
    };
    let counts = !shadow.is_finished() && !pod.always_restarts() && pod.has_finalizer;
    if counts && let Some(phase) = end(pod) {
        // Where its consumer did not ask for this, the end was none of its own.
        let disrupted = judge(pod) == Verdict::Disrupted;
        let reason = disrupted.then(|| reason::DELETED_WHILE_RUNNING.to_owned());
        let status = ShadowPodStatus { outcome: Some(pod.last_status()), reason, ..observed(shadow, pod, phase) };
        return Step::WriteStatus(Box::new(status));
    }
    let asked = shadow.deletion.and_then(|deletion| deletion.grace_seconds);
    let Some(deletion) = pod.deletion else {
        let (uid, grace_seconds) = (pod.uid.clone(), asked);
        return match pod.has_finalizer && !counts {
            true => Step::DropPod { uid, grace_seconds },
            false => Step::DeletePod { uid, grace_seconds },
        };
    };
    let nothing_follows = deletion.grace_seconds == 0 || pod.node.is_none();
    match asked.or(pod.own_grace) {
        _ if pod.has_finalizer && (!counts || nothing_follows) => Step::ReleasePod { uid: pod.uid.clone() },
        _ if around.node_is_lost && deletion.grace_seconds > 0 => delete(pod, Some(0)),
        Some(grace) if i64::from(grace) < deletion.grace_seconds => delete(pod, Some(grace)),
        _ => Step::Nothing,
    }
}

fn end(pod: &PodDigest) -> Option<ShadowPodPhase> {
    match pod.phase.as_str() {
        "Succeeded" => Some(ShadowPodPhase::Succeeded),
        "Failed" => Some(ShadowPodPhase::Failed),
        _ => None,
    }
}

/// The consumer wants it to run, and there is a pod.
fn attend(shadow: &ShadowDigest, pod: &PodDigest, around: Circumstances<'_>) -> Step {
    match (judge(pod), pod.deletion) {
        (Verdict::Finished(phase), _) => record(shadow, pod, phase, pod.last_status()),
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
fn replace(shadow: &ShadowDigest, pod: &PodDigest, around: Circumstances<'_>) -> Step {
    let last = &pod.last_status();
    if shadow.fails_on_disruption && disruption::had_started(last) {
        let cause = if around.node_is_lost { Cause::NodeLost } else { Cause::Deleted };
        return record(shadow, pod, ShadowPodPhase::Failed, disruption::failed(last, cause, around.now));
    }
    if pod.deletion.is_none() {
        return delete(pod, Some(0));
    }
    match with_restarts(shadow, pod) {
        Some(status) => Step::WriteStatus(Box::new(status)),
        None => release_if_deleted(pod),
    }
}

/// The status that also counts the restarts of this pod, which is lost or about to be; `None` if there is nothing to count
/// or it was counted before. That it was is told by the missing pod: whoever counts takes its UID away in the same write.
fn with_restarts(shadow: &ShadowDigest, pod: &PodDigest) -> Option<ShadowPodStatus> {
    let counted = shadow.status.pod_uid.is_none() && shadow.status.recreations > 0;
    let was_shown = shadow.status.pod_uid.is_some();
    if pod.restarts.is_empty() && was_shown || counted {
        return None;
    }
    let mut status = observed(shadow, pod, shadow.status.phase);
    status.pod_uid = None;
    status.recreations += 1;
    for (container, count) in &pod.restarts {
        *status.former_restarts.entry(container.clone()).or_default() += count;
    }
    Some(status)
}

fn record(shadow: &ShadowDigest, pod: &PodDigest, phase: ShadowPodPhase, outcome: RawObject) -> Step {
    Step::WriteStatus(Box::new(ShadowPodStatus { outcome: Some(outcome), ..observed(shadow, pod, phase) }))
}

fn show(shadow: &ShadowDigest, pod: &PodDigest, around: Circumstances<'_>) -> Step {
    let differs = pod.live.as_ref() != Some(&shadow.live) || pod.marks != shadow.marks;
    if differs && !around.update_waits {
        return Step::UpdatePod;
    }
    let mut status = observed(shadow, pod, phase(pod));
    if differs && shadow.status.reason.as_deref() == Some(reason::UPDATE_REFUSED) {
        status.reason = shadow.status.reason.clone();
        status.message = shadow.status.message.clone();
    }
    if status == shadow.status {
        return Step::Nothing;
    }
    let all_is_new = shadow.status == ShadowPodStatus::default() && shadow.generation.is_none_or(|it| it <= 1);
    let age = around.now.duration_since(pod.created);
    let young = !age.is_negative() && age < PENDING_SHOWN_AFTER;
    match status.phase {
        ShadowPodPhase::Pending if all_is_new && young => Step::Wait(PENDING_SHOWN_AFTER.unsigned_abs()),
        _ if all_is_new => Step::Show(Box::new(status)),
        _ => Step::WriteStatus(Box::new(status)),
    }
}

/// The status of a ShadowPod whose pod runs, but not with the latest changes.
pub fn update_refused(shadow: &ShadowDigest, pod: &PodDigest, message: String) -> ShadowPodStatus {
    ShadowPodStatus {
        reason: Some(reason::UPDATE_REFUSED.to_owned()),
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
