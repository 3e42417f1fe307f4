use super::*;
use crate::digest::{PodDeletion, ShadowDeletion};
use serde_json::json;
use spillway_api::well_known::finalizer;

fn now() -> Timestamp {
    "2026-01-01T00:00:01Z".parse().unwrap()
}

fn later() -> Timestamp {
    "2026-01-01T00:00:02Z".parse().unwrap()
}

fn shadow() -> ShadowDigest {
    ShadowDigest {
        uid: "s1".into(),
        generation: Some(1),
        finalizers: vec![finalizer::SHADOW_POD.into()],
        ..ShadowDigest::default()
    }
}

fn running() -> PodDigest {
    PodDigest {
        uid: "p1".into(),
        owner: "s1".into(),
        has_finalizer: true,
        restart_policy: "Always".into(),
        scheduled: true,
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
        last_status: status.as_object().cloned(),
        ..running()
    }
}

fn deleted(pod: PodDigest, grace_seconds: i64) -> PodDigest {
    let requested = "2025-12-31T23:59:00Z".parse().unwrap();
    PodDigest { deletion: Some(PodDeletion { grace_seconds, requested }), ..pod }
}

fn deleting(grace_seconds: Option<u32>) -> ShadowDigest {
    ShadowDigest { deletion: Some(ShadowDeletion { grace_seconds }), ..shadow() }
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
    let Step::WriteStatus(status) = plan(Some(&shadow()), Some(&running()), now()) else { panic!("a write") };
    assert_eq!(*status, seen("p1", ShadowPodPhase::Running));
    assert_eq!(plan(Some(&with_status(*status)), Some(&running()), now()), Step::Nothing);
}

#[test]
fn a_pending_phase_is_written_only_when_it_lasts() {
    let pending = PodDigest { phase: "Pending".into(), ..running() };
    assert_eq!(plan(Some(&shadow()), Some(&pending), now()), Step::Wait(Duration::from_secs(2)));
    let step = plan(Some(&shadow()), Some(&pending), later());
    assert_eq!(step, Step::WriteStatus(Box::new(seen("p1", ShadowPodPhase::Pending))));
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
    assert_eq!(plan(Some(&shadow()), Some(&deleted(evicted, 0)), now()), release());
}

#[test]
fn a_pod_deleted_by_someone_else_keeps_its_grace_and_is_let_go_at_its_end() {
    assert_eq!(plan(Some(&shadow()), Some(&deleted(running(), 30)), now()), Step::Nothing, "it may still succeed");
    assert_eq!(plan(Some(&shadow()), Some(&deleted(ended("Never", "Failed"), 30)), now()), release());
    assert_eq!(plan(Some(&shadow()), Some(&deleted(running(), 0)), now()), release(), "forced");
    let unscheduled = PodDigest { scheduled: false, phase: "Pending".into(), ..running() };
    assert_eq!(plan(Some(&shadow()), Some(&deleted(unscheduled, 30)), now()), release());
}

#[test]
fn deletion_takes_the_pod_first_with_the_grace_that_was_asked_for() {
    let delete = |grace_seconds| Step::DeletePod { uid: "p1".into(), grace_seconds };
    assert_eq!(plan(Some(&deleting(None)), Some(&running()), now()), delete(None));
    assert_eq!(plan(Some(&deleting(Some(7))), Some(&running()), now()), delete(Some(7)));
    assert_eq!(plan(Some(&deleting(None)), Some(&deleted(running(), 30)), now()), release());
    let ending = PodDigest { has_finalizer: false, ..deleted(running(), 30) };
    assert_eq!(plan(Some(&deleting(None)), Some(&ending), now()), Step::Nothing);
    assert_eq!(plan(Some(&deleting(Some(1))), Some(&ending), now()), delete(Some(1)), "grace may shrink");
    assert_eq!(plan(Some(&deleting(Some(60))), Some(&ending), now()), Step::Nothing, "but not grow");
    assert_eq!(plan(Some(&deleting(None)), None, now()), Step::ReleaseShadow);
    let released = ShadowDigest { finalizers: vec!["other".into()], ..deleting(None) };
    assert_eq!(plan(Some(&released), None, now()), Step::Nothing);
}

#[test]
fn a_finished_or_unguarded_shadow_that_is_deleted_takes_its_pod_along() {
    let finished = ShadowDigest { status: seen("p1", ShadowPodPhase::Succeeded), ..deleting(None) };
    let delete = Step::DeletePod { uid: "p1".into(), grace_seconds: None };
    assert_eq!(plan(Some(&finished), Some(&ended("Never", "Succeeded")), now()), delete);
}

#[test]
fn a_pod_of_a_former_shadow_of_the_same_name_must_go_first() {
    let former = PodDigest { owner: "s0".into(), ..running() };
    assert_eq!(plan(Some(&shadow()), Some(&former), now()), Step::Nothing, "the garbage collector deletes it");
    assert_eq!(plan(Some(&shadow()), Some(&deleted(former.clone(), 30)), now()), release());
    assert_eq!(plan(Some(&deleting(None)), Some(&former), now()), Step::ReleaseShadow);
    let orphan = Step::ReleaseOrphan { uid: "p1".into(), owner: "s0".into() };
    assert_eq!(plan(None, Some(&deleted(former, 30)), now()), orphan);
    assert_eq!(plan(None, Some(&running()), now()), Step::Nothing);
    assert_eq!(plan(None, None, now()), Step::Nothing);
}
