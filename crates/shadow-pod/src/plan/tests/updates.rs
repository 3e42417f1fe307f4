//! Changes of a pod that runs.

use super::*;

#[test]
fn a_change_is_carried_over_to_a_living_pod_only() {
    let shown = with_status(seen("p1", ShadowPodPhase::Running));
    let current = Some("live".to_owned());
    for (live, marks) in [(None, 0), (Some("old".to_owned()), 0), (current, 1)] {
        let old = PodDigest { live, marks, ..running() };
        assert_eq!(plan(Some(&shown), Some(&old), now()), Step::UpdatePod);
        assert_eq!(plan(Some(&shown), Some(&deleted(old.clone(), 30)), now()), Step::Nothing);
        assert_ne!(
            plan(Some(&shown), Some(&PodDigest { phase: "Failed".into(), ..old.clone() }), now()),
            Step::UpdatePod
        );
        assert_ne!(plan(Some(&deleting(None)), Some(&old), now()), Step::UpdatePod);
    }
}

#[test]
fn a_refused_change_is_told_until_it_is_settled_and_hides_nothing() {
    let waits = Circumstances { update_waits: true, ..now() };
    let old = PodDigest { live: Some("old".into()), phase: "Pending".into(), ..running() };
    let refused = with_status(update_refused(&shadow(), &old, "no".into()));
    assert_eq!(
        (refused.status.phase, refused.status.reason.as_deref()),
        (ShadowPodPhase::Pending, Some("UpdateRefused"))
    );
    assert_eq!(plan(Some(&refused), Some(&old), waits), Step::Nothing);
    assert_eq!(plan(Some(&refused), Some(&old), now()), Step::UpdatePod, "its time has come");
    let Step::WriteStatus(runs) = plan(Some(&refused), Some(&PodDigest { phase: "Running".into(), ..old }), waits)
    else {
        panic!("a write")
    };
    assert_eq!((runs.phase, runs.message.as_deref()), (ShadowPodPhase::Running, Some("no")));
    let Step::WriteStatus(settled) = plan(Some(&refused), Some(&running()), now()) else { panic!("a write") };
    assert_eq!(*settled, seen("p1", ShadowPodPhase::Running));
}
