//! A cut link.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use spillway_api::offloading::ShadowPod;
use spillway_e2e::audit::Audit;
use spillway_e2e::{Namespace, wait};
use spillway_testbed::Scope;

use crate::pods::{SERVE, is_ready, pod, ready};
use crate::{VIRTUAL_NODE, alone, node, testbed, victims};

#[tokio::test]
async fn what_happened_during_a_cut_is_made_up_for_after_it() -> Result<()> {
    alone(async |namespace| {
        for name in ["stays", "goes"] {
            namespace.home_pods().create(&PostParams::default(), &pod(name, SERVE)).await?;
        }
        ready(&namespace, 2).await?;
        let before = namespace.away_pods().get("stays").await?.uid();

        testbed().cut("home", "away", Scope::ControlPlane)?;
        let during = async {
            let nodes = Api::<Node>::all(namespace.home.client.clone());
            let down = |node: Option<&Node>| {
                node.and_then(node::ready_condition) == Some(("False", "RemoteAPIServerUnreachable"))
            };
            wait::until_one("the node to be NotReady with a reason", nodes, VIRTUAL_NODE, down).await?;
            namespace.home_pods().delete("goes", &DeleteParams::default()).await?;
            let mut born = pod("born", SERVE);
            // The scheduler would wait for a Ready node.
            born.spec.as_mut().context("a spec")?.node_name = Some(VIRTUAL_NODE.into());
            namespace.home_pods().create(&PostParams::default(), &born).await?;
            // Who looks at what waits sees what it waits for.
            for name in ["born", "goes"] {
                let told = |pod: Option<&Pod>| reason(pod) == Some("RemoteAPIServerUnreachable");
                wait::until_one("the reason on the pod", namespace.home_pods(), name, told).await?;
            }
            nothing_is_written_over_what_others_say(&namespace).await
        };
        let during = during.await;
        testbed().mend("home", "away")?;
        during?;

        let runs = |pod: Option<&Pod>| pod.is_some_and(is_ready) && reason(pod).is_none();
        wait::until_one("the pod born during the cut", namespace.home_pods(), "born", runs).await?;
        wait::until_one("the pod deleted during the cut to go", namespace.home_pods(), "goes", |pod| pod.is_none())
            .await?;
        wait::until_one("and its twin", namespace.away_pods(), "goes", |pod| pod.is_none()).await?;
        let nodes = Api::<Node>::all(namespace.home.client.clone());
        wait::until_one("the node to be Ready again", nodes, VIRTUAL_NODE, |node| node.is_some_and(node::is_ready))
            .await?;
        wait::until_one("the pod to be Ready again", namespace.home_pods(), "stays", |pod| pod.is_some_and(is_ready))
            .await?;
        let after = namespace.away_pods().get("stays").await?.uid();
        ensure!(before == after, "the pod that was not touched was replaced");
        Ok(())
    })
    .await
}

fn reason(pod: Option<&Pod>) -> Option<&str> {
    pod?.status.as_ref()?.reason.as_deref()
}

/// Says of a running pod, in the node controller's place, that it is not ready: virtual-kubelet knows no better while the
/// link is cut, and must not answer with what it saw before.
async fn nothing_is_written_over_what_others_say(namespace: &Namespace) -> Result<()> {
    let audit = Audit::from_now(testbed(), "home")?;
    let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeNotReady"}]}});
    let pods = namespace.home_pods();
    pods.patch_status("stays", &PatchParams::default(), &Patch::Strategic(unready)).await?;
    // A change that needs no link shows that virtual-kubelet has had its turn with everything before it.
    let mut other = pod("other", SERVE);
    other.spec.as_mut().context("a spec")?.node_name = Some(VIRTUAL_NODE.into());
    pods.create(&PostParams::default(), &other).await?;
    let told = |pod: Option<&Pod>| reason(pod) == Some("RemoteAPIServerUnreachable");
    wait::until_one("the reason on a later pod", pods.clone(), "other", told).await?;
    let requests = audit.requests()?;
    let written: Vec<_> = requests
        .iter()
        .filter(|request| request.name == "stays" && request.is_write() && request.user.contains(":vk-"))
        .collect();
    ensure!(written.is_empty(), "{written:?}");
    ensure!(!is_ready(&pods.get("stays").await?), "what was said of the pod is gone");
    pods.delete("other", &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}

#[tokio::test]
async fn a_pod_force_deleted_while_nobody_could_look_leaves_nothing_behind() -> Result<()> {
    alone(async |namespace| {
        namespace.home_pods().create(&PostParams::default(), &pod("web", SERVE)).await?;
        ready(&namespace, 1).await?;
        testbed().cut("home", "away", Scope::All)?;
        let during = async {
            namespace.home_pods().delete("web", &DeleteParams::default().grace_period(0)).await?;
            victims::virtual_kubelet(&namespace).kill(true).await
        };
        let during = during.await;
        testbed().mend("home", "away")?;
        during?;
        let shadows = Api::<ShadowPod>::namespaced(namespace.away.client.clone(), &namespace.twin);
        wait::until_one("the ShadowPod to go", shadows, "web", |shadow| shadow.is_none()).await?;
        wait::until_one("its pod to go", namespace.away_pods(), "web", |pod| pod.is_none()).await?;
        Ok(())
    })
    .await
}
