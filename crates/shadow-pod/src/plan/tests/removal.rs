//! What is deleted, and whose it is.

use super::*;

#[test]
fn deletion_takes_the_pod_first_with_the_grace_that_was_asked_for() {
    let delete = |grace_seconds| Step::DeletePod { uid: "p1".into(), grace_seconds };
    let drop = |grace_seconds| Step::DropPod { uid: "p1".into(), grace_seconds };
    assert_eq!(plan(Some(&deleting(None)), Some(&running()), now()), drop(None));
    assert_eq!(plan(Some(&deleting(Some(7))), Some(&running()), now()), drop(Some(7)));
    let let_go = PodDigest { has_finalizer: false, ..running() };
    assert_eq!(plan(Some(&deleting(None)), Some(&let_go), now()), delete(None), "also after a crash");
    assert_eq!(plan(Some(&deleting(None)), Some(&deleted(running(), 30)), now()), release());
    let ending = PodDigest { has_finalizer: false, ..deleted(running(), 30) };
    assert_eq!(plan(Some(&deleting(None)), Some(&ending), now()), Step::Nothing);
    assert_eq!(plan(Some(&deleting(Some(1))), Some(&ending), now()), delete(Some(1)), "grace may shrink");
    assert_eq!(plan(Some(&deleting(Some(60))), Some(&ending), now()), Step::Nothing, "but not grow");
    let patient = PodDigest { has_finalizer: false, ..deleted(running(), 3600) };
    assert_eq!(
        plan(Some(&deleting(None)), Some(&patient), now()),
        delete(Some(30)),
        "its own, where another gave more"
    );
    assert_eq!(plan(Some(&deleting(None)), None, now()), Step::ReleaseShadow);
    let coming = Circumstances { pod_may_come: true, ..now() };
    assert_eq!(
        plan(Some(&deleting(None)), None, coming),
        Step::Wait(COMES_WITHIN),
        "one that was just made goes first"
    );
    let released = ShadowDigest { finalizers: vec!["other".into()], ..deleting(None) };
    assert_eq!(plan(Some(&released), None, now()), Step::Nothing);
}

#[test]
fn a_finished_or_unguarded_shadow_that_is_deleted_takes_its_pod_along() {
    let finished = ShadowDigest { status: seen("p1", ShadowPodPhase::Succeeded), ..deleting(None) };
    let drop = Step::DropPod { uid: "p1".into(), grace_seconds: None };
    assert_eq!(plan(Some(&finished), Some(&ended("Never", "Succeeded")), now()), drop);
    assert_eq!(plan(Some(&finished), None, now()), Step::ReleaseUnnoted, "its consumer may not have noted it yet");
}

#[rstest]
#[case("OnFailure")]
#[case("Never")]
fn how_a_pod_ends_that_its_consumer_deletes_is_recorded_before_it_is_let_go(#[case] policy: &str) {
    let of = |pod: PodDigest| PodDigest { restart_policy: policy.into(), ..pod };
    let shadow = deleting(Some(7));
    let delete = Step::DeletePod { uid: "p1".into(), grace_seconds: Some(7) };
    assert_eq!(plan(Some(&shadow), Some(&of(running())), now()), delete, "and not let go yet");
    assert_eq!(plan(Some(&shadow), Some(&of(deleted(running(), 7))), now()), Step::Nothing, "its end is to come");
    for pod in [ended(policy, "Succeeded"), deleted(ended(policy, "Succeeded"), 0)] {
        let Step::WriteStatus(status) = plan(Some(&shadow), Some(&pod), now()) else { panic!("a write") };
        assert_eq!((status.phase, status.outcome.is_some()), (ShadowPodPhase::Succeeded, true));
        let recorded = ShadowDigest { status: *status, ..shadow.clone() };
        assert_eq!(plan(Some(&recorded), Some(&deleted(pod, 0)), now()), release());
    }
    assert_eq!(plan(Some(&shadow), Some(&of(deleted(running(), 0))), now()), release(), "forced: nothing to learn");
    let unscheduled = PodDigest { node: None, phase: "Pending".into(), ..of(deleted(running(), 7)) };
    assert_eq!(plan(Some(&shadow), Some(&unscheduled), now()), release(), "nor of one that never was anywhere");
}

#[test]
fn a_pod_of_a_former_shadow_of_the_same_name_must_go_first() {
    let former = PodDigest { owner: "s0".into(), ..running() };
    assert_eq!(plan(Some(&shadow()), Some(&former), now()), Step::Nothing, "the garbage collector deletes it");
    assert_eq!(plan(Some(&shadow()), Some(&deleted(former.clone(), 30)), now()), clearance("s0"));
    assert_eq!(plan(Some(&deleting(None)), Some(&former), now()), Step::ReleaseShadow);
    assert_eq!(plan(None, Some(&deleted(former, 30)), now()), clearance("s0"));
    assert_eq!(plan(None, Some(&running()), now()), Step::Nothing);
    assert_eq!(plan(None, None, now()), Step::Nothing);
}

#[test]
fn a_pod_that_lost_its_owner_gets_it_back_or_goes() {
    let orphan = PodDigest { owner: String::new(), ..running() };
    let clear = Step::DeleteOrphan { uid: "p1".into(), origin_uid: Some("l1".into()) };
    assert_eq!(plan(None, Some(&orphan), now()), clear);
    assert_eq!(plan(None, Some(&deleted(orphan.clone(), 30)), now()), clearance(""));
    let unheld = PodDigest { has_finalizer: false, ..orphan.clone() };
    assert_eq!(plan(None, Some(&unheld), now()), Step::Nothing, "it may be a copy that somebody made");
    assert_eq!(plan(Some(&shadow()), Some(&unheld), now()), Step::AdoptPod { uid: "p1".into() });
    assert_eq!(plan(Some(&shadow()), Some(&deleted(unheld, 30)), now()), Step::Nothing, "it goes by itself");
    assert_eq!(plan(Some(&shadow()), Some(&orphan), now()), Step::AdoptPod { uid: "p1".into() });
    let another = ShadowDigest { origin_uid: Some("l2".into()), ..shadow() };
    assert_eq!(plan(Some(&another), Some(&orphan), now()), clear, "of a former life of that name");
    let unmarked = ShadowDigest { origin_uid: None, ..shadow() };
    assert_eq!(
        plan(Some(&unmarked), Some(&PodDigest { origin_uid: None, ..orphan.clone() }), now()),
        Step::DeleteOrphan { uid: "p1".into(), origin_uid: None }
    );
    assert_eq!(plan(Some(&deleting(Some(5))), Some(&orphan), now()), Step::AdoptPod { uid: "p1".into() });
}
