use super::*;
use rstest::rstest;

pub(super) fn context() -> Context {
    Context {
        node_name: "away".into(),
        home_cluster_id: "rome".into(),
        foreign_cluster_id: "milan".into(),
        patch: OffloadingPatch::default(),
    }
}

pub(super) fn pod(spec: Value) -> RawPod {
    let object = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "l1"}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

fn forged(spec: Value) -> Value {
    json!(shadow_pod(&pod(spec), &context()).unwrap().spec.pod)
}

#[test]
fn what_belongs_to_the_first_scheduling_stays_at_home_and_the_rest_goes() {
    let spec = json!({
        "nodeName": "away", "nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": {}}, "schedulerName": "s",
        "priorityClassName": "p", "priority": 5, "preemptionPolicy": "Never", "hostNetwork": true, "hostPID": true,
        "hostIPC": true, "serviceAccountName": "sa", "serviceAccount": "sa", "readinessGates": [{"conditionType": "x"}],
        "topologySpreadConstraints": [{}], "automountServiceAccountToken": true,
        "containers": [{"name": "c", "future": 1}], "restartPolicy": "Never", "terminationGracePeriodSeconds": 3,
        "fieldOfTheFuture": {"deep": [1, 2]},
    });
    assert_eq!(
        forged(spec),
        json!({
            "containers": [{"name": "c", "future": 1}], "restartPolicy": "Never", "terminationGracePeriodSeconds": 3,
            "fieldOfTheFuture": {"deep": [1, 2]}, "automountServiceAccountToken": false,
        })
    );
}

#[test]
fn tolerations_lose_the_virtual_nodes_and_gain_the_patchs() {
    let mut context = context();
    context.patch.tolerations = vec![serde_json::from_value(json!({"key": "t", "operator": "Exists"})).unwrap()];
    let spec = json!({"tolerations": [{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}, {"operator": "Exists"}, {"key": "gpu"}]});
    let forged = shadow_pod(&pod(spec), &context).unwrap().spec.pod;
    assert_eq!(forged["tolerations"], json!([{"key": "gpu"}, {"key": "t", "operator": "Exists"}]));
}

#[rstest]
#[case(Some("a"), Some("b"), Some("c"), Some("a"))]
#[case(None, Some("b"), Some("c"), Some("b"))]
#[case(None, Some("liqo"), Some("c"), Some("c"))]
#[case(None, None, Some("liqo"), None)]
#[case(None, Some("liqo"), None, None)]
fn runtime_class_by_annotation_spec_and_patch(
    #[case] annotated: Option<&str>,
    #[case] own: Option<&str>,
    #[case] patched: Option<&str>,
    #[case] expected: Option<&str>,
) {
    let mut context = context();
    context.patch.runtime_class_name = patched.map(str::to_owned);
    let mut pod = pod(own.map_or(json!({}), |own| json!({"runtimeClassName": own})));
    if let Some(class) = annotated {
        pod.annotations_mut().insert(annotation::REMOTE_RUNTIME_CLASS_NAME.to_owned(), class.to_owned());
    }
    let forged = shadow_pod(&pod, &context).unwrap().spec.pod;
    assert_eq!(forged.get("runtimeClassName").and_then(Value::as_str), expected);
}

#[test]
fn a_projected_volume_keeps_everything_but_the_token() {
    let sources = json!([
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt"}},
    ]);
    let spec = json!({"volumes": [{"name": "kube-api-access-x", "projected": {"sources": sources}}, {"name": "e", "emptyDir": {}}]});
    let kept = json!([
        {"name": "kube-api-access-x", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}},
        {"name": "e", "emptyDir": {}},
    ]);
    assert_eq!(forged(spec)["volumes"], kept);
}

#[test]
fn metadata_is_carried_filtered_and_marked() {
    let mut context = context();
    context.patch.labels_not_reflected = vec!["secret".into()];
    context.patch.annotations_not_reflected = vec!["internal".into()];
    let mut pod = pod(json!({}));
    pod.labels_mut()
        .extend([("app", "web"), ("secret", "x"), (label::SHADOW_POD, "true")].map(|(k, v)| (k.into(), v.into())));
    pod.annotations_mut().extend(
        [
            ("note", "n"),
            ("internal", "x"),
            (NOTES_OF_KUBECTL, "{}"),
            (annotation::DELETION_GRACE_SECONDS, "0"),
            (annotation::LIVE_DIGEST, "x"),
        ]
        .map(|(k, v)| (k.into(), v.into())),
    );
    let metadata = json!(shadow_pod(&pod, &context).unwrap().metadata);
    let live = live_digest(&pod, &context);
    assert_eq!(
        metadata,
        json!({
            "name": "web",
            "labels": {"app": "web", "offloading.liqo.io/origin": "rome", "offloading.liqo.io/destination": "milan",
                       "offloading.liqo.io/nodename": "away"},
            "annotations": {"note": "n", "offloading.spillway.dev/origin-uid": "l1",
                            "offloading.spillway.dev/live-digest": live},
            "finalizers": ["offloading.spillway.dev/pod"],
        })
    );
}

#[test]
fn the_digest_of_a_pod_is_that_of_its_shadow_pod() {
    let mut context = context();
    context.patch.tolerations = vec![serde_json::from_value(json!({"key": "t", "operator": "Exists"})).unwrap()];
    let spec = json!({
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}, "env": [{"name": "e"}]}],
        "initContainers": [], "tolerations": [{"operator": "Exists"}], "activeDeadlineSeconds": 5, "nodeName": "n",
        "ephemeralContainers": [{"name": "debug", "image": "d"}],
    });
    let (mut pod, patched) = (pod(spec), context);
    let noted = |pod: &RawPod| shadow_pod(pod, &patched).unwrap().annotations()[annotation::LIVE_DIGEST].clone();
    let first = noted(&pod);
    assert_eq!(live_digest(&pod, &patched), first);
    pod.spec["containers"][0]["image"] = json!("j");
    assert_eq!(live_digest(&pod, &patched), noted(&pod));
    assert_ne!(noted(&pod), first);
}

#[test]
fn a_pod_that_cannot_run_there_is_refused() {
    let refused = shadow_pod(&pod(json!({"resourceClaims": [{"name": "gpu"}]})), &context());
    assert!(matches!(refused, Err(Refusal(why)) if why.contains("resourceClaims")));
}
