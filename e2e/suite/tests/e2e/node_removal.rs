//! A VirtualNode that is deleted takes everything back, pods first.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::Config;
use serde_json::{Value, json};
use spillway_api::offloading::{ShadowPod, VirtualNodeConditionType as Type};
use spillway_e2e::{Namespace, wait};

use crate::node::{is_ready, nodes, own_ready, pod_on, remove, spec_on, told, virtual_nodes};
use crate::offloaded;
use crate::pods::{SERVE, is_ready as pod_is_ready};

const ONE: &str = "away-one";
const TWO: &str = "away-two";

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

fn on<'a>(pods: &'a BTreeMap<String, Pod>, node: &'a str) -> impl Iterator<Item = &'a Pod> {
    pods.values().filter(move |pod| node_of(pod) == node)
}

/// A DaemonSet for the two nodes.
fn daemon_set(name: &str, tolerations: Option<Value>) -> Result<DaemonSet> {
    let mut spec = spec_on(ONE, SERVE);
    spec["nodeSelector"] = json!({});
    spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [ONE, TWO]}]},
    ]}}});
    if let Some(tolerations) = tolerations {
        spec["tolerations"] = tolerations;
    }
    Ok(serde_json::from_value(json!({"metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
    }}))?)
}

async fn populate(namespace: &Namespace) -> Result<BTreeMap<String, Pod>> {
    let (client, params) = (&namespace.home.client, PostParams::default());
    let deployment = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec_on(ONE, SERVE)},
    }}))?;
    Api::<Deployment>::namespaced(client.clone(), &namespace.name).create(&params, &deployment).await?;
    let budget = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {
        "minAvailable": 2, "selector": {"matchLabels": {"app": "web"}},
    }}))?;
    Api::<PodDisruptionBudget>::namespaced(client.clone(), &namespace.name).create(&params, &budget).await?;
    let daemon_sets = Api::<DaemonSet>::namespaced(client.clone(), &namespace.name);
    daemon_sets.create(&params, &daemon_set("plain", None)?).await?;
    daemon_sets.create(&params, &daemon_set("stubborn", Some(json!([{"operator": "Exists"}])))?).await?;
    namespace.home_pods().create(&params, &pod_on(TWO, "stays")).await?;
    let all = |pods: &BTreeMap<String, Pod>| pods.len() == 7 && pods.values().all(pod_is_ready);
    wait::until("all pods", namespace.home_pods(), Config::default(), all).await
}

#[tokio::test]
async fn a_deleted_virtual_node_is_drained_and_its_neighbour_is_left_alone() -> Result<()> {
    offloaded(async |namespace| {
        for name in [ONE, TWO] {
            own_ready(&namespace, name, json!({})).await?;
        }
        let pods = populate(&namespace).await?;
        ensure!((on(&pods, ONE).count(), on(&pods, TWO).count()) == (4, 3), "each node runs its own");
        let neighbours: BTreeSet<_> = on(&pods, TWO).map(|pod| (pod.name_any(), pod.uid())).collect();

        virtual_nodes(&namespace).delete(ONE, &DeleteParams::default()).await?;
        let message = told(&namespace, ONE, Type::Node, "EvictionRefused").await?;
        ensure!(message.contains("/web-") && message.contains("budget web needs 2 healthy pods"), "{message}");
        let node = nodes(&namespace).get(ONE).await?;
        ensure!(node.spec.context("a spec")?.unschedulable == Some(true), "cordoned");

        // One that is stuck does not hold up another.
        own_ready(&namespace, "away-quick", json!({})).await?;
        remove(&namespace, "away-quick").await?;

        let budgets = Api::<PodDisruptionBudget>::namespaced(namespace.home.client.clone(), &namespace.name);
        budgets.delete("web", &DeleteParams::default()).await?;
        wait::until_one("the VirtualNode to go", virtual_nodes(&namespace), ONE, |node| node.is_none()).await?;
        ensure!(nodes(&namespace).get_opt(ONE).await?.is_none(), "its Node went before it");
        let none_on_one = |pods: &BTreeMap<String, Pod>| on(pods, ONE).next().is_none();
        let left = wait::until("no pod there", namespace.home_pods(), Config::default(), none_on_one).await?;
        let shadows = Api::<ShadowPod>::namespaced(namespace.away.client.clone(), &namespace.twin);
        let (theirs, of_one) = ("offloading.liqo.io/nodename", format!("offloading.liqo.io/nodename={ONE}"));
        for gone in [
            shadows.list(&kube::api::ListParams::default().labels(&of_one)).await?.items.len(),
            namespace.away_pods().list(&kube::api::ListParams::default().labels(&of_one)).await?.items.len(),
        ] {
            ensure!(gone == 0, "{gone} remote objects with {theirs}={ONE} were left behind");
        }
        let after: BTreeSet<_> = on(&left, TWO).map(|pod| (pod.name_any(), pod.uid())).collect();
        ensure!(after == neighbours, "{after:?} instead of {neighbours:?}");
        unmake(&namespace).await?;
        remove(&namespace, TWO).await
    })
    .await
}

/// `createNode: false` drains the node just so, and `true` brings it back.
async fn unmake(namespace: &Namespace) -> Result<()> {
    let set = async |create: bool| {
        let patch = Patch::Merge(json!({"spec": {"createNode": create}}));
        virtual_nodes(namespace).patch(TWO, &PatchParams::default(), &patch).await
    };
    set(false).await?;
    told(namespace, TWO, Type::Node, "NotWanted").await?;
    wait::until_one("the Node to go", nodes(namespace), TWO, |node| node.is_none()).await?;
    let none = |pods: &BTreeMap<String, Pod>| on(pods, TWO).next().is_none();
    wait::until("its pods to go", namespace.home_pods(), Config::default(), none).await?;
    set(true).await?;
    let open = |node: Option<&Node>| {
        node.is_some_and(|node| {
            is_ready(node) && node.spec.as_ref().is_none_or(|spec| spec.unschedulable != Some(true))
        })
    };
    wait::until_one("the Node to be back, and open", nodes(namespace), TWO, open).await?;
    Ok(())
}
