use super::*;
use serde_json::{Value, json};
use spillway_api::offloading::{ShadowPodPhase, ShadowPodStatus};

use crate::addresses::Addresses;
use jiff::Timestamp;
use spillway_api::Packed;

fn object(value: Value) -> RawObject {
    value.as_object().cloned().expect("an object")
}

const ADDRESSES: &Addresses = &Addresses::NONE;

fn mirror() -> Mirror<'static> {
    Mirror { node_ip: Some("10.0.0.1"), addresses: ADDRESSES, at: Timestamp::UNIX_EPOCH }
}

fn packed(status: Value) -> Packed {
    Packed::of(&object(status))
}

fn local() -> LocalDigest {
    LocalDigest {
        uid: "l1".into(),
        own_grace: Some(30),
        never_started: true,
        live: "same".into(),
        status: packed(json!({"phase": "Pending"})),
        ..LocalDigest::default()
    }
}

fn shadow() -> ShadowDigest {
    ShadowDigest {
        uid: "s1".into(),
        origin_uid: Some("l1".into()),
        live: Some("same".into()),
        ..ShadowDigest::default()
    }
}

fn remote() -> RemoteDigest {
    RemoteDigest { owner: "s1".into(), status: packed(json!({"phase": "Running"})), ..RemoteDigest::default() }
}

fn decide(local: Option<&LocalDigest>, shadow: Option<&ShadowDigest>, pod: Option<&RemoteDigest>) -> Step {
    plan(local, Twin { shadow, pod, ..Twin::default() }, &mirror())
}

fn delete_former(origin: &str) -> Step {
    Step::DeleteFormer { uid: "s1".into(), origin_uid: Some(origin.into()) }
}

fn finish() -> Step {
    Step::FinishLocal { uid: "l1".into() }
}

fn delete(grace: Option<i64>) -> Step {
    Step::DeleteShadow { uid: "s1".into(), grace }
}

#[test]
fn a_new_pod_is_created_and_a_finished_one_never_again() {
    assert_eq!(decide(Some(&local()), None, None), Step::CreateShadow);
    for phase in ["Succeeded", "Failed"] {
        let ended = LocalDigest { status: packed(json!({"phase": phase})), has_ended: true, ..local() };
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
    let Step::WriteStatus { patch, .. } = decide(Some(&local()), Some(&going), Some(&remote())) else {
        panic!("it says what it waits for")
    };
    assert_eq!((&patch["reason"], patch.get("phase")), (&json!("FormerPodTerminating"), None));
    let deleted = LocalDigest { deletion_grace: Some(30), ..local() };
    assert_eq!(decide(Some(&deleted), Some(&former), None), delete_former("l0"), "also when the new one goes already");
    assert_eq!(decide(Some(&deleted), Some(&going), None), finish(), "which has nothing over there to wait for");
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
    assert_ne!(decide(Some(&deleted), Some(&going), None), finish());
    assert_eq!(decide(Some(&deleted), None, Some(&remote())), Step::Nothing);
    assert_eq!(decide(Some(&deleted), None, None), finish());
}

/// That it is being taken away, and nothing of how it ends.
fn only_says_so(step: Step) -> bool {
    let Step::WriteStatus { patch, .. } = step else { return false };
    patch["reason"] == json!("RemotePodTerminating") && !patch.contains_key("phase")
}

#[test]
fn the_end_of_a_disrupted_pod_is_not_shown() {
    let taken = RemoteDigest { is_deleting: true, status: packed(json!({"phase": "Failed"})), ..remote() };
    assert!(only_says_so(decide(Some(&local()), Some(&shadow()), Some(&taken))));
    let with_shadow = ShadowDigest { is_deleting: true, ..shadow() };
    assert!(only_says_so(decide(Some(&local()), Some(&with_shadow), Some(&taken))), "nor with its ShadowPod");
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
    let Step::WriteStatus { patch, .. } = without_twin(Some(&local()), Mapping::NotWanted, &mirror(), "kube-system")
    else {
        panic!("a write")
    };
    assert_eq!(patch["reason"], json!("OffloadingBackOff"));
    assert!(!patch.contains_key("phase"), "it stays Pending");
    let running = LocalDigest { never_started: false, status: packed(json!({"phase": "Running"})), ..local() };
    assert_eq!(without_twin(Some(&running), Mapping::NotWanted, &mirror(), "x"), Step::Nothing);
    let deleted = LocalDigest { deletion_grace: Some(30), ..local() };
    assert_eq!(without_twin(Some(&deleted), Mapping::NotWanted, &mirror(), "x"), finish());
    assert_eq!(without_twin(Some(&deleted), Mapping::Wanted, &mirror(), "x"), finish(), "it never had a twin");
    let ending = LocalDigest { deletion_grace: Some(30), ..running };
    assert_eq!(without_twin(Some(&ending), Mapping::NotWanted, &mirror(), "x"), finish());
    let Step::WriteStatus { patch, .. } = without_twin(Some(&ending), Mapping::Unknown, &mirror(), "x") else {
        panic!("a write")
    };
    assert_eq!(patch["reason"], json!("OffloadingBackOff"), "it may still run over there: it waits, and says so");
}

#[test]
fn a_change_of_a_running_pod_is_carried_over_unless_it_was_refused() {
    let changed = LocalDigest { live: "other".into(), ..local() };
    assert_eq!(decide(Some(&changed), Some(&shadow()), Some(&remote())), Step::UpdateShadow);
    let (shadow, pod) = (shadow(), remote());
    let held = Twin { shadow: Some(&shadow), pod: Some(&pod), updates_held: true, ..Twin::default() };
    assert!(matches!(plan(Some(&changed), held, &mirror()), Step::WriteStatus { .. }), "its status goes on");
    let deleted = LocalDigest { live: "other".into(), deletion_grace: Some(30), ..local() };
    assert_eq!(decide(Some(&deleted), Some(&shadow), Some(&pod)), delete(None));
    let unmarked = ShadowDigest { live: None, ..shadow };
    assert_eq!(decide(Some(&local()), Some(&unmarked), Some(&pod)), Step::UpdateShadow, "of an older version");
}

#[test]
fn who_holds_a_deleted_pod_by_a_finalizer_sees_how_it_ended_first() {
    let held = LocalDigest {
        deletion_grace: Some(30),
        has_finalizers: true,
        never_started: false,
        status: packed(json!({"phase": "Running"})),
        ..local()
    };
    let last = RemoteDigest {
        has_ended: true,
        origin_uid: Some("l1".into()),
        status: packed(json!({"phase": "Succeeded"})),
        ..remote()
    };
    let twin = Twin { last: Some(&last), ..Twin::default() };
    let phase = |step| match step {
        Step::WriteStatus { patch, .. } => patch["phase"].clone(),
        step => panic!("{step:?}"),
    };
    assert_eq!(phase(plan(Some(&held), twin, &mirror())), json!("Succeeded"));
    assert_eq!(phase(plan(Some(&held), Twin::default(), &mirror())), json!("Failed"), "nobody saw how");
    let former = RemoteDigest { origin_uid: Some("l0".into()), ..last.clone() };
    let of_another = Twin { last: Some(&former), ..Twin::default() };
    assert_eq!(phase(plan(Some(&held), of_another, &mirror())), json!("Failed"), "that was another life");
    let free = LocalDigest { has_finalizers: false, status: held.status.clone(), deletion_grace: Some(30), ..local() };
    assert_eq!(phase(plan(Some(&free), twin, &mirror())), json!("Succeeded"), "so does everybody, where it was seen");
    assert_eq!(plan(Some(&free), Twin::default(), &mirror()), finish(), "but nobody waits for what was not");
    let ended = LocalDigest { has_ended: true, ..held };
    assert_eq!(plan(Some(&ended), twin, &mirror()), finish());
    let finished = LocalDigest { deletion_grace: Some(0), ..ended };
    assert_eq!(plan(Some(&finished), twin, &mirror()), Step::Nothing, "once");
}

#[test]
fn an_end_that_may_be_a_disruption_is_not_shown_before_the_provider_says_what_it_was() {
    let ended = RemoteDigest { has_ended: true, status: packed(json!({"phase": "Failed"})), ..remote() };
    assert!(only_says_so(decide(Some(&local()), Some(&shadow()), Some(&ended))));
    let deleted = LocalDigest { deletion_grace: Some(30), ..local() };
    let going = ShadowDigest { is_deleting: true, ..shadow() };
    let Step::WriteStatus { patch, .. } = decide(Some(&deleted), Some(&going), Some(&ended)) else { panic!("a write") };
    assert_eq!(patch["phase"], json!("Failed"), "its user deleted it: there is nothing to wait for");
}

#[test]
fn what_a_kubelet_adds_to_the_end_of_a_pod_is_shown_too() {
    let ended = LocalDigest { has_ended: true, status: packed(json!({"phase": "Succeeded"})), ..local() };
    let done = ShadowDigest { status: outcome(), ..shadow() };
    let later = json!({"phase": "Succeeded", "conditions": [{"type": "PodReadyToStartContainers", "status": "False"}]});
    let pod = RemoteDigest { has_ended: true, status: packed(later), ..remote() };
    let Step::WriteStatus { patch, .. } = decide(Some(&ended), Some(&done), Some(&pod)) else { panic!("a write") };
    assert_eq!(patch["conditions"][0]["type"], json!("PodReadyToStartContainers"));
    let going = RemoteDigest { is_deleting: true, ..pod.clone() };
    assert_eq!(decide(Some(&ended), Some(&done), Some(&going)), Step::Nothing);
    let other = RemoteDigest { status: packed(json!({"phase": "Failed"})), ..pod };
    assert_eq!(decide(Some(&ended), Some(&done), Some(&other)), Step::Nothing, "not the end that was recorded");
}

fn outcome() -> ShadowPodStatus {
    ShadowPodStatus {
        phase: ShadowPodPhase::Succeeded,
        outcome: Some(object(json!({"phase": "Succeeded"}))),
        ..ShadowPodStatus::default()
    }
}

#[test]
fn an_outcome_is_noted_before_its_shadow_goes() {
    let deleted = LocalDigest { deletion_grace: Some(30), ..local() };
    let done = ShadowDigest { status: outcome(), ..shadow() };
    assert!(matches!(decide(Some(&deleted), Some(&done), None), Step::WriteStatus { .. }), "first it is noted");
    let noted = LocalDigest { has_ended: true, ..deleted };
    assert_eq!(decide(Some(&noted), Some(&done), None), delete(None), "then it is deleted");
    let held = Held { resource_version: "7".into(), others: vec![] };
    let going = ShadowDigest { is_deleting: true, held: Some(held.clone()), ..done };
    let release = Step::ReleaseShadow { uid: "s1".into(), origin_uid: Some("l1".into()), held };
    assert_eq!(decide(Some(&noted), Some(&going), None), release, "and then let go");
    assert_eq!(decide(None, Some(&going), None), release, "also when nobody waits for it any more");
    let stranger = LocalDigest { uid: "l2".into(), ..local() };
    assert_eq!(decide(Some(&stranger), Some(&going), None), release, "or only its next life does");
    let elsewhere = LocalDigest { has_ended: true, ..local() };
    assert_eq!(decide(Some(&elsewhere), Some(&going), None), release, "whoever deleted it");
    let pod = RemoteDigest { has_ended: true, is_deleting: true, ..remote() };
    for local in [Some(&noted), None, Some(&elsewhere)] {
        assert_eq!(decide(local, Some(&going), Some(&pod)), Step::Nothing, "but not before its pod is gone");
    }
}

#[test]
fn what_somebody_over_there_deleted_while_it_ran_is_made_again() {
    let status = ShadowPodStatus {
        phase: ShadowPodPhase::Failed,
        reason: Some(reason::DELETED_WHILE_RUNNING.into()),
        outcome: Some(object(json!({"phase": "Failed"}))),
        ..ShadowPodStatus::default()
    };
    let held = Some(Held { resource_version: "7".into(), others: vec![] });
    let going = ShadowDigest { is_deleting: true, held, status, ..shadow() };
    assert!(matches!(decide(Some(&local()), Some(&going), None), Step::ReleaseShadow { .. }), "and its end not shown");
    let deleted = LocalDigest { deletion_grace: Some(30), ..local() };
    let Step::WriteStatus { patch, .. } = decide(Some(&deleted), Some(&going), None) else { panic!("a write") };
    assert_eq!(patch["phase"], json!("Failed"), "if its user deleted it, that is its end");
}

#[test]
fn what_succeeded_is_not_run_again_because_its_shadow_was_deleted() {
    let last = RemoteDigest {
        has_ended: true,
        has_succeeded: true,
        origin_uid: Some("l1".into()),
        status: packed(json!({"phase": "Succeeded"})),
        ..remote()
    };
    let twin = Twin { last: Some(&last), ..Twin::default() };
    let once = LocalDigest { restarts: Restarts::Never, never_started: false, ..local() };
    assert!(matches!(plan(Some(&once), twin, &mirror()), Step::WriteStatus { .. }));
    assert_eq!(plan(Some(&local()), twin, &mirror()), Step::CreateShadow, "what always runs runs again");
}

#[test]
fn a_refused_change_is_told_and_its_generation_is_not_seen() {
    let pod = RemoteDigest {
        is_up_to_date: true,
        status: packed(json!({"phase": "Running", "observedGeneration": 1, "conditions": []})),
        ..remote()
    };
    let now = packed(json!({"phase": "Running", "observedGeneration": 4}));
    let local = LocalDigest { generation: Some(5), status: now, never_started: false, ..local() };
    let generation = |local: &LocalDigest, shadow: &ShadowDigest, pod: &RemoteDigest| {
        let Step::WriteStatus { patch, .. } = decide(Some(local), Some(shadow), Some(pod)) else { return None };
        patch.get("observedGeneration").and_then(Value::as_i64)
    };
    assert_eq!(generation(&local, &shadow(), &pod), Some(5));
    let behind = RemoteDigest { is_up_to_date: false, ..pod.clone() };
    assert_eq!(generation(&local, &shadow(), &behind), None, "its kubelet has yet to see it");
    let changed = ShadowDigest { generation: Some(2), ..shadow() };
    assert_eq!(generation(&local, &changed, &pod), None, "the pod has yet to get it");
    let status = ShadowPodStatus {
        reason: Some(reason::UPDATE_REFUSED.into()),
        message: Some("too large".into()),
        observed_generation: Some(2),
        ..ShadowPodStatus::default()
    };
    let refused = ShadowDigest { status, ..changed };
    let Step::WriteStatus { patch, .. } = decide(Some(&local), Some(&refused), Some(&pod)) else { panic!("a write") };
    assert!(!patch.contains_key("observedGeneration"));
    let told = &patch["conditions"][0];
    assert_eq!((&told["reason"], &told["message"]), (&json!("UpdateRefused"), &json!("too large")));
}
