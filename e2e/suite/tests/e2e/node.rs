//! The virtual node.

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use spillway_api::offloading::{VirtualNode, VirtualNodeConditionStatus as Status, VirtualNodeConditionType as Type};
use spillway_e2e::{Namespace, Side, by_hand, wait};

use crate::pods::{SERVE, remote_spec};
use crate::{VIRTUAL_NODE, testbed};

pub fn is_ready(node: &Node) -> bool {
    ready_condition(node).is_some_and(|(status, _)| status == "True")
}

/// Status and reason of the Ready condition.
pub fn ready_condition(node: &Node) -> Option<(&str, &str)> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some((&ready.status, ready.reason.as_deref().unwrap_or_default()))
}

#[tokio::test]
async fn the_virtual_node_has_what_clients_look_for() -> Result<()> {
    let home = Side::connect(testbed(), "home").await?;
    let nodes = Api::<Node>::all(home.client.clone());
    // What the API server itself puts on a new node goes once the node controller has seen it Ready.
    let taints = json!([{"key": "virtual-node.liqo.io/not-allowed", "value": "true", "effect": "NoExecute"}]);
    let version = |node: &Node| Some(node.status.as_ref()?.node_info.as_ref()?.kubelet_version.clone());
    let settled = |node: &Node| {
        let tainted = node.spec.as_ref().is_some_and(|spec| json!(spec.taints) == taints);
        is_ready(node) && tainted && version(node).is_some_and(|version| version == "v1.34.4")
    };
    let node =
        wait::until_one("a ready node with our taint", nodes, VIRTUAL_NODE, |node| node.is_some_and(settled)).await?;
    let node = node.context("a node")?;
    let away_id = by_hand::cluster_id(&Side::connect(testbed(), "away").await?).await?;
    for (key, value) in [
        ("liqo.io/type", "virtual-node"),
        ("liqo.io/remote-cluster-id", &away_id),
        ("kubernetes.io/hostname", VIRTUAL_NODE),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
    ] {
        assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{key}");
    }
    let status = node.status.context("a status")?;
    let capacity = json!(status.capacity);
    assert_eq!(capacity, json!({"cpu": "20", "memory": "20Gi", "pods": "200", "ephemeral-storage": "20Gi"}));
    assert_eq!(json!(status.allocatable), capacity);

    let leases = Api::<Lease>::namespaced(home.client.clone(), "kube-node-lease");
    let renewed =
        |lease: Option<&Lease>| lease.and_then(|lease| lease.spec.as_ref()).and_then(|spec| spec.renew_time.clone());
    let first = renewed(leases.get_opt(VIRTUAL_NODE).await?.as_ref());
    wait::until_one("a heartbeat", leases, VIRTUAL_NODE, |lease| renewed(lease).is_some() && renewed(lease) != first)
        .await?;
    Ok(())
}

/// The taint of virtual nodes that one test has for itself.
const OWN: &str = "e2e.spillway.dev/own";

/// A virtual node of the test's own, which no other test's pods go to; what `extra` says is merged into its spec.
pub async fn own(namespace: &Namespace, name: &str, extra: Value) -> Result<()> {
    let peering = &namespace.peering;
    let mut spec = json!({
        "clusterID": peering.away_id, "createNode": true, "kubeconfigSecretRef": {"name": peering.kubeconfig_secret},
        "resourceQuota": {"hard": {"cpu": 4, "memory": "4Gi", "pods": "50", "ephemeral-storage": "4Gi"}},
        "taints": [{"key": OWN, "value": name, "effect": "NoSchedule"}],
    });
    for (field, value) in extra.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let labels = json!({"liqo.io/remote-cluster-id": peering.away_id});
    let virtual_node = json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
    by_hand::apply::<VirtualNode>(&namespace.home, &peering.tenant_namespace, virtual_node).await
}

/// The same, and waits until its Node is Ready.
pub async fn own_ready(namespace: &Namespace, name: &str, extra: Value) -> Result<Node> {
    own(namespace, name, extra).await?;
    let ready = |node: Option<&Node>| node.is_some_and(is_ready);
    wait::until_one("a ready node", nodes(namespace), name, ready).await?.context("a node")
}

/// The spec of a pod that only this node takes.
pub fn spec_on(node: &str, command: &str) -> Value {
    let mut spec = remote_spec(command);
    spec["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    spec["tolerations"].as_array_mut().unwrap().push(json!({"key": OWN, "operator": "Exists"}));
    spec
}

pub fn pod_on(node: &str, name: &str) -> Pod {
    let pod = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec_on(node, SERVE)});
    serde_json::from_value(pod).unwrap()
}

pub fn nodes(namespace: &Namespace) -> Api<Node> {
    Api::all(namespace.home.client.clone())
}

pub fn virtual_nodes(namespace: &Namespace) -> Api<VirtualNode> {
    Api::namespaced(namespace.home.client.clone(), &namespace.peering.tenant_namespace)
}

/// Status, reason and message of a condition of a VirtualNode.
pub fn condition(virtual_node: &VirtualNode, type_: Type) -> Option<(Status, &str, &str)> {
    let condition = virtual_node.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((condition.status, condition.reason.as_deref()?, condition.message.as_deref()?))
}

/// Waits until a condition of a VirtualNode has this reason, and returns its message.
pub async fn told(namespace: &Namespace, name: &str, type_: Type, reason: &str) -> Result<String> {
    let says = |node: Option<&VirtualNode>| {
        node.and_then(|node| condition(node, type_)).is_some_and(|(_, said, _)| said == reason)
    };
    let node = wait::until_one(&format!("the reason {reason}"), virtual_nodes(namespace), name, says).await?;
    let node = node.context("a VirtualNode")?;
    Ok(condition(&node, type_).context("a condition")?.2.to_owned())
}

/// Deletes a VirtualNode and waits until it and its Node are gone.
pub async fn remove(namespace: &Namespace, name: &str) -> Result<()> {
    virtual_nodes(namespace).delete(name, &DeleteParams::default()).await?;
    wait::until_one("the VirtualNode to go", virtual_nodes(namespace), name, |node| node.is_none()).await?;
    wait::until_one("its Node to go", nodes(namespace), name, |node| node.is_none()).await?;
    Ok(())
}
