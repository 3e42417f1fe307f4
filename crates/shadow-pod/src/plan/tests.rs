use super::*;
use crate::digest::{PodDeletion, ShadowDeletion};
use rstest::rstest;
use serde_json::json;
use spillway_api::Packed;
use spillway_api::well_known::finalizer;

mod disruption;
mod removal;
mod updates;

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
