use super::*;
use rstest::rstest;

fn object(value: Value) -> RawObject {
    value.as_object().cloned().expect("an object")
}

fn local() -> LocalDigest {
    LocalDigest { generation: Some(4), ..LocalDigest::default() }
}

fn mirror(addresses: &Addresses) -> Mirror<'_> {
    Mirror { node_ip: Some("10.0.0.1"), addresses, at: "2026-01-02T03:04:05.6Z".parse().unwrap() }
}

fn shown(remote: Value, shadow: &ShadowPodStatus, local: &LocalDigest, now: Value) -> Value {
    let addresses = Addresses::default();
    Value::Object(mirror(&addresses).status(&object(remote), Some("p1"), shadow, local, &object(now), local.generation))
}

#[test]
fn a_remote_status_becomes_a_local_one() {
    let remote = json!({
        "phase": "Running", "qosClass": "Burstable", "observedGeneration": 2, "nominatedNodeName": "n",
        "resourceClaimStatuses": [], "hostIP": "192.168.0.7", "hostIPs": [{"ip": "192.168.0.7"}],
        "podIP": "10.9.0.3", "podIPs": [{"ip": "10.9.0.3"}, {"ip": "fd00::3"}], "startTime": "t",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "theirs", "observedGeneration": 2},
                       {"type": "Ready", "status": "True", "observedGeneration": 2}],
        "containerStatuses": [{"name": "c", "restartCount": 1, "fieldOfTheFuture": true}],
        "initContainerStatuses": [{"name": "i", "restartCount": 0}],
    });
    let now = json!({"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "ours"}]});
    let shadow = ShadowPodStatus { recreations: 2, pod_uid: Some("p1".to_owned()), ..ShadowPodStatus::default() };
    assert_eq!(
        shown(remote, &shadow, &local(), now),
        json!({
            "phase": "Running", "observedGeneration": 4, "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}],
            "podIP": "10.9.0.3", "podIPs": [{"ip": "10.9.0.3"}, {"ip": "fd00::3"}], "startTime": "t",
            "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 4},
                           {"type": "PodScheduled", "status": "True", "lastTransitionTime": "ours", "observedGeneration": 4}],
            "containerStatuses": [{"name": "c", "restartCount": 3, "fieldOfTheFuture": true}],
            "initContainerStatuses": [{"name": "i", "restartCount": 2}],
        })
    );
}

#[test]
fn a_remote_pod_that_was_only_made_is_no_news() {
    let now = json!({"phase": "Pending", "qosClass": "BestEffort", "conditions": [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "t"}]});
    let remote = json!({"phase": "Pending", "qosClass": "BestEffort"});
    let wanted = shown(remote, &ShadowPodStatus::default(), &local(), now.clone());
    assert_eq!(patch(&object(now), &object(wanted)), None);
}

#[test]
fn what_keeps_a_remote_pod_from_being_scheduled_is_shown_and_goes_again() {
    let unscheduled = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
    let now = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]});
    let wanted = shown(unscheduled, &ShadowPodStatus::default(), &local(), now);
    assert_eq!(wanted["reason"], json!("RemoteUnschedulable"));
    assert_eq!(wanted["message"], json!("the remote cluster cannot schedule it: 0/3 nodes"));
    assert_eq!(wanted["conditions"][0]["status"], json!("False"));
    let scheduled = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]});
    let after = shown(scheduled, &ShadowPodStatus::default(), &local(), wanted);
    assert_eq!(after, json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}));
}

#[test]
fn a_disruption_at_the_provider_is_not_shown_unless_it_is_the_end_and_one_at_home_is_kept() {
    let disrupted = json!({"conditions": [{"type": "DisruptionTarget", "status": "True"}]});
    let wanted = shown(disrupted.clone(), &ShadowPodStatus::default(), &local(), disrupted.clone());
    assert_eq!(wanted["conditions"], json!([]));
    assert_eq!(patch(&object(disrupted.clone()), &object(wanted)), None, "what home's own eviction wrote stays");
    let ended = ShadowPodStatus { outcome: Some(RawObject::new()), ..ShadowPodStatus::default() };
    assert_eq!(shown(disrupted.clone(), &ended, &local(), json!({}))["conditions"], disrupted["conditions"]);
}

#[rstest]
#[case("True", Some("True"), "True", None)]
#[case("True", Some("False"), "False", Some("ReadinessGatesNotReady"))]
#[case("True", None, "False", Some("ReadinessGatesNotReady"))]
#[case("False", Some("True"), "False", Some("ContainersNotReady"))]
fn ready_is_what_the_containers_and_the_local_gates_make_it(
    #[case] containers: &str,
    #[case] gate: Option<&str>,
    #[case] ready: &str,
    #[case] reason: Option<&str>,
) {
    let unready = (containers == "False").then_some("ContainersNotReady");
    let condition =
        |kind: &str| json!({"type": kind, "status": containers, "reason": unready, "lastTransitionTime": "1"});
    let remote = json!({"conditions": [condition("ContainersReady"), condition("Ready")]});
    let gates: Vec<_> =
        gate.iter().map(|status| json!({"type": "gate", "status": status, "lastTransitionTime": "2"})).collect();
    let local = LocalDigest { gates: vec!["gate".to_owned()], ..local() };
    let shown = shown(remote, &ShadowPodStatus::default(), &local, json!({"conditions": gates}));
    let found = shown["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == "Ready").unwrap();
    assert_eq!((&found["status"], found["reason"].as_str()), (&json!(ready), reason));
    assert_eq!(found["lastTransitionTime"], json!(if gate.is_some() { "2" } else { "1" }), "the later of the two");
}

#[test]
fn a_pod_on_its_way_back_takes_no_traffic_and_has_no_address() {
    let now = object(json!({
        "phase": "Running", "podIP": "10.9.0.3", "podIPs": [{"ip": "10.9.0.3"}],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "before"},
                       {"type": "Initialized", "status": "True"}],
        "containerStatuses": [{"name": "c", "ready": true, "started": true, "restartCount": 1, "state": {"running": {}}}],
    }));
    let addresses = Addresses::default();
    let waiting = mirror(&addresses).waiting("PodRefused", "exceeded quota", &local(), &now);
    assert_eq!(
        Value::Object(waiting.clone()),
        json!({
            "phase": "Running", "reason": "PodRefused", "message": "exceeded quota",
            "conditions": [{"type": "Ready", "status": "False", "reason": "PodRefused",
                            "lastTransitionTime": "2026-01-02T03:04:05Z"},
                           {"type": "Initialized", "status": "True"}],
            "containerStatuses": [{"name": "c", "ready": false, "started": false, "restartCount": 1,
                                   "state": {"waiting": {"reason": "PodRefused"}}}],
        })
    );
    let later = Mirror { at: "2027-01-01T00:00:00Z".parse().unwrap(), ..mirror(&addresses) };
    assert_eq!(later.waiting("PodRefused", "exceeded quota", &local(), &waiting), waiting, "said once");
}

#[test]
fn a_pod_that_is_being_taken_away_over_there_is_unready_and_otherwise_as_it_was() {
    let now = object(json!({"phase": "Running", "podIP": "10.9.0.3", "conditions": [
        {"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}],
        "containerStatuses": [{"name": "c", "ready": true}]}));
    let addresses = Addresses::default();
    let shown = mirror(&addresses).interrupted(&now);
    assert_eq!(
        (&shown["reason"], &shown["containerStatuses"][0]["ready"]),
        (&json!("RemotePodTerminating"), &json!(false))
    );
    assert_eq!((&shown["phase"], &shown["podIP"]), (&json!("Running"), &json!("10.9.0.3")));
    for condition in shown["conditions"].as_array().unwrap() {
        assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("RemotePodTerminating")));
    }
}
