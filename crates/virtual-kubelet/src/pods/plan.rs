//! What to do about one local pod and its twin, as a pure function of what the indexes hold.

use spillway_api::RawObject;
use spillway_api::well_known::reason;

use super::digest::{LocalDigest, RemoteDigest, ShadowDigest};
use super::status::{self, Mirror};

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Nothing,
    CreateShadow,
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
#[derive(Clone, Copy)]
pub struct Twin<'a> {
    pub shadow: Option<&'a ShadowDigest>,
    pub pod: Option<&'a RemoteDigest>,
}

/// For a pod of a namespace that has a twin.
pub fn plan(local: Option<&LocalDigest>, twin: Twin<'_>, mirror: &Mirror) -> Step {
    let Some(local) = local else {
        return twin.shadow.map_or(Step::Nothing, delete_former);
    };
    match twin.shadow {
        // Of a former life of this name: it must be gone before anything else happens.
        Some(shadow) if shadow.origin_uid.as_deref().is_some_and(|uid| uid != local.uid) => delete_former(shadow),
        Some(shadow) if local.deletion_grace.is_some() => unwind(local, shadow, twin.pod, mirror),
        Some(shadow) => show(local, shadow, twin.pod, mirror),
        None if local.deletion_grace.is_some() => match twin.pod {
            None => Step::FinishLocal { uid: local.uid.clone() },
            Some(_) => Step::Nothing, // on its way out with its ShadowPod
        },
        None if local.has_ended() => Step::Nothing,
        None => Step::CreateShadow,
    }
}

fn delete_former(shadow: &ShadowDigest) -> Step {
    if shadow.is_deleting {
        return Step::Nothing;
    }
    Step::DeleteFormer { uid: shadow.uid.clone(), origin_uid: shadow.origin_uid.clone() }
}

fn unwind(local: &LocalDigest, shadow: &ShadowDigest, pod: Option<&RemoteDigest>, mirror: &Mirror) -> Step {
    let grace = local.deletion_grace.unwrap_or(0);
    if !shadow.is_deleting {
        let asked = (Some(grace) != local.own_grace).then_some(grace);
        return Step::DeleteShadow { uid: shadow.uid.clone(), grace: asked };
    }
    let passed_on = shadow.deletion_grace.or(local.own_grace);
    if passed_on.is_none_or(|passed_on| grace < passed_on) {
        return Step::ShortenGrace { uid: shadow.uid.clone(), grace };
    }
    show(local, shadow, pod, mirror)
}

/// Shows on the local pod what is known of the remote one.
fn show(local: &LocalDigest, shadow: &ShadowDigest, pod: Option<&RemoteDigest>, mirror: &Mirror) -> Step {
    if local.has_ended() {
        return Step::Nothing;
    }
    let recreations = shadow.status.recreations;
    let wanted = match (&shadow.status.outcome, pod.filter(|pod| pod.owner == shadow.uid)) {
        (Some(outcome), _) => mirror.status(outcome, recreations, local),
        // Being taken away, but not by its user: what comes after it is shown, its end is not.
        (None, Some(pod)) if pod.is_deleting && local.deletion_grace.is_none() => return Step::Nothing,
        (None, Some(pod)) => mirror.status(&pod.status, recreations, local),
        (None, None) => match (&shadow.status.reason, &shadow.status.message) {
            (Some(reason), message) => mirror.waiting(reason, message.as_deref().unwrap_or_default(), local),
            (None, _) => return Step::Nothing,
        },
    };
    write(local, &wanted)
}

/// For a pod of a namespace that has no twin: it waits, visibly, and never fails.
pub fn without_twin(local: Option<&LocalDigest>, mirror: &Mirror, namespace: &str) -> Step {
    match local {
        Some(local) if local.deletion_grace.is_some() => Step::FinishLocal { uid: local.uid.clone() },
        Some(local) if local.never_started() => {
            let message = format!(
                "namespace {namespace} is not offloaded to the cluster behind this node; offload it, or keep the pod off \
                 virtual nodes (a DaemonSet: by node affinity 'liqo.io/type NotIn virtual-node')"
            );
            write(local, &mirror.waiting(reason::OFFLOADING_BACK_OFF, &message, local))
        }
        _ => Step::Nothing,
    }
}

/// Says on the local pod why the provider refuses it.
pub fn refused(local: &LocalDigest, reason: &str, message: &str, mirror: &Mirror) -> Step {
    if !local.never_started() {
        return Step::Nothing;
    }
    write(local, &mirror.waiting(reason, message, local))
}

fn write(local: &LocalDigest, wanted: &RawObject) -> Step {
    match status::patch(&local.status, wanted) {
        Some(patch) => Step::WriteStatus { uid: local.uid.clone(), patch },
        None => Step::Nothing,
    }
}

#[cfg(test)]
mod tests;
