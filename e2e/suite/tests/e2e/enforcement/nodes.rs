//! Nodes that are lost. The node is one that never was: an object without a kubelet.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use spillway_e2e::wait;

use super::Ground;
use crate::offloaded;

#[tokio::test]
async fn a_pod_of_a_lost_node_is_replaced_when_kubernetes_gives_it_up() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let nodes = Api::<Node>::all(namespace.away.client.clone());
        let name = format!("lost-{}", namespace.name);
        nodes.create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": name}}))?).await?;
        let tolerations = json!([{"operator": "Exists"}]);
        ground.order("web", json!({"spec": {"pod": {"nodeName": name, "tolerations": tolerations}}})).await?;
        let before = ground.pod_until("web", "a pod on the lost node", |_| true).await?.uid();
        ground.pods.delete("web", &DeleteParams::default()).await?;
        ground.catch_up().await?;
        let stuck = ground.pods.get("web").await?;
        ensure!(
            stuck.uid() == before && stuck.metadata.deletion_timestamp.is_some(),
            "nobody knows yet whether it runs"
        );

        let taint =
            json!([{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}]);
        nodes.patch(&name, &PatchParams::default(), &Patch::Merge(json!({"spec": {"taints": taint}}))).await?;
        ground.pod_until("web", "another pod", |pod: &Pod| pod.uid() != before).await?;
        ground.shadows.delete("web", &DeleteParams::default()).await?;
        wait::until_one("the pod to go", ground.pods.clone(), "web", |pod| pod.is_none()).await?;
        nodes.delete(&name, &DeleteParams::default()).await?;
        Ok(())
    })
    .await
}
