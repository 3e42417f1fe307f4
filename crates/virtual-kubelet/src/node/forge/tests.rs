use super::*;
use std::time::Instant;

fn facts() -> Facts {
    Facts {
        name: "milan-1".into(),
        foreign_cluster_id: "milan".into(),
        node_ip: Some("10.0.0.1".into()),
        version: "v1.34.4".into(),
        ..Facts::default()
    }
}

fn virtual_node() -> VirtualNodeSpec {
    serde_json::from_value(json!({
        "clusterID": "milan", "resourceQuota": {"hard": {"cpu": 20, "memory": "8Gi", "example.com/gpu": "2"}},
        "labels": {"kubernetes.io/arch": "arm64", "liqo.io/remote-cluster-id": "stolen", "zone": "z"},
        "annotations": {"a": "b"},
        "taints": [{"key": "gpu", "effect": "NoSchedule"}],
    }))
    .unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn away() -> Reach {
    Reach::Away { since: Instant::now(), reason: "RemoteAPIServerUnreachable", message: "cut".into() }
}

#[test]
fn a_node_bears_what_clients_look_for() {
    let node = json!(node(&virtual_node(), &facts(), &Reach::Reachable, at("2026-01-01T00:00:00Z")));
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
            {"key": "gpu", "effect": "NoSchedule"},
            {"key": "virtual-node.liqo.io/not-allowed", "value": "true", "effect": "NoExecute"},
        ])
    );
    assert_eq!(node["status"]["capacity"], json!({"cpu": "20", "memory": "8Gi", "example.com/gpu": "2"}));
    assert_eq!(node["status"]["allocatable"], node["status"]["capacity"]);
    assert_eq!(node["status"]["nodeInfo"]["architecture"], "arm64");
    assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.34.4");
    let ready: Vec<_> =
        node["status"]["conditions"].as_array().unwrap().iter().filter(|c| c["status"] == "True").collect();
    assert_eq!(ready.len(), 1, "no other condition is True");
    assert_eq!(ready[0]["type"], "Ready");
}

#[test]
fn an_unreachable_remote_makes_it_unready_with_a_reason() {
    let status = status(&virtual_node(), &facts(), &away(), None, at("2026-01-01T00:00:00Z"));
    let ready = &status["conditions"][0];
    assert_eq!(
        (&ready["status"], &ready["reason"], &ready["message"]),
        (&json!("False"), &json!("RemoteAPIServerUnreachable"), &json!("cut"))
    );
}

#[test]
fn the_time_of_a_transition_changes_only_with_the_status() {
    let first = node(&virtual_node(), &facts(), &Reach::Reachable, at("2026-01-01T00:00:00Z"));
    let later = at("2026-01-01T01:00:00Z");
    let same = status(&virtual_node(), &facts(), &Reach::Reachable, Some(&first), later);
    assert_eq!(same["conditions"][0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
    assert_eq!(same["conditions"][0]["lastHeartbeatTime"], "2026-01-01T01:00:00Z");
    assert!(!differs(&same, &first), "a heartbeat alone is no difference");
    let changed = status(&virtual_node(), &facts(), &away(), Some(&first), later);
    assert_eq!(changed["conditions"][0]["lastTransitionTime"], "2026-01-01T01:00:00Z");
    assert!(differs(&changed, &first));
}

#[test]
fn a_resource_that_is_no_longer_offered_is_a_difference() {
    let first = node(&virtual_node(), &facts(), &Reach::Reachable, at("2026-01-01T00:00:00Z"));
    let mut smaller = virtual_node();
    smaller.resource_quota.as_mut().unwrap().hard.remove("example.com/gpu");
    assert!(differs(&status(&smaller, &facts(), &Reach::Reachable, Some(&first), at("2026-01-01T00:00:00Z")), &first));
}

#[test]
fn a_real_node_of_that_name_is_never_taken_for_ours() {
    let ours = node(&virtual_node(), &facts(), &Reach::Reachable, at("2026-01-01T00:00:00Z"));
    assert!(is_ours(&ours, &facts()));
    let mut stripped = ours.clone();
    stripped.metadata.labels = None;
    assert!(is_ours(&stripped, &facts()), "also without its labels");
    let real: Node = serde_json::from_value(json!({
        "metadata": {"name": "milan-1", "labels": {"kubernetes.io/hostname": "milan-1"}},
        "status": {"nodeInfo": {"containerRuntimeVersion": "containerd://2.0.0", "architecture": "", "bootID": "",
            "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "",
            "osImage": "", "systemUUID": ""}},
    }))
    .unwrap();
    assert!(!is_ours(&real, &facts()));
    let fresh: Node = serde_json::from_value(json!({"metadata": {"name": "milan-1"}})).unwrap();
    assert!(!is_ours(&fresh, &facts()), "nor one that has not said yet what it is");
}
