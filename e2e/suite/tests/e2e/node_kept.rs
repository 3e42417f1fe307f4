//! A virtual node stays as its VirtualNode says and as its admins left it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};
use spillway_e2e::{Namespace, wait};

use crate::node::{is_ready, nodes, own_ready, pod_on, remove, virtual_nodes};
use crate::pods::ready;
use crate::{offloaded, victims};

fn taints(node: &Node) -> Vec<&str> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let keys = taints.into_iter().flatten().map(|taint| taint.key.as_str());
    keys.filter(|key| !key.starts_with("node.kubernetes.io/")).collect()
}

async fn patch(namespace: &Namespace, name: &str, patch: Value) -> Result<Node> {
    Ok(nodes(namespace).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
}

/// What an admin does to a node: labels it, cordons it, and lets every pod in.
async fn administer(namespace: &Namespace, name: &str) -> Result<()> {
    let own = nodes(namespace).get(name).await?;
    let taints = own.spec.context("a spec")?.taints.unwrap_or_default();
    let taints: Vec<_> = taints.into_iter().filter(|taint| !taint.key.contains("not-allowed")).collect();
    let change = json!({
        "metadata": {"labels": {"added": "by-an-admin"}, "annotations": {"added": "too"}},
        "spec": {"unschedulable": true, "taints": taints},
    });
    patch(namespace, name, change).await.map(drop)
}

fn as_administered(node: &Node) -> bool {
    node.labels().contains_key("added")
        && node.annotations().contains_key("added")
        && node.labels().get("liqo.io/type").is_some_and(|kind| kind == "virtual-node")
        && node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true))
        && taints(node) == ["e2e.spillway.dev/own"]
        && is_ready(node)
}

#[tokio::test]
async fn a_deleted_node_is_put_back_as_it_was_and_no_pod_goes_with_it() -> Result<()> {
    offloaded(async |namespace| {
        let name = "away-deleted";
        own_ready(&namespace, name, json!({})).await?;
        namespace.home_pods().create(&PostParams::default(), &pod_on(name, "web")).await?;
        let pods = ready(&namespace, 1).await?;
        administer(&namespace, name).await?;
        let before =
            wait::until_one("what the admin did", nodes(&namespace), name, |node| node.is_some_and(as_administered))
                .await?
                .context("a node")?;

        nodes(&namespace).delete(name, &DeleteParams::default()).await?;
        let begun = Instant::now();
        let back = |node: Option<&Node>| node.is_some_and(|node| node.uid() != before.uid() && as_administered(node));
        wait::until_one("the node to be back as it was", nodes(&namespace), name, back).await?;
        ensure!(begun.elapsed() < Duration::from_secs(5), "it took {:?}", begun.elapsed());

        victims::virtual_kubelet_of(&namespace, name).kill(true).await?;
        let strip = json!({"metadata": {"labels": {"liqo.io/type": null, "liqo.io/remote-cluster-id": "stolen"}}});
        patch(&namespace, name, strip).await?;
        let whole =
            wait::until_one("its own labels back", nodes(&namespace), name, |node| node.is_some_and(as_administered))
                .await?
                .context("a node")?;
        assert_eq!(whole.labels().get("liqo.io/remote-cluster-id"), Some(&namespace.peering.away_id));
        let after = ready(&namespace, 1).await?;
        ensure!(pods["web"].uid() == after["web"].uid(), "the pod was replaced");
        remove(&namespace, name).await
    })
    .await
}

#[tokio::test]
async fn the_node_follows_its_virtual_node() -> Result<()> {
    offloaded(async |namespace| {
        let name = "away-followed";
        own_ready(&namespace, name, json!({"labels": {"zone": "a", "kubernetes.io/arch": "arm64"}})).await?;
        patch(&namespace, name, json!({"metadata": {"labels": {"theirs": "1"}}})).await?;
        let change = async |change: Value| {
            let patch = Patch::Merge(json!({"spec": change}));
            virtual_nodes(&namespace).patch(name, &PatchParams::default(), &patch).await
        };
        let own = json!({"key": "e2e.spillway.dev/own", "value": name, "effect": "NoSchedule"});
        change(json!({
            "labels": {"zone": "b", "new": "1"}, "annotations": {"note": "1"},
            "taints": [own, {"key": "gpu", "effect": "NoSchedule"}],
            "resourceQuota": {"hard": {"example.com/gpu": 2, "memory": "2Gi"}},
        }))
        .await?;
        let label = |node: &Node, key: &str| node.labels().get(key).cloned();
        let capacity = |node: &Node| json!(node.status.as_ref().and_then(|status| status.capacity.clone()));
        let changed = |node: &Node| {
            let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
            label(node, "zone").as_deref() == Some("b")
                && label(node, "theirs").is_some()
                && node.annotations().contains_key("note")
                && taints(node) == ["virtual-node.liqo.io/not-allowed", "e2e.spillway.dev/own", "gpu"]
                && capacity(node)["example.com/gpu"] == "2"
                && capacity(node)["memory"] == "2Gi"
                && info.is_some_and(|info| info.architecture == "arm64")
        };
        wait::until_one("what was added", nodes(&namespace), name, |node| node.is_some_and(changed)).await?;
        change(json!({
            "labels": {"new": null}, "annotations": null, "taints": [own],
            "resourceQuota": {"hard": {"example.com/gpu": null}},
        }))
        .await?;
        let removed = |node: &Node| {
            label(node, "new").is_none()
                && label(node, "theirs").is_some()
                && !node.annotations().contains_key("note")
                && taints(node) == ["virtual-node.liqo.io/not-allowed", "e2e.spillway.dev/own"]
                && capacity(node).get("example.com/gpu").is_none()
        };
        wait::until_one("what was taken away", nodes(&namespace), name, |node| node.is_some_and(removed)).await?;
        remove(&namespace, name).await
    })
    .await
}

/// PodGC gives a Node that vanished 40 s to come back; so this looks on for longer than that.
#[tokio::test]
#[ignore = "soak"]
async fn no_pod_is_collected_for_a_node_that_was_deleted() -> Result<()> {
    offloaded(async |namespace| {
        let name = "away-collected";
        own_ready(&namespace, name, json!({})).await?;
        namespace.home_pods().create(&PostParams::default(), &pod_on(name, "web")).await?;
        let pods = ready(&namespace, 1).await?;
        nodes(&namespace).delete(name, &DeleteParams::default()).await?;
        let looking = async {
            let events = watcher::watcher(namespace.home_pods(), watcher::Config::default());
            pin_mut!(events);
            while let Some(event) = events.next().await {
                let harmed = match event? {
                    Event::Delete(pod) => Some(pod),
                    Event::Apply(pod) => Some(pod).filter(|pod: &Pod| pod.metadata.deletion_timestamp.is_some()),
                    _ => None,
                };
                ensure!(harmed.is_none(), "a pod was deleted: {:?}", harmed.map(|pod| pod.metadata));
            }
            Ok(())
        };
        if let Ok(ended) = tokio::time::timeout(Duration::from_secs(75), looking).await {
            return ended.and_then(|()| anyhow::bail!("the watch ended"));
        }
        assert_eq!(ready(&namespace, 1).await?["web"].uid(), pods["web"].uid());
        remove(&namespace, name).await
    })
    .await
}
