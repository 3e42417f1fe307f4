//! VirtualNodes that cannot work say why, and harm nobody.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use spillway_api::offloading::VirtualNodeConditionType as Type;
use spillway_e2e::{Namespace, by_hand, wait};

use crate::node::{is_ready, nodes, own, ready_condition, remove, told, virtual_nodes};
use crate::offloaded;

async fn deployment(namespace: &Namespace, name: &str) -> Result<Option<Deployment>> {
    let tenant = &namespace.peering.tenant_namespace;
    let api = Api::<Deployment>::namespaced(namespace.home.client.clone(), tenant);
    Ok(api.get_opt(&format!("vk-{name}")).await?)
}

async fn delete(namespace: &Namespace, name: &str) -> Result<()> {
    virtual_nodes(namespace).delete(name, &DeleteParams::default()).await?;
    wait::until_one("the VirtualNode to go", virtual_nodes(namespace), name, |node| node.is_none()).await?;
    Ok(())
}

#[tokio::test]
async fn the_name_of_a_real_node_is_refused_until_it_is_free() -> Result<()> {
    offloaded(async |namespace| {
        let real = "home-0";
        let before = nodes(&namespace).get(real).await?;
        own(&namespace, real, json!({})).await?;
        let message = told(&namespace, real, Type::VirtualKubelet, "NodeNameTaken").await?;
        ensure!(message.contains("another name"), "{message}");
        ensure!(deployment(&namespace, real).await?.is_none(), "no virtual-kubelet is made");
        delete(&namespace, real).await?;
        let after = nodes(&namespace).get(real).await?;
        let marks = |node: &Node| (node.uid(), node.labels().clone(), node.spec.clone());
        ensure!(marks(&after) == marks(&before), "the real node was touched");

        let name = "away-taken";
        let theirs: Node = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        let theirs = nodes(&namespace).create(&PostParams::default(), &theirs).await?;
        own(&namespace, name, json!({})).await?;
        told(&namespace, name, Type::VirtualKubelet, "NodeNameTaken").await?;
        nodes(&namespace).delete(name, &DeleteParams::default()).await?;
        let ours = |node: Option<&Node>| node.is_some_and(|node| is_ready(node) && node.uid() != theirs.uid());
        wait::until_one("the name's new owner", nodes(&namespace), name, ours).await?;
        remove(&namespace, name).await
    })
    .await
}

#[tokio::test]
async fn a_name_that_is_too_long_is_refused() -> Result<()> {
    offloaded(async |namespace| {
        let name = format!("away-{}", "n".repeat(59));
        own(&namespace, &name, json!({})).await?;
        let message = told(&namespace, &name, Type::VirtualKubelet, "NameTooLong").await?;
        ensure!(message.contains("64 characters") && message.contains("63"), "{message}");
        delete(&namespace, &name).await
    })
    .await
}

/// A Secret with a kubeconfig made of the one that works, and a VirtualNode that uses it.
async fn with_kubeconfig(namespace: &Namespace, name: &str, spoil: impl FnOnce(&mut Value) -> String) -> Result<()> {
    let (home, tenant) = (&namespace.home, &namespace.peering.tenant_namespace);
    let good = Api::<Secret>::namespaced(home.client.clone(), tenant).get(&namespace.peering.kubeconfig_secret).await?;
    let good = good.data.and_then(|mut data| data.remove("kubeconfig")).context("a kubeconfig")?;
    let spoilt = spoil(&mut serde_json::from_slice(&good.0)?);
    let secret = json!({"metadata": {"name": name}, "stringData": {"kubeconfig": spoilt}});
    by_hand::apply::<Secret>(home, tenant, secret).await?;
    own(namespace, name, json!({"kubeconfigSecretRef": {"name": name}})).await
}

async fn without_secret(namespace: &Namespace, name: &str) -> Result<()> {
    let tenant = &namespace.peering.tenant_namespace;
    let secrets = Api::<Secret>::namespaced(namespace.home.client.clone(), tenant);
    secrets.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn a_kubeconfig_that_is_none_is_told_of_on_the_virtual_node() -> Result<()> {
    offloaded(async |namespace| {
        let name = "away-garbage";
        with_kubeconfig(&namespace, name, |_| "this is no kubeconfig".to_owned()).await?;
        let says = |node: Option<&spillway_api::offloading::VirtualNode>| {
            let condition = node.and_then(|node| crate::node::condition(node, Type::VirtualKubelet));
            condition.is_some_and(|(_, _, message)| message.contains("kubeconfig") && message.contains("Error: "))
        };
        wait::until_one("the error on the VirtualNode", virtual_nodes(&namespace), name, says).await?;
        remove(&namespace, name).await?;
        without_secret(&namespace, name).await
    })
    .await
}

#[tokio::test]
async fn credentials_that_the_remote_refuses_are_the_reason_on_the_node() -> Result<()> {
    offloaded(async |namespace| {
        let name = "away-stranger";
        with_kubeconfig(&namespace, name, |kubeconfig| {
            kubeconfig["users"][0]["user"] = json!({"token": "no such token"});
            kubeconfig.to_string()
        })
        .await?;
        let refused =
            |node: Option<&Node>| node.and_then(ready_condition) == Some(("False", "RemoteCredentialsRefused"));
        wait::until_one("the reason on the Node", nodes(&namespace), name, refused).await?;
        remove(&namespace, name).await?;
        without_secret(&namespace, name).await
    })
    .await
}
