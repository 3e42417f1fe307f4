//! What is taken away by the cluster, not by its consumer.

use super::*;

fn with_restarts(pod: PodDigest) -> PodDigest {
    let status = json!({"phase": pod.phase, "containerStatuses": [{"name": "main", "restartCount": 3,
        "state": {"terminated": {"finishedAt": "2026-01-01T00:00:00Z"}}}]});
    let restarts = [("main".to_owned(), 3)].into();
    PodDigest { last_status: status.as_object().map(Packed::of), restarts, ..pod }
}

#[test]
fn restarts_of_a_lost_pod_are_counted_once_before_it_is_let_go() {
    let lost = with_restarts(deleted(ended("Always", "Failed"), 0));
    let first = seen("p1", ShadowPodPhase::Running);
    let earlier = ShadowPodStatus { former_restarts: [("main".to_owned(), 2)].into(), recreations: 1, ..first.clone() };
    for (before, recreations, former) in [
        (ShadowPodStatus::default(), 1, 3),          // never shown
        (first.clone(), 1, 3),                       // shown
        (seen("p0", ShadowPodPhase::Running), 2, 3), // itself not shown, but the one before it
        (earlier, 2, 5),
    ] {
        let Step::WriteStatus(counted) = plan(Some(&with_status(before.clone())), Some(&lost), now()) else {
            panic!("a write")
        };
        assert_eq!(
            (counted.recreations, counted.former_restarts["main"], &counted.pod_uid),
            (recreations, former, &None)
        );
        assert_eq!(counted.phase, before.phase);
        let counted = with_status(*counted);
        assert_eq!(plan(Some(&counted), Some(&lost), now()), release(), "also after a crash");
        assert_eq!(plan(Some(&counted), None, now()), Step::CreatePod);
        let next = PodDigest { uid: "p2".into(), ..running() };
        let Step::WriteStatus(after) = plan(Some(&counted), Some(&next), now()) else { panic!("a write") };
        assert_eq!((after.recreations, after.former_restarts["main"]), (recreations, former));
        assert_eq!(after.pod_uid.as_deref(), Some("p2"));
        assert_eq!(plan(Some(&with_status(*after)), Some(&next), now()), Step::Nothing);
    }
    let gone = Circumstances { last: Some(&lost), ..now() };
    let Step::CountLost { uid, status: counted } = plan(Some(&with_status(first.clone())), None, gone) else {
        panic!("a count")
    };
    assert_eq!(uid, "p1");
    assert_eq!((counted.recreations, counted.former_restarts["main"]), (1, 3), "also of one that nothing held");
    assert_eq!(plan(Some(&with_status(*counted)), None, gone), Step::CreatePod, "once");
    let of_another = PodDigest { owner: "s0".into(), ..lost.clone() };
    let another = Circumstances { last: Some(&of_another), ..now() };
    assert_eq!(plan(Some(&with_status(first.clone())), None, another), Step::CreatePod, "of its own pods alone");
    let quiet = deleted(ended("Always", "Failed"), 0);
    assert_eq!(plan(Some(&with_status(first)), Some(&quiet), now()), release(), "nothing to count costs nothing");
}

#[rstest]
#[case("Always")]
#[case("OnFailure")]
#[case("Never")]
fn what_must_not_run_twice_fails_when_it_is_disrupted(#[case] policy: &str) {
    let fails = ShadowDigest { fails_on_disruption: true, ..shadow() };
    let started = |phase: &str| PodDigest {
        restart_policy: policy.into(),
        ..with_restarts(PodDigest { phase: phase.into(), ..running() })
    };
    let evicted = {
        let mut evicted = started("Failed");
        let mut status = evicted.last_status();
        status.insert("reason".into(), json!("Evicted"));
        evicted.last_status = Some(Packed::of(&status));
        evicted
    };
    for lost in [evicted.clone(), deleted(evicted.clone(), 0), deleted(started("Running"), 0)] {
        let Step::WriteStatus(status) = plan(Some(&fails), Some(&lost), now()) else { panic!("a write") };
        assert_eq!(status.phase, ShadowPodPhase::Failed);
        let outcome = status.outcome.clone().unwrap();
        assert_eq!(
            (outcome["phase"].as_str(), crate::digest::has_condition(&outcome, "DisruptionTarget")),
            (Some("Failed"), true)
        );
        let over = ShadowDigest { status: *status, ..fails.clone() };
        assert_eq!(plan(Some(&over), None, now()), Step::Nothing, "never again");
        let gone = if lost.deletion.is_some() { release() } else { Step::Nothing };
        assert_eq!(plan(Some(&over), Some(&lost), now()), gone);
    }
    let fresh = PodDigest { restart_policy: policy.into(), phase: "Pending".into(), ..deleted(running(), 0) };
    let shown = ShadowDigest { status: seen("p1", ShadowPodPhase::Pending), ..fails.clone() };
    assert_eq!(plan(Some(&shown), Some(&fresh), now()), release(), "one that never started is made anew");
    assert_ne!(
        plan(Some(&shadow()), Some(&deleted(evicted, 0)), now()),
        Step::Nothing,
        "as is one without the annotation"
    );
    assert_eq!(
        plan(Some(&fails), Some(&deleted(started("Running"), 30)), now()),
        Step::Nothing,
        "it may still succeed"
    );
}

#[test]
fn a_pod_on_a_lost_node_is_forced_only_by_policy_and_only_when_it_is_to_go() {
    let lost = Circumstances { node_is_lost: true, ..now() };
    let force = Step::DeletePod { uid: "p1".into(), grace_seconds: Some(0) };
    let stuck = deleted(running(), 30);
    assert_eq!(plan(Some(&shadow()), Some(&stuck), lost), force);
    assert_eq!(plan(Some(&shadow()), Some(&stuck), now()), Step::Nothing);
    let shown = with_status(seen("p1", ShadowPodPhase::Running));
    assert_eq!(plan(Some(&shown), Some(&running()), lost), Step::Nothing, "the node may come back");
    assert_eq!(plan(Some(&deleting(None)), Some(&stuck), lost), release());
    let released = PodDigest { has_finalizer: false, ..stuck };
    assert_eq!(plan(Some(&deleting(None)), Some(&released), lost), force);
    assert_eq!(
        plan(Some(&deleting(None)), Some(&PodDigest { has_finalizer: false, ..deleted(running(), 0) }), lost),
        Step::Nothing
    );
}
