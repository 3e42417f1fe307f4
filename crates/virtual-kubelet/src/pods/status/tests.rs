use super::*;

fn object(value: Value) -> RawObject {
    value.as_object().cloned().expect("an object")
}

fn local() -> LocalDigest {
    LocalDigest { generation: Some(4), ..LocalDigest::default() }
}

#[test]
fn a_remote_status_becomes_a_local_one() {
    let remote = object(json!({
        "phase": "Running", "qosClass": "Burstable", "observedGeneration": 2, "nominatedNodeName": "n",
        "resourceClaimStatuses": [], "hostIP": "192.168.0.7", "hostIPs": [{"ip": "192.168.0.7"}],
        "podIP": "10.9.0.3", "podIPs": [{"ip": "10.9.0.3"}, {"ip": "fd00::3"}], "startTime": "t",
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}],
        "containerStatuses": [{"name": "c", "restartCount": 1, "fieldOfTheFuture": true}],
        "initContainerStatuses": [{"name": "i", "restartCount": 0}],
    }));
    let mirror = Mirror { node_ip: Some("10.0.0.1".into()) };
    assert_eq!(
        Value::Object(mirror.status(&remote, 2, &local())),
        json!({
            "phase": "Running", "observedGeneration": 4, "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}],
            "podIP": "10.9.0.3", "podIPs": [{"ip": "10.9.0.3"}, {"ip": "fd00::3"}], "startTime": "t",
            "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 4}],
            "containerStatuses": [{"name": "c", "restartCount": 3, "fieldOfTheFuture": true}],
            "initContainerStatuses": [{"name": "i", "restartCount": 2}],
        })
    );
}

#[test]
fn equal_statuses_need_no_patch_and_what_is_not_ours_is_no_difference() {
    let wanted = object(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}));
    assert_eq!(patch(&wanted, &wanted), None);
    let mut now = wanted.clone();
    now.insert("qosClass".into(), json!("Guaranteed"));
    now.insert(
        "conditions".into(),
        json!([{"type": "Ready", "status": "True"}, {"type": "example.com/gate", "status": "True"}]),
    );
    assert_eq!(patch(&now, &wanted), None, "a condition of somebody else stays without a word");
}

#[test]
fn a_new_address_replaces_the_old_one() {
    let now = object(json!({"podIP": "10.0.0.3", "podIPs": [{"ip": "10.0.0.3"}]}));
    let wanted = object(json!({"podIP": "10.0.0.4", "podIPs": [{"ip": "10.0.0.4"}]}));
    assert_eq!(
        Value::Object(patch(&now, &wanted).unwrap()),
        json!({
            "podIP": "10.0.0.4", "podIPs": [{"ip": "10.0.0.4"}, {"$patch": "delete", "ip": "10.0.0.3"}],
        })
    );
}

#[test]
fn a_condition_of_ours_that_is_gone_is_deleted_and_a_field_that_is_gone_is_erased() {
    let now = object(json!({
        "reason": "PodRefused", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"},
            {"type": "PodResizePending", "status": "True"},
        ],
    }));
    let wanted = object(json!({"conditions": [{"type": "PodScheduled", "status": "True"}]}));
    assert_eq!(
        Value::Object(patch(&now, &wanted).unwrap()),
        json!({
            "reason": null, "conditions": [
                {"type": "PodScheduled", "status": "True", "reason": null, "message": null},
                {"$patch": "delete", "type": "PodResizePending"},
            ],
        })
    );
}

#[test]
fn lists_without_a_key_are_replaced_whole() {
    let now = object(json!({"containerStatuses": [{"name": "a", "ready": false}, {"name": "b"}]}));
    let wanted = object(json!({"containerStatuses": [{"name": "a", "ready": true}]}));
    assert_eq!(
        Value::Object(patch(&now, &wanted).unwrap()),
        json!({"containerStatuses": [{"name": "a", "ready": true}]})
    );
}
