//! Operators that start anew over many pods, and operators that have nothing to do: no write.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::watcher::Config;
use serde_json::{Value, json};
use spillway_api::offloading::{ShadowPod, VirtualNode};
use spillway_e2e::audit::{Audit, Request, counts};
use spillway_e2e::{Namespace, wait};
use spillway_testbed::{Spec, Testbed};

use crate::pods::{SERVE, is_ready, pod, ready, remote_spec};
use crate::{VIRTUAL_NODE, alone, set_up, testbed, victims};

/// How long nothing may happen.
const QUIET: Duration = Duration::from_secs(25);
/// Of this pod the requests don't count.
const LATE: &str = "late";

/// What was asked about the pods of a namespace on both sides since then.
fn requests(audits: &[(Audit, &str)]) -> Result<Vec<Request>> {
    let mut all = Vec::new();
    for (audit, namespace) in audits {
        all.extend(
            audit.requests()?.into_iter().filter(|request| request.namespace == *namespace && request.name != LATE),
        );
    }
    Ok(all)
}

async fn uids(api: Api<Pod>) -> Result<BTreeMap<String, Option<String>>> {
    let pods = api.list(&Default::default()).await?;
    Ok(pods.iter().map(|pod| (pod.name_any(), pod.uid())).filter(|(name, _)| name != LATE).collect())
}

async fn deploy(namespace: &Namespace, pods: usize, spec: Value) -> Result<()> {
    let deployment = json!({"metadata": {"name": "many"}, "spec": {
        "replicas": pods, "selector": {"matchLabels": {"app": "many"}},
        "template": {"metadata": {"labels": {"app": "many"}}, "spec": spec}}});
    Api::<Deployment>::namespaced(namespace.home.client.clone(), &namespace.name)
        .create(&PostParams::default(), &serde_json::from_value(deployment)?)
        .await?;
    ready(namespace, pods).await.map(drop)
}

async fn nothing_is_written(testbed: &Testbed, namespace: &Namespace) -> Result<()> {
    let from_now = || -> Result<_> {
        Ok([
            (Audit::from_now(testbed, "home")?, namespace.name.as_str()),
            (Audit::from_now(testbed, "away")?, namespace.twin.as_str()),
        ])
    };
    // The last status may still be on its way: the quiet begins with the first second without a request.
    // What shadow-pod puts off while pods come.
    let told = |shadows: &BTreeMap<String, ShadowPod>| shadows.values().all(|shadow| shadow.status.is_some());
    wait::until("every ShadowPod to tell of its pod", namespace.shadow_pods(), Config::default(), told).await?;
    let begun = Instant::now();
    loop {
        let audits = from_now()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        if requests(&audits)?.is_empty() {
            break;
        }
        ensure!(begun.elapsed() < wait::DEADLINE, "never quiet: {:?}", counts(&requests(&audits)?));
    }
    let audits = from_now()?;
    tokio::time::sleep(QUIET).await;
    let seen = requests(&audits)?;
    // Watches end and are opened anew; that is no work.
    let work: Vec<_> = seen.iter().filter(|request| request.verb != "watch").collect();
    ensure!(work.is_empty(), "with nothing to do: {:?}", counts(work));

    let (home, away) = (uids(namespace.home_pods()).await?, uids(namespace.away_pods()).await?);
    let audits = from_now()?;
    let begun = Instant::now();
    try_join_all(victims::operators(namespace).iter().map(|operator| operator.kill(true))).await?;
    // A later pod that runs shows that both have listed, and have looked at everything that was listed before it.
    namespace.home_pods().create(&PostParams::default(), &pod(LATE, SERVE)).await?;
    wait::until_one("a later pod", namespace.home_pods(), LATE, |pod| pod.is_some_and(is_ready)).await?;
    println!("{:.1?} after the operators were killed over {} pods, a later one is Ready", begun.elapsed(), home.len());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let seen = requests(&audits)?;
    let needless: Vec<_> = seen.iter().filter(|request| !matches!(request.verb.as_str(), "watch" | "list")).collect();
    ensure!(needless.is_empty(), "needless after a restart: {:?}", counts(needless));
    ensure!(uids(namespace.home_pods()).await? == home, "local pods were deleted or made anew");
    ensure!(uids(namespace.away_pods()).await? == away, "remote pods were deleted or made anew");
    Ok(())
}

#[tokio::test]
async fn operators_with_nothing_to_do_write_nothing_also_when_they_start_anew() -> Result<()> {
    // Alone: other tests restart operators too.
    alone(async |namespace| {
        deploy(&namespace, 40, remote_spec(SERVE)).await?;
        nothing_is_written(testbed(), &namespace).await
    })
    .await
}

/// On clusters of its own, whose provider has simulated nodes for so many.
#[tokio::test]
#[ignore = "soak"]
async fn operators_that_start_anew_over_a_thousand_pods_write_nothing() -> Result<()> {
    let spec = Spec { kwok_nodes: 12, api_qps: Some(500), ..Spec::default() };
    let testbed = set_up("scale", spec).await?;
    let outcome = spillway_e2e::offloaded(&testbed, async |namespace| {
        let nodes = Api::<VirtualNode>::namespaced(namespace.home.client.clone(), &namespace.peering.tenant_namespace);
        let simulated = json!({"nodeSelector": {"type": "kwok"}, "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]});
        let patch = json!({"spec": {"offloadingPatch": simulated, "resourceQuota": {"hard": {"cpu": "500", "memory": "1Ti", "pods": "1100"}}}});
        nodes.patch(VIRTUAL_NODE, &PatchParams::default(), &Patch::Merge(patch)).await?;
        let room = |node: Option<&k8s_openapi::api::core::v1::Node>| {
            let pods = node.and_then(|node| node.status.as_ref()?.allocatable.as_ref()?.get("pods").cloned());
            pods.is_some_and(|pods| pods.0 == "1100" || pods.0 == "1.1k") && node.is_some_and(crate::node::is_ready)
        };
        wait::until_one("room for all", Api::all(namespace.home.client.clone()), VIRTUAL_NODE, room).await?;
        deploy(&namespace, 1000, remote_spec(SERVE)).await.context("a thousand pods")?;
        nothing_is_written(&testbed, &namespace).await
    })
    .await;
    testbed.down()?;
    outcome
}
