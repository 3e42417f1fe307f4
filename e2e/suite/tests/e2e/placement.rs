//! Where over there a pod runs: what the VirtualNode says of it, and what the pod's own annotations do.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use spillway_e2e::{Namespace, by_hand, wait};

use crate::node::{nodes, own_ready, remove, spec_on};
use crate::offloaded;
use crate::pods::{SERVE, is_ready, remote_spec};

async fn create(namespace: &Namespace, name: &str, annotations: Value, spec: &Value) -> Result<()> {
    let metadata = json!({"name": name, "labels": {"app": "web"}, "annotations": annotations});
    let pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec}))?;
    namespace.home_pods().create(&PostParams::default(), &pod).await?;
    Ok(())
}

/// The pod at home and its twin, once it runs.
async fn running(namespace: &Namespace, name: &str) -> Result<(Pod, Pod)> {
    let ready = |pod: Option<&Pod>| pod.is_some_and(is_ready);
    let local = wait::until_one("a ready pod", namespace.home_pods(), name, ready).await?.context("a pod")?;
    Ok((local, namespace.away_pods().get(name).await?))
}

#[tokio::test]
async fn the_virtual_node_says_where_its_pods_run_and_how() -> Result<()> {
    offloaded(async |namespace| {
        let (name, other) = ("e2e-placed", "e2e-placed-other");
        for class in [name, other] {
            let class = json!({"metadata": {"name": class}, "handler": "runc"});
            by_hand::apply_cluster::<RuntimeClass>(&namespace.away, class).await?;
        }
        let (selector, toleration) =
            (json!({"kubernetes.io/hostname": "away-0"}), json!({"key": "gpu", "operator": "Exists"}));
        let matching = json!({"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]});
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [matching]}}});
        let patch = json!({"nodeSelector": selector, "tolerations": [toleration], "affinity": affinity, "runtimeClassName": name});
        let node = own_ready(&namespace, name, json!({"offloadingPatch": patch})).await?;

        create(&namespace, "plain", json!({}), &spec_on(name, SERVE)).await?;
        create(&namespace, "choosy", json!({"liqo.io/remote-runtime-class-name": other}), &spec_on(name, SERVE)).await?;
        let (local, remote) = running(&namespace, "plain").await?;
        let spec = json!(remote.spec);
        assert_eq!((&spec["nodeSelector"], &spec["affinity"]), (&selector, &affinity));
        assert_eq!(spec["runtimeClassName"], name);
        let tolerations = spec["tolerations"].as_array().context("tolerations")?;
        ensure!(tolerations.contains(&toleration), "{tolerations:?}");
        let own = |key: &str| tolerations.iter().any(|toleration| toleration["key"] == key);
        ensure!(!own("virtual-node.liqo.io/not-allowed"), "that was about the virtual node: {tolerations:?}");
        let (_, chosen) = running(&namespace, "choosy").await?;
        assert_eq!(json!(chosen.spec)["runtimeClassName"], other);

        let address = |node: &Node| {
            let mut addresses = node.status.as_ref()?.addresses.iter().flatten();
            addresses.find(|address| address.type_ == "InternalIP").map(|address| address.address.clone())
        };
        let host = local.status.and_then(|status| status.host_ip);
        ensure!(host.is_some() && host == address(&node), "its host {host:?} is the node {:?}", address(&node));
        remove(&namespace, name).await?;
        ensure!(nodes(&namespace).get_opt(name).await?.is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn replicas_keep_apart_over_there_if_they_are_told_to() -> Result<()> {
    offloaded(async |namespace| {
        let apart = json!({"liqo.io/anti-affinity-preset": "hard", "liqo.io/anti-affinity-labels": "app"});
        create(&namespace, "one", apart.clone(), &remote_spec(SERVE)).await?;
        running(&namespace, "one").await?;
        create(&namespace, "two", apart, &remote_spec(SERVE)).await?;
        // There is but one node.
        let told = |pod: Option<&Pod>| {
            let status = pod.and_then(|pod| pod.status.as_ref());
            let reason = status.and_then(|status| status.reason.as_deref());
            let message = status.and_then(|status| status.message.as_deref()).unwrap_or_default();
            reason == Some("RemoteUnschedulable") && message.contains("anti-affinity")
        };
        wait::until_one("the remote scheduler's words", namespace.home_pods(), "two", told).await?;
        namespace.home_pods().delete("one", &DeleteParams::default()).await?;
        let (two, _) = running(&namespace, "two").await?;
        ensure!(two.status.and_then(|status| status.reason).is_none(), "what is over is not told any more");

        create(&namespace, "bad", json!({"liqo.io/anti-affinity-preset": "never"}), &remote_spec(SERVE)).await?;
        let refused = |pod: Option<&Pod>| {
            let message = pod.and_then(|pod| pod.status.as_ref()?.message.clone()).unwrap_or_default();
            message.contains("none of propagate, soft, hard")
        };
        let bad = wait::until_one("the refusal", namespace.home_pods(), "bad", refused).await?.context("a pod")?;
        ensure!(namespace.shadow_pods().get_opt(&bad.name_any()).await?.is_none());
        Ok(())
    })
    .await
}
