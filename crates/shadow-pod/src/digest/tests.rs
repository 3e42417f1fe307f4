use super::*;
use rstest::rstest;
use serde_json::json;

fn raw(changes: Value) -> RawPod {
    let mut pod = json!({
        "metadata": {
            "name": "web", "namespace": "n", "uid": "p1", "finalizers": ["offloading.spillway.dev/outcome"],
            "labels": {"liqo.io/managed-by": "shadowpod", "offloading.liqo.io/origin": "rome"},
            "ownerReferences": [{"apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod", "name": "web",
                                 "uid": "s1", "controller": true}],
        },
        "spec": {"nodeName": "n1", "restartPolicy": "Never", "terminationGracePeriodSeconds": 30},
        "status": {"phase": "Running"},
    });
    json_patch::merge(&mut pod, &changes);
    serde_json::from_value(pod).unwrap()
}

fn deleted(grace: i64, phase: &str) -> RawPod {
    raw(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace},
               "status": {"phase": phase}}))
}

#[test]
fn a_pod_that_lost_its_owner_is_known_by_all_marks_together() {
    let orphan = json!({"metadata": {"ownerReferences": null}});
    let digest = pod(raw(orphan.clone()), None).unwrap();
    assert!(digest.is_orphan() && digest.has_finalizer);
    for mark in [
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": {"finalizers": ["example.com/theirs"]}}),
        json!({"metadata": {"labels": {"liqo.io/managed-by": null}}}),
        json!({"metadata": {"labels": {"liqo.io/managed-by": "helm"}}}),
        json!({"metadata": {"labels": {"offloading.liqo.io/origin": null}}}),
    ] {
        let mut unmarked = serde_json::to_value(raw(orphan.clone())).unwrap();
        json_patch::merge(&mut unmarked, &mark);
        let unmarked: RawPod = serde_json::from_value(unmarked).unwrap();
        assert!(pod(unmarked.clone(), None).is_none(), "{mark}");
        assert!(pod(unmarked, Some(&digest)).is_some_and(|known| known.is_orphan()), "what was ours stays ours");
        assert_eq!(pod(raw(mark), None).unwrap().owner, "s1", "with an owner there is no doubt");
    }
}

#[test]
fn an_owner_that_does_not_control_it_is_none() {
    let owned = json!({"metadata": {"finalizers": null, "ownerReferences": [
        {"apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod", "name": "web", "uid": "s1"}]}});
    assert!(pod(raw(owned), None).is_none());
}

#[rstest]
#[case::running(30, "Running", true)]
#[case::forced_while_it_ran(0, "Running", true)]
#[case::exited_within_its_grace(30, "Failed", true)]
#[case::ended_when_it_was_deleted_or_released_by_its_kubelet(0, "Failed", false)]
fn deleted_alive_is_seen(#[case] grace: i64, #[case] phase: &str, #[case] alive: bool) {
    assert_eq!(pod(deleted(grace, phase), None).unwrap().deleted_alive, alive);
}

#[test]
fn deleted_alive_is_remembered_of_the_same_pod_only() {
    let before = pod(deleted(30, "Running"), None).unwrap();
    assert!(pod(deleted(0, "Failed"), Some(&before)).unwrap().deleted_alive);
    let another = PodDigest { uid: "p0".into(), ..before };
    assert!(!pod(deleted(0, "Failed"), Some(&another)).unwrap().deleted_alive);
    assert!(!pod(raw(json!({})), None).unwrap().deleted_alive);
}

#[rstest]
#[case(json!({}), true)]
#[case(json!({"podUID": "p1", "phase": "Running"}), false)]
#[case::its_pod_was_lost_and_counted(json!({"recreations": 1, "phase": "Running"}), false)]
fn the_forged_pod_is_kept_until_one_was_created(#[case] status: Value, #[case] kept: bool) {
    let object = serde_json::from_value(json!({
        "apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod", "metadata": {"name": "web", "uid": "s1"},
        "spec": {"pod": {"containers": []}}, "status": status,
    }));
    assert_eq!(shadow(object.unwrap()).pod.lock().is_some(), kept);
}

#[rstest]
#[case(json!([{"type": "Ready", "status": "True"}]), false)]
#[case(json!([{"type": "Ready", "status": "False"}]), true)]
#[case(json!([{"type": "Ready", "status": "Unknown"}]), true)]
#[case(json!([]), true)]
fn a_node_that_is_not_ready_is_lost(#[case] conditions: Value, #[case] lost: bool) {
    let object = serde_json::from_value(json!({"metadata": {"name": "n1"}, "status": {"conditions": conditions}}));
    assert_eq!(node(&object.unwrap()).is_lost, lost);
}
