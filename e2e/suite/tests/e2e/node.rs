//! The virtual node.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use spillway_e2e::{Side, by_hand, wait};

use crate::pods::{SERVE, pod, ready};
use crate::{VIRTUAL_NODE, offloaded, testbed};

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
    let settled = |node: &Node| is_ready(node) && node.spec.as_ref().is_some_and(|spec| json!(spec.taints) == taints);
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
    assert_eq!(status.node_info.context("node info")?.kubelet_version, "v1.34.4");

    let leases = Api::<Lease>::namespaced(home.client.clone(), "kube-node-lease");
    let renewed =
        |lease: Option<&Lease>| lease.and_then(|lease| lease.spec.as_ref()).and_then(|spec| spec.renew_time.clone());
    let first = renewed(leases.get_opt(VIRTUAL_NODE).await?.as_ref());
    wait::until_one("a heartbeat", leases, VIRTUAL_NODE, |lease| renewed(lease).is_some() && renewed(lease) != first)
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_deleted_node_is_put_back_and_no_pod_goes_with_it() -> Result<()> {
    // On a virtual node of its own, because other tests use the shared one.
    offloaded(async |namespace| {
        let name = "away-deleted";
        by_hand::virtual_node(&namespace.home, &namespace.peering, name).await?;
        let nodes = Api::<Node>::all(namespace.home.client.clone());
        let node = wait::until_one("a ready node", nodes.clone(), name, |node| node.is_some_and(is_ready)).await?;
        let before = node.and_then(|node| node.uid());
        let mut pinned = pod("web", SERVE);
        pinned.spec.as_mut().context("a spec")?.node_selector =
            Some([("kubernetes.io/hostname".into(), name.into())].into());
        namespace.home_pods().create(&PostParams::default(), &pinned).await?;
        let pods = ready(&namespace, 1).await?;
        nodes.delete(name, &DeleteParams::default()).await?;
        wait::until_one("the node to be back", nodes.clone(), name, |node| {
            node.is_some_and(|node| node.uid() != before && is_ready(node))
        })
        .await?;
        let strip = json!({"metadata": {"labels": {"liqo.io/type": null, "added": "by-an-admin"}}});
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(strip)).await?;
        let whole = |node: &Node| ["liqo.io/type", "added"].iter().all(|key| node.labels().contains_key(*key));
        wait::until_one("its own label back, and the admin's kept", nodes, name, |node| node.is_some_and(whole))
            .await?;
        let after = ready(&namespace, 1).await?;
        ensure!(pods["web"].uid() == after["web"].uid(), "the pod was replaced");
        namespace.home_pods().delete("web", &DeleteParams::default()).await?;
        wait::until("no pod", namespace.home_pods(), Default::default(), |pods| pods.is_empty()).await?;
        remove(&namespace.home, &namespace.peering.tenant_namespace, name).await
    })
    .await
}

/// Deletes a VirtualNode and waits until it and its Node are gone.
pub async fn remove(home: &Side, tenant_namespace: &str, name: &str) -> Result<()> {
    let virtual_nodes = Api::<spillway_api::offloading::VirtualNode>::namespaced(home.client.clone(), tenant_namespace);
    virtual_nodes.delete(name, &DeleteParams::default()).await?;
    wait::until_one("the VirtualNode to go", virtual_nodes, name, |node| node.is_none()).await?;
    wait::until_one("its Node to go", Api::<Node>::all(home.client.clone()), name, |node| node.is_none()).await?;
    Ok(())
}
