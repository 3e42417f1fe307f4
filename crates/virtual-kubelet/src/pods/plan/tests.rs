use super::*;
use serde_json::{Value, json};
use spillway_api::offloading::{ShadowPodPhase, ShadowPodStatus};

fn object(value: Value) -> RawObject {
    value.as_object().cloned().expect("an object")
}

fn mirror() -> Mirror {
    Mirror { node_ip: Some("10.0.0.1".into()) }
}

fn local() -> LocalDigest {
    LocalDigest {
        uid: "l1".into(),
        own_grace: Some(30),
        status: object(json!({"phase": "Pending"})),
        ..LocalDigest::default()
    }
}

fn shadow() -> ShadowDigest {
    ShadowDigest { uid: "s1".into(), origin_uid: Some("l1".into()), ..ShadowDigest::default() }
}

fn remote() -> RemoteDigest {
    RemoteDigest { owner: "s1".into(), status: object(json!({"phase": "Running"})), ..RemoteDigest::default() }
}

fn decide(local: Option<&LocalDigest>, shadow: Option<&ShadowDigest>, pod: Option<&RemoteDigest>) -> Step {
    plan(local, Twin { shadow, pod }, &mirror())
}

fn delete_former(origin: &str) -> Step {
    Step::DeleteFormer { uid: "s1".into(), origin_uid: Some(origin.into()) }
}

fn delete(grace: Option<i64>) -> Step {
    Step::DeleteShadow { uid: "s1".into(), grace }
}

#[test]
fn a_new_pod_is_created_and_a_finished_one_never_again() {
    assert_eq!(decide(Some(&local()), None, None), Step::CreateShadow);
    for phase in ["Succeeded", "Failed"] {
        let ended = LocalDigest { status: object(json!({"phase": phase})), ..local() };
        assert_eq!(decide(Some(&ended), None, None), Step::Nothing);
        assert_eq!(decide(Some(&ended), Some(&shadow()), Some(&remote())), Step::Nothing);
    }
}

#[test]
fn a_shadow_without_a_local_pod_is_deleted_once() {
    assert_eq!(decide(None, Some(&shadow()), None), delete_former("l1"));
    let going = ShadowDigest { is_deleting: true, ..shadow() };
    assert_eq!(decide(None, Some(&going), None), Step::Nothing);
    assert_eq!(decide(None, None, None), Step::Nothing);
}

#[test]
fn a_former_life_is_deleted_and_awaited_and_never_shown() {
    let former = ShadowDigest { origin_uid: Some("l0".into()), ..shadow() };
    assert_eq!(decide(Some(&local()), Some(&former), Some(&remote())), delete_former("l0"));
    let going = ShadowDigest { is_deleting: true, ..former.clone() };
    assert_eq!(decide(Some(&local()), Some(&going), Some(&remote())), Step::Nothing);
    let deleted = LocalDigest { deletion_grace: Some(30), ..local() };
    assert_eq!(decide(Some(&deleted), Some(&former), None), delete_former("l0"), "also when the new one goes already");
}

#[test]
fn deletion_passes_on_the_grace_that_differs() {
    let deleted = |grace| LocalDigest { deletion_grace: Some(grace), ..local() };
    assert_eq!(decide(Some(&deleted(30)), Some(&shadow()), Some(&remote())), delete(None));
    assert_eq!(decide(Some(&deleted(5)), Some(&shadow()), Some(&remote())), delete(Some(5)));
    let going = ShadowDigest { is_deleting: true, ..shadow() };
    let shorter = Step::ShortenGrace { uid: "s1".into(), grace: 1 };
    assert_eq!(decide(Some(&deleted(1)), Some(&going), Some(&remote())), shorter);
    let told = ShadowDigest { deletion_grace: Some(1), ..going.clone() };
    assert!(matches!(decide(Some(&deleted(1)), Some(&told), Some(&remote())), Step::WriteStatus { .. }), "told once");
}

#[test]
fn the_local_pod_goes_only_when_everything_remote_is_gone() {
    let deleted = LocalDigest { deletion_grace: Some(30), ..local() };
    let going = ShadowDigest { is_deleting: true, ..shadow() };
    let finish = Step::FinishLocal { uid: "l1".into() };
    assert_ne!(decide(Some(&deleted), Some(&going), None), finish);
    assert_eq!(decide(Some(&deleted), None, Some(&remote())), Step::Nothing);
    assert_eq!(decide(Some(&deleted), None, None), finish);
}

#[test]
fn the_end_of_a_disrupted_pod_is_not_shown() {
    let taken = RemoteDigest { is_deleting: true, status: object(json!({"phase": "Failed"})), ..remote() };
    assert_eq!(decide(Some(&local()), Some(&shadow()), Some(&taken)), Step::Nothing);
    let with_shadow = ShadowDigest { is_deleting: true, ..shadow() };
    assert_eq!(decide(Some(&local()), Some(&with_shadow), Some(&taken)), Step::Nothing, "nor with its ShadowPod");
    let other = RemoteDigest { owner: "s0".into(), ..remote() };
    assert_eq!(decide(Some(&local()), Some(&shadow()), Some(&other)), Step::Nothing, "nor is another shadow's pod");
}

#[test]
fn a_recorded_outcome_is_shown_without_the_pod() {
    let status = ShadowPodStatus {
        phase: ShadowPodPhase::Succeeded,
        outcome: Some(object(json!({"phase": "Succeeded"}))),
        ..ShadowPodStatus::default()
    };
    let done = ShadowDigest { status, ..shadow() };
    let Step::WriteStatus { uid, patch } = decide(Some(&local()), Some(&done), None) else { panic!("a write") };
    assert_eq!((uid.as_str(), &patch["phase"]), ("l1", &json!("Succeeded")));
}

#[test]
fn a_refusal_is_shown_with_its_reason() {
    let status = ShadowPodStatus {
        reason: Some("PodRefused".into()),
        message: Some("exceeded quota".into()),
        ..ShadowPodStatus::default()
    };
    let held = ShadowDigest { status, ..shadow() };
    let Step::WriteStatus { patch, .. } = decide(Some(&local()), Some(&held), None) else { panic!("a write") };
    assert_eq!((&patch["reason"], &patch["message"]), (&json!("PodRefused"), &json!("exceeded quota")));
}

#[test]
fn a_pod_of_a_namespace_without_a_twin_waits_and_never_fails() {
    let Step::WriteStatus { patch, .. } = without_twin(Some(&local()), &mirror(), "kube-system") else {
        panic!("a write")
    };
    assert_eq!(patch["reason"], json!("OffloadingBackOff"));
    assert!(!patch.contains_key("phase"), "it stays Pending");
    let running = LocalDigest { status: object(json!({"phase": "Running", "containerStatuses": []})), ..local() };
    assert_eq!(without_twin(Some(&running), &mirror(), "x"), Step::Nothing);
    let deleted = LocalDigest { deletion_grace: Some(30), ..local() };
    assert_eq!(without_twin(Some(&deleted), &mirror(), "x"), Step::FinishLocal { uid: "l1".into() });
}
