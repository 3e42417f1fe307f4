use super::*;
use serde_json::json;

pub fn facts() -> Facts {
    Facts {
        name: "milan-1".into(),
        foreign_cluster_id: "milan".into(),
        node_ip: Some("10.0.0.1".into()),
        version: "v1.34.4".into(),
        ..Facts::default()
    }
}

pub fn virtual_node() -> VirtualNodeSpec {
    serde_json::from_value(json!({
        "clusterID": "milan", "resourceQuota": {"hard": {"cpu": 20, "memory": "8Gi", "example.com/gpu": "2"}},
        "labels": {"kubernetes.io/arch": "arm64", "liqo.io/remote-cluster-id": "stolen", "zone": "z"},
        "annotations": {"a": "b"},
        "taints": [{"key": "gpu", "effect": "NoSchedule"}],
    }))
    .unwrap()
}

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub fn made() -> Node {
    node(&virtual_node(), &facts(), &Health::Reachable, None, at("2026-01-01T00:00:00Z"))
}

#[test]
fn a_node_bears_what_clients_look_for() {
    let node = json!(made());
    assert_eq!(
        node["metadata"]["labels"],
        json!({
            "alpha.service-controller.kubernetes.io/exclude-balancer": "true", "kubernetes.io/arch": "arm64",
            "kubernetes.io/hostname": "milan-1", "kubernetes.io/os": "linux", "kubernetes.io/role": "agent",
            "liqo.io/remote-cluster-id": "milan", "liqo.io/type": "virtual-node",
            "node.kubernetes.io/exclude-from-external-load-balancers": "true", "storage.liqo.io/available": "false",
            "type": "virtual-kubelet", "zone": "z",
        })
    );
    assert_eq!(
        node["spec"]["taints"],
        json!([
            {"key": "virtual-node.liqo.io/not-allowed", "value": "true", "effect": "NoExecute"},
            {"key": "gpu", "effect": "NoSchedule"},
        ])
    );
    assert_eq!(node["metadata"]["annotations"]["a"], "b");
    assert_eq!(node["status"]["capacity"], json!({"cpu": "20", "memory": "8Gi", "example.com/gpu": "2"}));
    assert_eq!(node["status"]["allocatable"], node["status"]["capacity"]);
    assert_eq!(node["status"]["nodeInfo"]["architecture"], "arm64");
    assert_eq!(node["status"]["nodeInfo"]["operatingSystem"], "linux", "what no label says is the most common");
    assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.34.4");
    assert_eq!(node["status"].get("daemonEndpoints"), None, "no kubelet API is served yet");
    let ready: Vec<_> =
        node["status"]["conditions"].as_array().unwrap().iter().filter(|c| c["status"] == "True").collect();
    assert_eq!(ready.len(), 1, "no other condition is True");
    assert_eq!(ready[0]["type"], "Ready");
}

#[test]
fn one_that_is_put_back_is_as_it_was_last_seen() {
    let mut last = made();
    last.metadata.uid = Some("former".into());
    last.metadata.labels.get_or_insert_default().insert("added".into(), "by-an-admin".into());
    let spec = last.spec.as_mut().unwrap();
    spec.unschedulable = Some(true);
    spec.pod_cidr = Some("10.1.0.0/24".into());
    spec.taints.as_mut().unwrap().retain(|taint| taint.key != taint::NOT_ALLOWED);
    let mut changed = virtual_node();
    changed.labels.insert("zone".into(), "moved".into());
    let again = node(&changed, &facts(), &Health::Undecided, Some(&last), at("2026-01-01T01:00:00Z"));
    assert_eq!(again.metadata.uid, None);
    let labels = again.metadata.labels.as_ref().unwrap();
    assert_eq!((labels["added"].as_str(), labels["zone"].as_str()), ("by-an-admin", "moved"));
    let spec = again.spec.clone().unwrap();
    assert_eq!(json!(spec), json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}], "unschedulable": true}));
    let (before, after) = (last.status.unwrap().conditions.unwrap(), again.status.unwrap().conditions.unwrap());
    let (before, after) = (&before[0], &after[0]);
    assert_eq!((&before.type_, &before.status), (&after.type_, &after.status), "a healthy node comes back healthy");
    assert_eq!(before.last_transition_time, after.last_transition_time);
}

#[test]
fn a_real_node_of_that_name_is_never_taken_for_ours() {
    let ours = made();
    assert!(is_ours(&ours, &facts()));
    let mut stripped = ours.clone();
    (stripped.metadata.labels, stripped.metadata.annotations) = (None, None);
    assert!(is_ours(&stripped, &facts()), "also without its marks");
    assert!(!is_ours(&ours, &Facts { foreign_cluster_id: "turin".into(), ..facts() }), "of another cluster");
    assert!(!is_ours(&Node::default(), &facts()), "nor one that has not said yet what it is");
}
