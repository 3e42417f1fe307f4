//! Every operator as a Helm release of its own, on clusters of its own: the same pod crosses, what the umbrella leaves out
//! by default is tried, and an operator that is needed does not let itself be uninstalled.

mod daemon_sets;
mod provider;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, PostParams};
use serde_json::json;
use spillway_e2e::install::{self, Release};
use spillway_e2e::{Side, by_hand, offloaded, wait};
use spillway_testbed::{Spec, Testbed};

fn install_all() -> Result<Testbed> {
    let image = install::build_image()?;
    let testbed = install::clusters("e2e-single", &Spec::default(), &image)?;
    let tag = format!("image.tag={}", image.tag);
    let releases = [
        ("home", "spillway-crds", vec![]),
        ("home", "spillway-peering", vec![tag.clone(), "roles.consumer=true".to_owned()]),
        ("home", "spillway-virtual-kubelet", vec![tag.clone()]),
        ("home", "spillway-admission", vec![tag.clone(), "daemonSets.keepOffVirtualNodes=true".to_owned()]),
        ("away", "spillway-crds", vec![]),
        ("away", "spillway-peering", vec![tag.clone(), "roles.provider=true".to_owned()]),
        ("away", "spillway-shadow-pod", vec![tag, "onNodeLost=force".to_owned()]),
    ];
    for (cluster, chart, settings) in releases {
        install::release(&testbed, cluster, &Release { name: chart, chart, settings })?;
    }
    daemon_sets::umbrella_has_one_switch(&testbed)?;
    Ok(testbed)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_operator_installed_by_its_own_chart_takes_a_pod_across() -> Result<()> {
    let testbed = tokio::task::spawn_blocking(install_all).await??;
    offloaded(&testbed, async |namespace| {
        by_hand::virtual_node(&namespace.home, &namespace.peering, "away").await?;
        let ready = |status: Option<&serde_json::Value>| {
            let conditions = status.and_then(|status| status["conditions"].as_array().cloned());
            conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        };
        let nodes = Api::<Node>::all(namespace.home.client.clone());
        wait::until_one("a ready node", nodes, "away", |node| ready(node.map(|node| json!(node.status)).as_ref())).await?;
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {
            "nodeSelector": {"liqo.io/type": "virtual-node"}, "terminationGracePeriodSeconds": 1,
            "tolerations": [{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}],
            "containers": [{"name": "main", "image": "busybox:testbed", "imagePullPolicy": "Never", "command": ["sleep", "86400"]}],
        }}))?;
        namespace.home_pods().create(&PostParams::default(), &pod).await?;
        wait::until_one("a ready pod", namespace.home_pods(), "web", |pod| ready(pod.map(|pod| json!(pod.status)).as_ref())).await?;
        daemon_sets::stay_off_virtual_nodes(&namespace, "away").await
    })
    .await?;
    let away = Side::connect(&testbed, "away").await?;
    provider::a_pod_of_a_lost_node_is_replaced_at_once_by_force(&away).await?;
    provider::uninstalling_is_refused_or_leaves_nothing_behind(&testbed, &away).await?;

    // Uninstalling what came from charts leaves the CRDs, and with them everybody's objects.
    install::succeed(testbed.helm("away")?.args(["uninstall", "spillway-crds", "-n", install::NAMESPACE, "--wait"]))?;
    let kept = Api::<spillway_api::k8s::CustomResourceDefinition>::all(away.client)
        .get("shadowpods.offloading.liqo.io")
        .await?;
    assert!(kept.metadata.deletion_timestamp.is_none());
    tokio::task::spawn_blocking(|| testbed.down()).await?
}
