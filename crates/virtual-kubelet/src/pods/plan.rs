//! What to do about one local pod and its twin, as a pure function of what the indexes hold.

use serde_json::Value;
use spillway_api::RawObject;
use spillway_api::raw_pod::str_of;
use spillway_api::well_known::reason;

use super::digest::{Held, LocalDigest, RemoteDigest, Restarts, ShadowDigest};
use super::status::{self, Mirror};
use crate::twins::Mapping;

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Nothing,
    CreateShadow,
    /// Carry over what changed of the running pod.
    UpdateShadow,
    /// Delete the ShadowPod; with `grace` written on it first where it differs from what the pod itself asks for.
    DeleteShadow {
        uid: String,
        grace: Option<i64>,
    },
    /// Delete a ShadowPod whose local pod is not the one that is known here, if the API server agrees.
    DeleteFormer {
        uid: String,
        origin_uid: Option<String>,
    },
    /// Let a ShadowPod go that is being deleted: its outcome has been noted, or nobody waits for it any more.
    ReleaseShadow {
        uid: String,
        origin_uid: Option<String>,
        held: Held,
    },
    /// The user has become less patient since the ShadowPod was deleted.
    ShortenGrace {
        uid: String,
        grace: i64,
    },
    /// Everything on the other side is gone: let the local object go.
    FinishLocal {
        uid: String,
    },
    WriteStatus {
        uid: String,
        patch: RawObject,
    },
}

/// What is known of a pod's twin; only complete knowledge may be passed.
#[derive(Clone, Copy, Default)]
pub struct Twin<'a> {
    pub shadow: Option<&'a ShadowDigest>,
    pub pod: Option<&'a RemoteDigest>,
    /// The remote pod that is gone, as it was last seen.
    pub last: Option<&'a RemoteDigest>,
    /// A change that was not carried over is not tried again before its time.
    pub updates_held: bool,
    /// Why it was not.
    pub refusal: Option<&'a str>,
}

/// For a pod of a namespace that has a twin.
pub fn plan(local: Option<&LocalDigest>, twin: Twin<'_>, mirror: &Mirror<'_>) -> Step {
    let Some(local) = local else {
        return twin.shadow.map_or(Step::Nothing, |shadow| delete_former(shadow, twin));
    };
    match twin.shadow {
        // Of a former life of this name: it must be gone before anything else happens.
        Some(shadow) if shadow.origin_uid.as_deref().is_some_and(|uid| uid != local.uid) => {
            match delete_former(shadow, twin) {
                Step::Nothing => wait_for_former(local, mirror),
                step => step,
            }
        }
        Some(shadow) if local.has_ended && may_be_released(shadow, twin) => release(shadow),
        // Somebody over there deleted it while it ran: it is made again.
        Some(shadow) if local.deletion_grace.is_none() && was_deleted_while_running(shadow) => {
            release_after_its_pod(shadow, twin)
        }
        Some(shadow) if local.deletion_grace.is_some() => unwind(local, shadow, twin, mirror),
        Some(shadow) if must_update(local, shadow, twin) => Step::UpdateShadow,
        Some(shadow) => show(local, shadow, twin, mirror),
        None if local.deletion_grace.is_some() => match twin.pod {
            None => finish(local, last_of(local, twin), mirror),
            Some(_) => Step::Nothing, // on its way out with its ShadowPod
        },
        None if local.has_ended => Step::Nothing,
        None => match last_of(local, twin).filter(|last| local.restarts != Restarts::Always && last.has_succeeded) {
            // Whoever deleted the ShadowPod: what is done is done.
            Some(last) => show_end(local, last, mirror),
            None => Step::CreateShadow,
        },
    }
}

/// How this very pod was last seen over there, if it had ended.
fn last_of<'a>(local: &LocalDigest, twin: Twin<'a>) -> Option<&'a RemoteDigest> {
    twin.last.filter(|last| last.has_ended && last.origin_uid.as_deref() == Some(&*local.uid))
}

fn show_end(local: &LocalDigest, last: &RemoteDigest, mirror: &Mirror<'_>) -> Step {
    let now = local.status.open();
    let wanted = mirror.status(&last.status.open(), None, &Default::default(), local, &now, local.generation);
    write(local, &now, &wanted)
}

fn must_update(local: &LocalDigest, shadow: &ShadowDigest, twin: Twin<'_>) -> bool {
    let over = local.has_ended || shadow.is_deleting || shadow.status.outcome.is_some();
    !over && !twin.updates_held && shadow.live.as_ref() != Some(&local.live)
}

fn release(shadow: &ShadowDigest) -> Step {
    match shadow.held.clone() {
        Some(held) => Step::ReleaseShadow { uid: shadow.uid.clone(), origin_uid: shadow.origin_uid.clone(), held },
        None => Step::Nothing,
    }
}

fn release_after_its_pod(shadow: &ShadowDigest, twin: Twin<'_>) -> Step {
    if may_be_released(shadow, twin) { release(shadow) } else { Step::Nothing }
}

/// Its pod goes first.
fn may_be_released(shadow: &ShadowDigest, twin: Twin<'_>) -> bool {
    shadow.held.is_some() && twin.pod.is_none_or(|pod| pod.owner != shadow.uid)
}

fn was_deleted_while_running(shadow: &ShadowDigest) -> bool {
    shadow.is_deleting && shadow.status.reason.as_deref() == Some(reason::DELETED_WHILE_RUNNING)
}

fn delete_former(shadow: &ShadowDigest, twin: Twin<'_>) -> Step {
    if shadow.is_deleting {
        return release_after_its_pod(shadow, twin);
    }
    Step::DeleteFormer { uid: shadow.uid.clone(), origin_uid: shadow.origin_uid.clone() }
}

fn wait_for_former(local: &LocalDigest, mirror: &Mirror<'_>) -> Step {
    if local.deletion_grace.is_some() && local.never_started {
        return finish(local, None, mirror); // it has nothing over there and never had
    }
    let message = "a former pod of this name is still ending in the remote cluster";
    held_up(local, "FormerPodTerminating", message, mirror)
}

fn unwind(local: &LocalDigest, shadow: &ShadowDigest, twin: Twin<'_>, mirror: &Mirror<'_>) -> Step {
    // With no grace at all the object over there would go before its containers do.
    let grace = local.deletion_grace.unwrap_or(0).max(1);
    if shadow.status.outcome.is_some() && !local.has_ended {
        return show(local, shadow, twin, mirror); // it may go as soon as it is deleted
    }
    if !shadow.is_deleting {
        let asked = (Some(grace) != local.own_grace).then_some(grace);
        return Step::DeleteShadow { uid: shadow.uid.clone(), grace: asked };
    }
    let passed_on = shadow.deletion_grace.or(local.own_grace);
    if passed_on.is_none_or(|passed_on| grace < passed_on) {
        return Step::ShortenGrace { uid: shadow.uid.clone(), grace };
    }
    show(local, shadow, twin, mirror)
}

/// Shows on the local pod what is known of the remote one.
fn show(local: &LocalDigest, shadow: &ShadowDigest, twin: Twin<'_>, mirror: &Mirror<'_>) -> Step {
    let now = local.status.open();
    let own = twin.pod.filter(|pod| pod.owner == shadow.uid);
    if local.has_ended {
        // Its kubelet may add to what it said of the end, as long as it is the end that was recorded.
        let outcome = shadow.status.outcome.as_ref().map(|outcome| str_of(outcome, "phase").to_owned());
        let last = own.filter(|pod| pod.has_ended && !pod.is_deleting).map(|pod| pod.status.open());
        let same =
            |last: &RawObject| [last, &now].iter().all(|status| outcome.as_deref() == Some(str_of(status, "phase")));
        return match last.filter(same) {
            Some(last) => {
                write(local, &now, &mirror.status(&last, None, &shadow.status, local, &now, local.generation))
            }
            None => Step::Nothing,
        };
    }
    let wanted = match (&shadow.status.outcome, own) {
        (Some(outcome), _) => mirror.status(outcome, None, &shadow.status, local, &now, local.generation),
        // Being taken away, but not by its user: what comes after it is shown, its end is not.
        (None, Some(pod)) if pod.is_deleting && local.deletion_grace.is_none() => mirror.interrupted(&now),
        // Whether that was its end or only a disruption is the provider's to say, and what it says comes as the outcome.
        (None, Some(pod)) if pod.has_ended && local.deletion_grace.is_none() => match local.restarts {
            Restarts::Always => mirror.interrupted(&now),
            Restarts::OnFailure | Restarts::Never => return Step::Nothing,
        },
        (None, Some(pod)) => {
            let refusal = refusal(shadow, twin);
            let seen = seen_generation(local, shadow, pod, refusal, &now);
            let mut status = mirror.status(&pod.status.open(), Some(&pod.uid), &shadow.status, local, &now, seen);
            if let Some(why) = refusal {
                mirror.refused_update(&mut status, why, &now);
            }
            status
        }
        (None, None) => match (&shadow.status.reason, &shadow.status.message) {
            (Some(reason), message) => mirror.waiting(reason, message.as_deref().unwrap_or_default(), local, &now),
            (None, _) => return Step::Nothing,
        },
    };
    write(local, &now, &wanted)
}

/// Why a change of the running pod is not in effect: refused on its way, or at its end.
fn refusal<'a>(shadow: &'a ShadowDigest, twin: Twin<'a>) -> Option<&'a str> {
    let refused = shadow.status.reason.as_deref() == Some(reason::UPDATE_REFUSED);
    let told = refused.then(|| shadow.status.message.as_deref().unwrap_or_default());
    twin.refusal.filter(|_| twin.updates_held).or(told)
}

/// The generation of the local pod that its kubelet over there has seen: the latest, unless something of it is still on the
/// way or was refused.
fn seen_generation(
    local: &LocalDigest,
    shadow: &ShadowDigest,
    pod: &RemoteDigest,
    refusal: Option<&str>,
    now: &RawObject,
) -> Option<i64> {
    let first = shadow.generation.is_none_or(|generation| generation <= 1);
    let passed_on = first || shadow.status.observed_generation == shadow.generation;
    let carried = shadow.live.as_ref() == Some(&local.live) && refusal.is_none();
    // A deletion is a generation of its own, on every object.
    if local.deletion_grace.is_some() || carried && passed_on && pod.is_up_to_date {
        return local.generation;
    }
    now.get("observedGeneration").and_then(Value::as_i64)
}

/// Nothing of the pod is left on the other side. A kubelet says how a pod ended before it lets it go, and whoever holds the
/// object by a finalizer waits for that.
fn finish(local: &LocalDigest, last: Option<&RemoteDigest>, mirror: &Mirror<'_>) -> Step {
    if (local.has_finalizers || last.is_some()) && !local.has_ended {
        return match last {
            Some(last) => show_end(local, last, mirror),
            None => {
                let now = local.status.open();
                write(local, &now, &mirror.ended(&now))
            }
        };
    }
    if local.has_finalizers && local.deletion_grace == Some(0) {
        return Step::Nothing; // ours is done: it waits for its finalizers
    }
    Step::FinishLocal { uid: local.uid.clone() }
}

/// For a pod of a namespace that has no twin: it waits, visibly, and never fails.
pub fn without_twin(local: Option<&LocalDigest>, mapping: Mapping, mirror: &Mirror<'_>, namespace: &str) -> Step {
    let Some(local) = local else { return Step::Nothing };
    // One that ran may still do so in a twin namespace that only can't be told at the moment.
    if local.deletion_grace.is_some() && (local.never_started || mapping == Mapping::NotWanted) {
        return finish(local, None, mirror);
    }
    let message = match mapping {
        Mapping::Wanted => {
            format!("namespace {namespace} is to be offloaded, but has no namespace in the remote cluster yet")
        }
        Mapping::Unknown => format!(
            "nobody can tell whether namespace {namespace} is offloaded: there is no NamespaceMap of the cluster behind \
             this node"
        ),
        Mapping::NotWanted => format!(
            "namespace {namespace} is not offloaded to the cluster behind this node; offload it, or keep the pod off \
             virtual nodes (a DaemonSet: by node affinity 'liqo.io/type NotIn virtual-node')"
        ),
    };
    held_up(local, reason::OFFLOADING_BACK_OFF, &message, mirror)
}

/// Says why the provider does not take the pod: nothing of it runs.
pub fn refused(local: &LocalDigest, reason: &str, message: &str, mirror: &Mirror<'_>) -> Step {
    if local.has_ended {
        return Step::Nothing;
    }
    let now = local.status.open();
    let wanted = mirror.waiting(reason, message, local, &now);
    write(local, &now, &wanted)
}

/// Says why nothing happens to a pod that has not started, or that is to end.
pub fn held_up(local: &LocalDigest, reason: &str, message: &str, mirror: &Mirror<'_>) -> Step {
    if local.has_ended || !(local.never_started || local.deletion_grace.is_some()) {
        return Step::Nothing;
    }
    let now = local.status.open();
    let wanted = match local.never_started {
        true => mirror.waiting(reason, message, local, &now),
        false => status::explained(reason, message, &now),
    };
    write(local, &now, &wanted)
}

fn write(local: &LocalDigest, now: &RawObject, wanted: &RawObject) -> Step {
    match status::patch(now, wanted) {
        Some(patch) => Step::WriteStatus { uid: local.uid.clone(), patch },
        None => Step::Nothing,
    }
}

#[cfg(test)]
mod tests;
