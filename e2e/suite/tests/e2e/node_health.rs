//! What an absence of the remote API server does to the Node.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::json;
use spillway_api::offloading::VkOptionsTemplate;
use spillway_e2e::{Namespace, by_hand, process, wait};
use spillway_testbed::{Scope, State};

use crate::node::{is_ready, nodes, own, own_ready, ready_condition, remove};
use crate::pods::{self, SERVE};
use crate::{VIRTUAL_NODE, alone, testbed};

/// Options like the default ones, with one argument more.
async fn options(namespace: &Namespace, name: &str, argument: &str) -> Result<()> {
    let tenant = &namespace.peering.tenant_namespace;
    let default = Api::<VkOptionsTemplate>::namespaced(namespace.home.client.clone(), spillway_e2e::install::NAMESPACE)
        .get("virtual-kubelet-default")
        .await?;
    let mut spec = json!(default.spec);
    spec["extraArgs"] = json!([argument]);
    let template = json!({"metadata": {"name": name}, "spec": spec});
    by_hand::apply::<VkOptionsTemplate>(&namespace.home, tenant, template).await
}

#[tokio::test]
async fn only_an_absence_that_lasts_makes_the_node_unready_and_one_born_during_it_recovers() -> Result<()> {
    alone(async |namespace| {
        let (patient, late) = ("away-patient", "away-late");
        options(&namespace, patient, "--node-unreachable-after=30m").await?;
        own_ready(&namespace, patient, json!({"vkOptionsTemplateRef": {"name": patient}})).await?;

        testbed().cut("home", "away", Scope::ControlPlane)?;
        let during = async {
            own(&namespace, late, json!({})).await?;
            for name in [VIRTUAL_NODE, late] {
                let down = |node: Option<&Node>| {
                    node.and_then(ready_condition) == Some(("False", "RemoteAPIServerUnreachable"))
                };
                wait::until_one("the node to be NotReady with a reason", nodes(&namespace), name, down).await?;
            }
            // The same cut, seen by one that has more patience.
            let calm = nodes(&namespace).get(patient).await?;
            ensure!(is_ready(&calm), "{:?}", ready_condition(&calm));
            Ok(())
        };
        let during = during.await;
        testbed().mend("home", "away")?;
        during?;

        let whole = |node: &Node| {
            let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
            is_ready(node) && info.is_some_and(|info| info.kubelet_version == "v1.34.4")
        };
        for name in [VIRTUAL_NODE, late, patient] {
            let back = |node: Option<&Node>| node.is_some_and(whole);
            wait::until_one("the node to be Ready, with its version", nodes(&namespace), name, back).await?;
        }
        for name in [late, patient] {
            remove(&namespace, name).await?;
        }
        let templates = &namespace.peering.tenant_namespace;
        let templates = Api::<VkOptionsTemplate>::namespaced(namespace.home.client.clone(), templates);
        templates.delete(patient, &Default::default()).await?;
        Ok(())
    })
    .await
}

/// Answers nothing for longer than a probe waits, then everything at once, again and again.
async fn stutter(cluster: &str, times: u32) -> Result<()> {
    let is_api_server = |name: &str| name == "kube-apiserver";
    let component = testbed().components().into_iter().find(|it| it.cluster == cluster && is_api_server(&it.name));
    let Some(State::Running { pid }) = component.map(|component| component.state) else {
        anyhow::bail!("no API server of {cluster}")
    };
    for _ in 0..times {
        process::freeze(pid)?;
        tokio::time::sleep(Duration::from_secs(4)).await;
        process::thaw(pid)?;
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    Ok(())
}

#[tokio::test]
async fn an_api_server_that_is_slow_makes_no_node_flap() -> Result<()> {
    alone(async |namespace| {
        let since = |node: &Node| {
            let conditions = node.status.as_ref()?.conditions.as_ref()?;
            conditions.iter().find(|condition| condition.type_ == "Ready")?.last_transition_time.clone()
        };
        namespace.home_pods().create(&PostParams::default(), &pods::pod("web", SERVE)).await?;
        let ready = |pod: Option<&Pod>| pod.is_some_and(pods::is_ready);
        let before = wait::until_one("a pod", namespace.home_pods(), "web", ready).await?.context("a pod")?;
        let node = nodes(&namespace).get(VIRTUAL_NODE).await?;
        // Altogether longer than it may be away.
        stutter("away", 4).await?;
        stutter("home", 2).await?;
        // What was held up has come by the time that a later pod runs.
        namespace.home_pods().create(&PostParams::default(), &pods::pod("later", SERVE)).await?;
        wait::until_one("a later pod", namespace.home_pods(), "later", ready).await?;
        let after = nodes(&namespace).get(VIRTUAL_NODE).await?;
        ensure!(is_ready(&after) && since(&after) == since(&node), "{:?}", after.status);
        let pod = namespace.home_pods().get("web").await?;
        ensure!(pods::is_ready(&pod) && pod.uid() == before.uid(), "{:?}", pod.status);
        Ok(())
    })
    .await
}
