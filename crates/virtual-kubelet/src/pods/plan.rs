//! What to do about one local pod and its twin, as a pure function of what the indexes hold.

use spillway_api::RawObject;
use spillway_api::well_known::reason;

use super::digest::{LocalDigest, RemoteDigest, ShadowDigest};
use super::status::{self, Mirror};

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
    /// A change that the provider refused is not carried over again before its time.
    pub updates_held: bool,
}

/// For a pod of a namespace that has a twin.
pub fn plan(local: Option<&LocalDigest>, twin: Twin<'_>, mirror: &Mirror<'_>) -> Step {
    let Some(local) = local else {
        return twin.shadow.map_or(Step::Nothing, delete_former);
    };
    match twin.shadow {
        // Of a former life of this name: it must be gone before anything else happens.
        Some(shadow) if shadow.origin_uid.as_deref().is_some_and(|uid| uid != local.uid) => match delete_former(shadow)
        {
            Step::Nothing => wait_for_former(local, mirror),
            step => step,
        },
        Some(shadow) if local.deletion_grace.is_some() => unwind(local, shadow, twin, mirror),
        Some(shadow) if must_update(local, shadow, twin) => Step::UpdateShadow,
        Some(shadow) => show(local, shadow, twin, mirror),
        None if local.deletion_grace.is_some() => match twin.pod {
            None => finish(local, twin.last, mirror),
            Some(_) => Step::Nothing, // on its way out with its ShadowPod
        },
        None if local.has_ended => Step::Nothing,
        None => Step::CreateShadow,
    }
}

fn must_update(local: &LocalDigest, shadow: &ShadowDigest, twin: Twin<'_>) -> bool {
    let over = local.has_ended || shadow.is_deleting || shadow.status.outcome.is_some();
    !over && !twin.updates_held && shadow.live.as_ref() != Some(&local.live)
}

fn delete_former(shadow: &ShadowDigest) -> Step {
    if shadow.is_deleting {
        return Step::Nothing;
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
    if local.has_ended {
        return Step::Nothing;
    }
    let now = local.status.open();
    let wanted = match (&shadow.status.outcome, twin.pod.filter(|pod| pod.owner == shadow.uid)) {
        (Some(outcome), _) => mirror.status(outcome, &shadow.status, local, &now),
        // Being taken away, but not by its user: what comes after it is shown, its end is not.
        (None, Some(pod)) if pod.is_deleting && local.deletion_grace.is_none() => mirror.interrupted(&now),
        (None, Some(pod)) => mirror.status(&pod.status.open(), &shadow.status, local, &now),
        (None, None) => match (&shadow.status.reason, &shadow.status.message) {
            (Some(reason), message) => mirror.waiting(reason, message.as_deref().unwrap_or_default(), local, &now),
            (None, _) => return Step::Nothing,
        },
    };
    write(local, &now, &wanted)
}

/// Nothing of the pod is left on the other side. Whoever holds the object by a finalizer wants to see that it ended, and
/// how: a kubelet says so before it lets a pod go.
fn finish(local: &LocalDigest, last: Option<&RemoteDigest>, mirror: &Mirror<'_>) -> Step {
    if local.has_finalizers && !local.has_ended {
        let now = local.status.open();
        let wanted = match last.filter(|last| last.has_ended) {
            Some(last) => mirror.status(&last.status.open(), &Default::default(), local, &now),
            None => mirror.ended(&now),
        };
        return write(local, &now, &wanted);
    }
    if local.has_finalizers && local.deletion_grace == Some(0) {
        return Step::Nothing; // ours is done: it waits for its finalizers
    }
    Step::FinishLocal { uid: local.uid.clone() }
}

/// For a pod of a namespace that has no twin: it waits, visibly, and never fails. `wanted` says that a twin is on its way.
pub fn without_twin(local: Option<&LocalDigest>, wanted: bool, mirror: &Mirror<'_>, namespace: &str) -> Step {
    let Some(local) = local else { return Step::Nothing };
    // One that ran may still do so in a twin namespace that only can't be told at the moment.
    if local.deletion_grace.is_some() && (local.never_started || !wanted) {
        return finish(local, None, mirror);
    }
    let message = match wanted {
        true => format!("namespace {namespace} is to be offloaded, but has no namespace in the remote cluster yet"),
        false => format!(
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
