//! What an absence of the remote API server does to the Node.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use serde_json::json;
use spillway_api::offloading::VkOptionsTemplate;
use spillway_e2e::{Namespace, by_hand, wait};
use spillway_testbed::Scope;

use crate::node::{is_ready, nodes, own, own_ready, ready_condition, remove};
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
