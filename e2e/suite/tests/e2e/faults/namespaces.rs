//! Namespaces that are deleted while they are full of pods: nothing hangs.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace as KubeNamespace, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::watcher::Config;
use serde_json::json;
use spillway_e2e::{Namespace, by_hand, wait};

use crate::pods::{SERVE, is_ready, pod, ready, remote_spec};
use crate::{VIRTUAL_NODE, offloaded};

/// Pods that run, that can't start, that take their time to end, and that have ended.
async fn fill(namespace: &Namespace) -> Result<()> {
    let pods = namespace.home_pods();
    for index in 0..3 {
        pods.create(&PostParams::default(), &pod(&format!("web-{index}"), SERVE)).await?;
    }
    pods.create(&PostParams::default(), &pod("stubborn", "trap '' TERM; while true; do sleep 1; done")).await?;
    let mut nowhere = pod("nowhere", SERVE);
    let spec = nowhere.spec.as_mut().context("a spec")?;
    spec.containers[0].resources = Some(serde_json::from_value(json!({"requests": {"cpu": "1000"}}))?);
    spec.node_name = Some(VIRTUAL_NODE.into()); // home's scheduler would not let it go
    pods.create(&PostParams::default(), &nowhere).await?;
    let mut spec = remote_spec("true");
    spec["restartPolicy"] = json!("Never");
    let jobs = Api::<Job>::namespaced(namespace.home.client.clone(), &namespace.name);
    let job = json!({"metadata": {"name": "done"}, "spec": {"template": {"spec": spec}}});
    jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    let done = |job: Option<&Job>| job.and_then(|job| job.status.as_ref()?.succeeded) == Some(1);
    wait::until_one("the Job", jobs, "done", done).await?;
    let running = |pods: &BTreeMap<String, Pod>| pods.values().filter(|pod| is_ready(pod)).count() == 4;
    wait::until("the pods that can run to run", pods, Config::default(), running).await?;
    wait::until_one("the one that fits nowhere away", namespace.away_pods(), "nowhere", |pod| pod.is_some()).await?;
    Ok(())
}

fn namespaces(client: &kube::Client) -> Api<KubeNamespace> {
    Api::all(client.clone())
}

#[tokio::test]
async fn a_namespace_full_of_offloaded_pods_goes_and_leaves_nothing() -> Result<()> {
    offloaded(async |namespace| {
        fill(&namespace).await?;
        let home = namespaces(&namespace.home.client);
        home.delete(&namespace.name, &DeleteParams::default()).await?;
        wait::until_one("the namespace to go", home, &namespace.name, |namespace| namespace.is_none()).await?;
        wait::until("no ShadowPod", namespace.shadow_pods(), Config::default(), BTreeMap::is_empty).await?;
        wait::until("no pod away", namespace.away_pods(), Config::default(), BTreeMap::is_empty).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_twin_namespace_deleted_by_hand_goes_and_its_local_pods_can_too() -> Result<()> {
    offloaded(async |namespace| {
        fill(&namespace).await?;
        let before = namespace.home_pods().list(&Default::default()).await?;
        let away = namespaces(&namespace.away.client);
        away.delete(&namespace.twin, &DeleteParams::default()).await?;
        wait::until_one("the twin to go", away, &namespace.twin, |namespace| namespace.is_none()).await?;

        for name in ["stubborn", "nowhere", "web-2"] {
            namespace.home_pods().delete(name, &DeleteParams::default()).await?;
            wait::until_one("a local pod to go", namespace.home_pods(), name, |pod| pod.is_none()).await?;
        }
        // With a twin again, what is left runs again: the local pods are the same.
        by_hand::twin(&namespace.home, &namespace.away, &namespace.peering, &namespace.name).await?;
        for name in ["web-0", "web-1"] {
            let uid = before.iter().find(|pod| pod.name_any() == name).and_then(|pod| pod.uid());
            wait::until_one("a remote pod", namespace.away_pods(), name, |pod| pod.is_some_and(is_ready)).await?;
            let same = |pod: Option<&Pod>| pod.is_some_and(|pod| is_ready(pod) && pod.uid() == uid);
            wait::until_one("the local pod", namespace.home_pods(), name, same).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn both_namespaces_deleted_at_once_go() -> Result<()> {
    offloaded(async |namespace| {
        for name in ["web-0", "web-1"] {
            namespace.home_pods().create(&PostParams::default(), &pod(name, SERVE)).await?;
        }
        ready(&namespace, 2).await?;
        let (home, away) = (namespaces(&namespace.home.client), namespaces(&namespace.away.client));
        home.delete(&namespace.name, &DeleteParams::default()).await?;
        away.delete(&namespace.twin, &DeleteParams::default()).await?;
        wait::until_one("the namespace to go", home, &namespace.name, |namespace| namespace.is_none()).await?;
        wait::until_one("its twin to go", away, &namespace.twin, |namespace| namespace.is_none()).await?;
        Ok(())
    })
    .await
}
