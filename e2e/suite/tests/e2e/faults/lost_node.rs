//! A node of the provider whose kubelet dies: its pods are replaced when Kubernetes gives them up, and not before.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use spillway_e2e::{Namespace, Observer, wait};
use spillway_testbed::{Spec, Testbed};

use super::long_cut::impatient;
use super::restarts;
use crate::node;
use crate::pods::is_ready;
use crate::set_up;

/// The first node carries the operators; the second is the one that dies.
const SAFE: &str = "away-0";
const DOOMED: &str = "away-1";
const KUBELET: &str = "away/kubelet-1";

fn nodes(namespace: &Namespace) -> Api<Node> {
    Api::all(namespace.away.client.clone())
}

async fn cordon(namespace: &Namespace, name: &str, cordoned: bool) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"unschedulable": cordoned}}));
    nodes(namespace).patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn runs_on(pod: &Pod, name: &str) -> bool {
    is_ready(pod) && pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(name)
}

/// Waits for the pod on a node, and gives its UID there.
async fn on(namespace: &Namespace, name: &str) -> Result<Option<String>> {
    let there = |pod: Option<&Pod>| pod.is_some_and(|pod| runs_on(pod, name));
    let pod = wait::until_one(&format!("the pod on {name}"), namespace.away_pods(), "web", there).await?;
    Ok(pod.and_then(|pod| pod.uid()))
}

/// Waits until the local pod, still the same, is Ready after so many lives over there.
async fn at_home(namespace: &Namespace, local: &Pod, recreations: i32) -> Result<()> {
    let back = |pod: Option<&Pod>| pod.is_some_and(|pod| is_ready(pod) && restarts(pod) == recreations);
    let pod = wait::until_one("the local pod to be Ready again", namespace.home_pods(), "web", back).await?;
    ensure!(pod.and_then(|pod| pod.uid()) == local.uid(), "the local pod was replaced");
    Ok(())
}

async fn outlives_its_nodes(testbed: &Testbed, namespace: Namespace) -> Result<()> {
    cordon(&namespace, SAFE, true).await?;
    let web = json!({"metadata": {"name": "web"}, "spec": impatient()});
    namespace.home_pods().create(&PostParams::default(), &serde_json::from_value(web)?).await?;
    let first = on(&namespace, DOOMED).await?;
    cordon(&namespace, SAFE, false).await?;
    let local = wait::until_one("the local pod", namespace.home_pods(), "web", |pod| pod.is_some_and(is_ready)).await?;
    let local = local.context("a pod")?;
    let seen = Observer::of(namespace.away_pods());

    testbed.kill(KUBELET)?;
    let given_up = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some());
    wait::until_one("its cluster to give the pod up", namespace.away_pods(), "web", given_up).await?;
    let unready = |pod: Option<&Pod>| pod.is_some_and(|pod| !is_ready(pod));
    wait::until_one("the local pod to tell", namespace.home_pods(), "web", unready).await?;
    let stuck = namespace.away_pods().get("web").await?;
    ensure!(stuck.uid() == first, "replaced although nobody can know whether it still runs");
    testbed.start(KUBELET)?;
    let second = on(&namespace, SAFE).await?;
    at_home(&namespace, &local, 1).await?;

    cordon(&namespace, SAFE, true).await?;
    namespace.away_pods().delete("web", &DeleteParams::default()).await?;
    let third = on(&namespace, DOOMED).await?;
    cordon(&namespace, SAFE, false).await?;
    at_home(&namespace, &local, 2).await?;
    testbed.kill(KUBELET)?;
    nodes(&namespace).delete(DOOMED, &DeleteParams::default()).await?;
    let fourth = on(&namespace, SAFE).await?;
    at_home(&namespace, &local, 3).await?;
    testbed.start(KUBELET)?;
    wait::until_one("the node to be back", nodes(&namespace), DOOMED, |node| node.is_some_and(node::is_ready)).await?;

    let lives = seen.runs().remove(&local.uid().context("a UID")?).context("its remote pods")?;
    let known = [first, second, third, fourth].map(Option::unwrap_or_default);
    ensure!(lives.keys().all(|uid| known.contains(uid)) && lives.len() == 4, "{lives:?}, of which known: {known:?}");
    Ok(())
}

/// On clusters of its own, with two nodes each and little patience for a silent one.
#[tokio::test]
#[ignore = "soak"]
async fn a_pod_outlives_the_nodes_that_it_runs_on() -> Result<()> {
    let patience = vec!["--node-monitor-grace-period=20s".to_owned()];
    let extra_args = [("kube-controller-manager".to_owned(), patience)].into();
    let testbed = set_up("lost", Spec { nodes: 2, extra_args, ..Spec::default() }).await?;
    let outcome = spillway_e2e::offloaded(&testbed, |namespace| outlives_its_nodes(&testbed, namespace)).await;
    testbed.down()?;
    outcome
}
