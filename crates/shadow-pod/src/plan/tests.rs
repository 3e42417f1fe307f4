use super::*;
use crate::digest::{PodDeletion, ShadowDeletion};
use rstest::rstest;
use serde_json::json;
use spillway_api::Packed;
use spillway_api::well_known::finalizer;

fn at(now: &str) -> Circumstances<'static> {
    Circumstances {
        now: now.parse().unwrap(),
        last: None,
        pod_may_come: false,
        node_is_lost: false,
        update_waits: false,
    }
}

fn now() -> Circumstances<'static> {
    at("2026-01-01T00:00:01Z")
}

fn later() -> Circumstances<'static> {
    at("2026-01-01T00:00:30Z")
}

fn shadow() -> ShadowDigest {
    ShadowDigest {
        uid: "s1".into(),
        generation: Some(1),
        finalizers: vec![finalizer::SHADOW_POD.into()],
        origin_uid: Some("l1".into()),
        live: "live".into(),
        ..ShadowDigest::default()
    }
}

fn running() -> PodDigest {
    PodDigest {
        uid: "p1".into(),
        owner: "s1".into(),
        origin_uid: Some("l1".into()),
        has_finalizer: true,
        restart_policy: "Always".into(),
        own_grace: Some(30),
        node: Some("n1".into()),
        live: Some("live".into()),
        phase: "Running".into(),
        created: Timestamp::from_second(1_767_225_600).unwrap(), // midnight, 2026-01-01
        ..PodDigest::default()
    }
}

fn ended(policy: &str, phase: &str) -> PodDigest {
    let status = json!({"phase": phase, "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-01-01T00:00:00Z"}}}]});
    PodDigest {
        restart_policy: policy.into(),
        phase: phase.into(),
        last_status: status.as_object().map(Packed::of),
        ..running()
    }
}

fn deleted(pod: PodDigest, grace_seconds: i64) -> PodDigest {
    let requested = "2025-12-31T23:59:00Z".parse().unwrap();
    PodDigest { deletion: Some(PodDeletion { grace_seconds, requested }), deleted_alive: !pod.has_ended(), ..pod }
}

fn deleting(grace_seconds: Option<u32>) -> ShadowDigest {
    ShadowDigest { deletion: Some(ShadowDeletion { grace_seconds, requested: Timestamp::UNIX_EPOCH }), ..shadow() }
}

fn with_status(status: ShadowPodStatus) -> ShadowDigest {
    ShadowDigest { status, ..shadow() }
}

fn seen(uid: &str, phase: ShadowPodPhase) -> ShadowPodStatus {
    ShadowPodStatus { phase, pod_uid: Some(uid.into()), observed_generation: Some(1), ..ShadowPodStatus::default() }
}

fn release() -> Step {
    Step::ReleasePod { uid: "p1".into() }
}

fn clearance(owner: &str) -> Step {
    Step::ReleaseOrphan { uid: "p1".into(), owner: owner.into(), origin_uid: Some("l1".into()) }
}

#[test]
fn a_shadow_without_a_pod_gets_one_unless_it_finished() {
    assert_eq!(plan(Some(&shadow()), None, now()), Step::CreatePod);
    let gone = with_status(seen("p1", ShadowPodPhase::Running));
    assert_eq!(plan(Some(&gone), None, now()), Step::CreatePod);
    for phase in [ShadowPodPhase::Succeeded, ShadowPodPhase::Failed] {
        assert_eq!(plan(Some(&with_status(seen("p1", phase))), None, now()), Step::Nothing);
    }
}

#[test]
fn a_shadow_without_our_finalizer_is_guarded_before_anything_runs() {
    let bare = ShadowDigest { finalizers: vec![], ..shadow() };
    assert_eq!(plan(Some(&bare), None, now()), Step::GuardShadow);
}

#[test]
fn a_running_pod_is_shown_once() {
    let Step::Show(status) = plan(Some(&shadow()), Some(&running()), now()) else { panic!("a write") };
    assert_eq!(*status, seen("p1", ShadowPodPhase::Running));
    assert_eq!(plan(Some(&with_status(*status)), Some(&running()), now()), Step::Nothing);
    let changed = ShadowDigest { generation: Some(2), ..shadow() };
    let step = plan(Some(&changed), Some(&running()), now());
    assert!(matches!(step, Step::WriteStatus(_)), "its consumer waits to hear that a change has arrived: {step:?}");
}

#[test]
fn a_pending_phase_is_written_only_when_it_lasts() {
    let pending = PodDigest { phase: "Pending".into(), ..running() };
    assert_eq!(plan(Some(&shadow()), Some(&pending), now()), Step::Wait(Duration::from_secs(30)));
    let step = plan(Some(&shadow()), Some(&pending), later());
    assert_eq!(step, Step::Show(Box::new(seen("p1", ShadowPodPhase::Pending))));
}

#[test]
fn a_recreated_pod_counts_once_however_often_one_looks() {
    let before = with_status(seen("p0", ShadowPodPhase::Running));
    let Step::WriteStatus(status) = plan(Some(&before), Some(&running()), now()) else { panic!("a write") };
    assert_eq!(status.recreations, 1);
    assert_eq!(plan(Some(&before), Some(&running()), now()), Step::WriteStatus(status.clone()), "also after a crash");
    assert_eq!(plan(Some(&with_status(*status)), Some(&running()), now()), Step::Nothing);
}

#[test]
fn a_finished_pod_is_recorded_before_it_is_let_go() {
    let finished = ended("Never", "Succeeded");
    let Step::WriteStatus(status) = plan(Some(&shadow()), Some(&finished), now()) else { panic!("a write") };
    assert_eq!((status.phase, status.outcome.is_some()), (ShadowPodPhase::Succeeded, true));
    assert_eq!(plan(Some(&shadow()), Some(&deleted(finished.clone(), 0)), now()), Step::WriteStatus(status.clone()));
    let recorded = with_status(*status);
    assert_eq!(plan(Some(&recorded), Some(&finished), now()), Step::Nothing, "it stays as any finished pod does");
    assert_eq!(plan(Some(&recorded), Some(&deleted(finished, 0)), now()), release());
}

#[test]
fn a_disrupted_pod_is_replaced() {
    let evicted = ended("Always", "Failed");
    assert_eq!(
        plan(Some(&shadow()), Some(&evicted), now()),
        Step::DeletePod { uid: "p1".into(), grace_seconds: Some(0) }
    );
    let shown = with_status(seen("p1", ShadowPodPhase::Running));
    assert_eq!(plan(Some(&shown), Some(&deleted(evicted, 0)), now()), release());
}

#[test]
fn one_that_is_lost_before_it_was_ever_shown_is_counted_first() {
    let lost = deleted(ended("Always", "Failed"), 0);
    let unheld = PodDigest { has_finalizer: false, ..lost.clone() };
    let gone = Circumstances { last: Some(&unheld), ..now() };
    for (pod, around, then) in [(Some(&lost), now(), release()), (None, gone, Step::CreatePod)] {
        let (Step::WriteStatus(counted) | Step::CountLost { status: counted, .. }) = plan(Some(&shadow()), pod, around)
        else {
            panic!("a write")
        };
        assert_eq!((counted.recreations, &counted.pod_uid, counted.former_restarts.len()), (1, &None, 0));
        assert_eq!(plan(Some(&with_status(*counted)), pod, around), then);
    }
}

#[test]
fn a_pod_deleted_by_someone_else_keeps_its_grace_and_is_let_go_at_its_end() {
    let shown = with_status(seen("p1", ShadowPodPhase::Running));
    assert_eq!(plan(Some(&shown), Some(&deleted(running(), 30)), now()), Step::Nothing, "it may still succeed");
    assert_eq!(plan(Some(&shown), Some(&deleted(ended("Never", "Failed"), 30)), now()), release());
    assert_eq!(plan(Some(&shown), Some(&deleted(running(), 0)), now()), release(), "forced");
    let unscheduled = PodDigest { node: None, phase: "Pending".into(), ..running() };
    assert_eq!(plan(Some(&shown), Some(&deleted(unscheduled, 30)), now()), release());
}

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
