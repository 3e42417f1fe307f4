//! Steps on the provider alone.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::Config;
use serde_json::{Value, json};
use spillway_api::offloading::ShadowPod;
use spillway_api::well_known::annotation;
use spillway_e2e::{Side, by_hand, install, wait};
use spillway_testbed::Testbed;

const NAMESPACE: &str = "tenant";

async fn order(away: &Side, changes: Value) -> Result<(Api<ShadowPod>, Api<Pod>)> {
    let namespaces = Api::<Namespace>::all(away.client.clone());
    if namespaces.get_opt(NAMESPACE).await?.is_none() {
        let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
    }
    let mut spec = json!({"terminationGracePeriodSeconds": 1, "containers": [
        {"name": "main", "image": "busybox:testbed", "imagePullPolicy": "Never", "command": ["sleep", "86400"]}]});
    spec.as_object_mut().context("a spec")?.extend(changes.as_object().cloned().unwrap_or_default());
    let metadata = json!({"name": "web", "labels": {"offloading.liqo.io/origin": "nowhere"}});
    by_hand::apply::<ShadowPod>(away, NAMESPACE, json!({"metadata": metadata, "spec": {"pod": spec}})).await?;
    let client = &away.client;
    Ok((Api::namespaced(client.clone(), NAMESPACE), Api::namespaced(client.clone(), NAMESPACE)))
}

/// The node is one that never was: an object without a kubelet.
pub async fn a_pod_of_a_lost_node_is_replaced_at_once_by_force(away: &Side) -> Result<()> {
    let nodes = Api::<Node>::all(away.client.clone());
    nodes.create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": "lost"}}))?).await?;
    let (shadows, pods) = order(away, json!({"nodeName": "lost", "tolerations": [{"operator": "Exists"}]})).await?;
    let before = wait::until_one("a pod on the lost node", pods.clone(), "web", |pod| pod.is_some()).await?;
    let before = before.and_then(|pod| pod.uid());
    pods.delete("web", &DeleteParams::default().grace_period(3600)).await?;
    let other = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != before);
    wait::until_one("another pod, long before the hour is over", pods.clone(), "web", other).await?;
    shadows.delete("web", &DeleteParams::default()).await?;
    wait::until_one("the pod to go", pods, "web", |pod| pod.is_none()).await?;
    wait::until_one("its ShadowPod to go", shadows, "web", |shadow| shadow.is_none()).await?;
    nodes.delete("lost", &DeleteParams::default()).await?;
    Ok(())
}

pub async fn uninstalling_is_refused_or_leaves_nothing_behind(testbed: &Testbed, away: &Side) -> Result<()> {
    let (shadows, pods) = order(away, json!({})).await?;
    let running = |pod: Option<&Pod>| {
        pod.and_then(|pod| pod.status.as_ref()).is_some_and(|status| status.phase.as_deref() == Some("Running"))
    };
    wait::until_one("a pod that runs", pods.clone(), "web", running).await?;
    let uninstall = || -> Result<std::process::Output> {
        let mut helm = testbed.helm("away")?;
        helm.args(["uninstall", "spillway-shadow-pod", "-n", install::NAMESPACE, "--wait", "--timeout", "3m"]);
        helm.output().context("helm cannot be run")
    };
    let refused = tokio::task::block_in_place(uninstall)?;
    let said = format!("{}{}", String::from_utf8_lossy(&refused.stdout), String::from_utf8_lossy(&refused.stderr));
    ensure!(
        !refused.status.success() && said.contains("1 ShadowPods (tenant: 1)"),
        "not refused, or without a reason: {said}"
    );
    let deployments = Api::<Deployment>::namespaced(away.client.clone(), install::NAMESPACE);
    ensure!(deployments.get("spillway-shadow-pod").await?.metadata.deletion_timestamp.is_none(), "it was uninstalled");
    ensure!(pods.get("web").await?.metadata.deletion_timestamp.is_none(), "the pod was deleted");

    let force = json!({"metadata": {"annotations": {annotation::FORCE_UNINSTALL: "true"}}});
    deployments.patch("spillway-shadow-pod", &PatchParams::default(), &Patch::Merge(force)).await?;
    let forced = tokio::task::block_in_place(uninstall)?;
    ensure!(forced.status.success(), "{}", String::from_utf8_lossy(&forced.stderr));
    wait::until("no ShadowPod", shadows, Config::default(), |shadows| shadows.is_empty()).await?;
    wait::until("no pod", pods, Config::default(), |pods| pods.is_empty()).await?;
    let namespaces = Api::<Namespace>::all(away.client.clone());
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await?;
    wait::until_one("the namespace to go", namespaces, NAMESPACE, |namespace| namespace.is_none()).await?;
    Ok(())
}
