use super::*;
use rstest::rstest;

fn pod(value: Value) -> RawPod {
    serde_json::from_value(value).unwrap()
}

fn spec(spec: Value) -> RawPod {
    pod(json!({"metadata": {"uid": "p1"}, "spec": spec}))
}

/// What the update does to the spec, by resource.
fn changes(wanted: Value, now: Value) -> (Value, Value, Value) {
    let update = update(&spec(wanted), &spec(now));
    let spec = |patch: Option<Value>| {
        patch.map_or(Value::Null, |patch| {
            assert_eq!(patch["metadata"]["uid"], "p1", "every patch is for this pod and no other");
            patch["spec"].clone()
        })
    };
    (spec(update.ephemeral_containers), spec(update.resize), spec(update.pod))
}

#[test]
fn nothing_to_do_is_nothing_sent() {
    let same = json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
                      "tolerations": [{"key": "a"}], "activeDeadlineSeconds": 5,
                      "ephemeralContainers": [{"name": "e"}]});
    assert_eq!(update(&spec(same.clone()), &spec(same)), Update::default());
}

#[test]
fn ephemeral_containers_are_only_ever_added() {
    let wanted = json!({"ephemeralContainers": [{"name": "a", "image": "changed"}, {"name": "b", "image": "i"}]});
    let now = json!({"ephemeralContainers": [{"name": "a", "image": "i"}, {"name": "of-this-cluster"}]});
    let added = json!({"ephemeralContainers": [{"name": "b", "image": "i"}]});
    assert_eq!(changes(wanted, now), (added, Value::Null, Value::Null));
}

#[rstest]
#[case::grown(json!({"requests": {"cpu": "2"}}), json!({"requests": {"cpu": "1"}}), json!({"requests": {"cpu": "2"}}))]
#[case::the_same_in_other_words(json!({"requests": {"cpu": "1", "memory": "1Gi"}}),
                                json!({"requests": {"cpu": "1000m", "memory": "1024Mi"}}), Value::Null)]
#[case::defaults_of_this_cluster_stay(json!({}), json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}), Value::Null)]
#[case::defaults_beside_it_stay(json!({"requests": {"cpu": "2"}}),
                                json!({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}), json!({"requests": {"cpu": "2"}}))]
#[case::added(json!({"limits": {"cpu": "2"}}), json!({}), json!({"limits": {"cpu": "2"}}))]
fn resources_are_resized_to_what_the_shadow_says(#[case] wanted: Value, #[case] now: Value, #[case] change: Value) {
    for list in live::CONTAINERS.iter().copied() {
        let container = |resources: &Value| json!({list: [{"name": "c", "resources": resources}, {"name": "d"}]});
        let (_, resize, pod) = changes(container(&wanted), container(&now));
        let expected =
            if change.is_null() { Value::Null } else { json!({list: [{"name": "c", "resources": change.clone()}]}) };
        assert_eq!((resize, pod), (expected, Value::Null), "{list}");
    }
    let (_, resize, _) = changes(json!({"resources": wanted}), json!({"resources": now}));
    assert_eq!(resize, if change.is_null() { Value::Null } else { json!({"resources": change}) }, "of the whole pod");
}

#[test]
fn images_change_by_name_and_nothing_else_of_a_container_does() {
    let wanted = json!({"containers": [{"name": "c", "image": "new", "command": ["x"]}, {"name": "unknown", "image": "i"}],
                        "initContainers": [{"name": "s", "image": "new"}]});
    let now = json!({"containers": [{"name": "injected", "image": "i"}, {"name": "c", "image": "old"}],
                     "initContainers": [{"name": "s", "image": "old"}]});
    let images =
        json!({"containers": [{"name": "c", "image": "new"}], "initContainers": [{"name": "s", "image": "new"}]});
    assert_eq!(changes(wanted, now), (Value::Null, Value::Null, images));
}

#[rstest]
#[case(json!(5), Value::Null, json!(5))]
#[case(json!(5), json!(9), json!(5))]
#[case(json!(9), json!(5), Value::Null)]
#[case(json!(5), json!(5), Value::Null)]
#[case(Value::Null, json!(5), Value::Null)]
fn a_deadline_is_set_or_shrinks(#[case] wanted: Value, #[case] now: Value, #[case] change: Value) {
    let deadline = |seconds: Value| json!({"activeDeadlineSeconds": seconds});
    let (_, _, pod) = changes(deadline(wanted), deadline(now));
    assert_eq!(pod["activeDeadlineSeconds"], change);
}

#[test]
fn tolerations_are_added_to_those_of_this_cluster_and_may_last_longer() {
    let own = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300});
    let old = json!({"key": "a", "operator": "Exists", "tolerationSeconds": 5});
    let longer = json!({"key": "a", "operator": "Exists", "tolerationSeconds": 9});
    let new = json!({"key": "b"});
    let (_, _, pod) = changes(json!({"tolerations": [longer, new]}), json!({"tolerations": [own, old]}));
    assert_eq!(pod, json!({"tolerations": [own, longer, new]}));
    let (_, _, pod) = changes(json!({"tolerations": []}), json!({"tolerations": [own, old]}));
    assert_eq!(pod, Value::Null, "none can be taken away");
}

#[test]
fn labels_and_annotations_are_set_and_only_our_own_are_taken_away() {
    let managed = json!([{"manager": "spillway-shadow-pod", "operation": "Update", "fieldsV1": {"f:metadata": {
        "f:labels": {"f:kept": {}, "f:changed": {}, "f:dropped": {}}, "f:annotations": {"f:note": {}}}}}]);
    let now = pod(json!({"metadata": {
        "uid": "p1", "managedFields": managed,
        "labels": {"kept": "1", "changed": "1", "dropped": "1", "of-this-cluster": "1"},
        "annotations": {"note": "1", "cni": "1", "offloading.spillway.dev/live-digest": "old"},
    }}));
    let wanted = pod(json!({"metadata": {
        "labels": {"kept": "1", "changed": "2", "new": "1"},
        "annotations": {"offloading.spillway.dev/live-digest": "new"},
    }}));
    let update = update(&wanted, &now);
    let labels = json!({"changed": "2", "dropped": null, "new": "1"});
    let partly = json!({"metadata": {"uid": "p1", "labels": labels, "annotations": {"note": null}}, "spec": {}});
    assert_eq!(update.pod, Some(partly.clone()));
    let mut whole = partly;
    whole["metadata"]["annotations"]["offloading.spillway.dev/live-digest"] = json!("new");
    assert_eq!(carried(update.pod, &wanted, &now), whole);
    let only_the_digest =
        json!({"metadata": {"uid": "p1", "annotations": {"offloading.spillway.dev/live-digest": "new"}}});
    assert_eq!(carried(None, &wanted, &now), only_the_digest);
}

#[test]
fn a_pod_that_can_end_from_now_on_is_held_and_one_that_is_held_stays_so() {
    let held = |finalizers: &[&str]| pod(json!({"metadata": {"uid": "p1", "finalizers": finalizers}, "spec": {}}));
    let patch = update(&held(&["ours"]), &held(&["another"])).pod.unwrap();
    assert_eq!(patch["metadata"], json!({"uid": "p1", "finalizers": ["ours"]}), "merged by the API server");
    assert_eq!(update(&held(&["ours"]), &held(&["another", "ours"])), Update::default());
    assert_eq!(update(&held(&[]), &held(&["ours"])), Update::default());
}
