//! Pods that cross.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::watcher::Config;
use serde_json::{Value, json};
use spillway_api::offloading::{ShadowPod, ShadowPodPhase};
use spillway_api::well_known::annotation;
use spillway_e2e::{Namespace, wait};

use crate::offloaded;

/// The spec of a pod that only the virtual node takes.
pub fn remote_spec(command: &str) -> Value {
    json!({
        "nodeSelector": {"liqo.io/type": "virtual-node"},
        "tolerations": [{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}],
        "terminationGracePeriodSeconds": 2,
        "containers": [{"name": "main", "image": "busybox:testbed", "imagePullPolicy": "Never",
                        "command": ["sh", "-c", command]}],
    })
}

/// Ends at once when asked to.
pub const SERVE: &str = "trap 'exit 0' TERM; sleep 86400 & wait";

pub fn pod(name: &str, command: &str) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": remote_spec(command)}))
        .unwrap()
}

pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Waits until so many pods are Ready at home.
pub async fn ready(namespace: &Namespace, count: usize) -> Result<BTreeMap<String, Pod>> {
    let all_ready = |pods: &BTreeMap<String, Pod>| pods.len() == count && pods.values().all(is_ready);
    wait::until(&format!("{count} ready pods at home"), namespace.home_pods(), Config::default(), all_ready).await
}

async fn nothing_left(namespace: &Namespace) -> Result<()> {
    let shadows = Api::<ShadowPod>::namespaced(namespace.away.client.clone(), &namespace.twin);
    wait::until("no pod at home", namespace.home_pods(), Config::default(), BTreeMap::is_empty).await?;
    wait::until("no ShadowPod", shadows, Config::default(), BTreeMap::is_empty).await?;
    wait::until("no pod away", namespace.away_pods(), Config::default(), BTreeMap::is_empty).await?;
    Ok(())
}

#[tokio::test]
async fn a_deployment_of_three_runs_across_and_goes_again() -> Result<()> {
    offloaded(async |namespace| {
        let deployments = Api::<Deployment>::namespaced(namespace.home.client.clone(), &namespace.name);
        let deployment = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}, "annotations": {"note": "kept"}}, "spec": remote_spec(SERVE)},
        }}))?;
        deployments.create(&PostParams::default(), &deployment).await?;
        let home = ready(&namespace, 3).await?;
        let available = |deployment: Option<&Deployment>| {
            deployment.and_then(|d| d.status.as_ref()).and_then(|status| status.available_replicas) == Some(3)
        };
        wait::until_one("an available Deployment", deployments.clone(), "web", available).await?;

        let away = namespace.away_pods().list(&Default::default()).await?;
        ensure!(away.items.len() == 3, "{} pods away", away.items.len());
        for remote in away {
            let local = home.get(&remote.name_any()).context("a twin at home")?;
            let (status, remote_status) = (local.status.clone().context("status")?, remote.status.clone().context("status")?);
            assert_eq!(phase(&remote), "Running");
            assert_eq!(remote.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some("away-0"));
            assert_eq!(remote.annotations().get(annotation::ORIGIN_UID), local.uid().as_ref());
            assert_eq!(remote.annotations().get("note").map(String::as_str), Some("kept"));
            assert_eq!(remote.labels().get("app").map(String::as_str), Some("web"));
            assert_eq!(status.pod_ip, remote_status.pod_ip);
            assert_eq!(status.container_statuses.context("containers")?[0].container_id,
                       remote_status.container_statuses.context("containers")?[0].container_id);
            assert_ne!(status.host_ip, remote_status.host_ip, "the host is the virtual node");
        }
        deployments.delete("web", &DeleteParams::default()).await?;
        nothing_left(&namespace).await
    })
    .await
}

#[tokio::test]
async fn a_deleted_pod_gets_the_grace_that_its_user_asked_for() -> Result<()> {
    offloaded(async |namespace| {
        // Ignores SIGTERM: only the end of its grace ends it.
        let mut stubborn = pod("stubborn", "trap '' TERM; while true; do sleep 1; done");
        stubborn.spec.as_mut().context("a spec")?.termination_grace_period_seconds = Some(3600);
        namespace.home_pods().create(&PostParams::default(), &stubborn).await?;
        ready(&namespace, 1).await?;
        namespace.home_pods().delete("stubborn", &DeleteParams::default().grace_period(1)).await?;
        nothing_left(&namespace).await // within the deadline, not within an hour
    })
    .await
}

#[tokio::test]
async fn a_finished_job_is_never_run_again() -> Result<()> {
    offloaded(async |namespace| {
        let jobs = Api::<Job>::namespaced(namespace.home.client.clone(), &namespace.name);
        let mut spec = remote_spec("exit 0");
        spec["restartPolicy"] = json!("Never");
        let job = serde_json::from_value(json!({"metadata": {"name": "once"}, "spec": {"template": {"spec": spec}}}))?;
        jobs.create(&PostParams::default(), &job).await?;
        let complete =
            |job: Option<&Job>| job.and_then(|job| job.status.as_ref()).and_then(|status| status.succeeded) == Some(1);
        wait::until_one("a complete Job", jobs, "once", complete).await?;

        let pods = namespace.away_pods().list(&Default::default()).await?;
        let finished = pods.items.first().context("a finished pod away")?.name_any();
        namespace.away_pods().delete(&finished, &DeleteParams::default()).await?;
        wait::until_one("the finished pod away to go", namespace.away_pods(), &finished, |pod| pod.is_none()).await?;
        // Another pod that is made and runs shows that shadow-pod has long seen the deletion.
        namespace.home_pods().create(&PostParams::default(), &pod("after", SERVE)).await?;
        wait::until_one("a later pod", namespace.home_pods(), "after", |pod| pod.is_some_and(is_ready)).await?;
        ensure!(namespace.away_pods().get_opt(&finished).await?.is_none(), "the finished pod runs again");
        let shadows = Api::<ShadowPod>::namespaced(namespace.away.client.clone(), &namespace.twin);
        let status = shadows.get(&finished).await?.status.context("a status")?;
        assert_eq!(status.phase, ShadowPodPhase::Succeeded);
        ensure!(status.outcome.is_some(), "the outcome is recorded");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_pod_of_a_namespace_that_is_not_offloaded_waits_and_says_why() -> Result<()> {
    offloaded(async |namespace| {
        let other = format!("{}-local", namespace.name);
        let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(namespace.home.client.clone());
        namespaces
            .create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": other}}))?)
            .await?;
        let pods = Api::<Pod>::namespaced(namespace.home.client.clone(), &other);
        pods.create(&PostParams::default(), &pod("lost", SERVE)).await?;
        let waits = |pod: Option<&Pod>| {
            let status = pod.and_then(|pod| pod.status.as_ref());
            status.and_then(|status| status.reason.as_deref()) == Some("OffloadingBackOff")
        };
        let waiting = wait::until_one("a reason on the pod", pods.clone(), "lost", waits).await?;
        assert_eq!(waiting.as_ref().map(phase), Some("Pending"));
        namespaces.delete(&other, &DeleteParams::default()).await?;
        wait::until_one("the namespace to go", namespaces, &other, |namespace| namespace.is_none()).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_foreign_pod_of_the_same_name_is_left_alone_and_shown_as_the_reason() -> Result<()> {
    offloaded(async |namespace| {
        let mut foreign = pod("web", SERVE);
        let spec = foreign.spec.as_mut().context("a spec")?;
        (spec.node_selector, spec.tolerations) = (None, None);
        let before = namespace.away_pods().create(&PostParams::default(), &foreign).await?;
        namespace.home_pods().create(&PostParams::default(), &pod("web", SERVE)).await?;
        let told = |pod: Option<&Pod>| {
            let status = pod.and_then(|pod| pod.status.as_ref());
            status.and_then(|status| status.reason.as_deref()) == Some("PodNameTaken")
        };
        wait::until_one("the reason at home", namespace.home_pods(), "web", told).await?;
        let after = namespace.away_pods().get("web").await?;
        assert_eq!(
            (after.uid(), after.labels(), after.finalizers()),
            (before.uid(), before.labels(), before.finalizers())
        );
        namespace.away_pods().delete("web", &DeleteParams::default().grace_period(0)).await?;
        ready(&namespace, 1).await.map(drop) // the way is free, and the pod takes it by itself
    })
    .await
}

#[tokio::test]
async fn a_shadow_pod_deleted_by_hand_is_made_again() -> Result<()> {
    offloaded(async |namespace| {
        let mut once = pod("once", "trap 'exit 3' TERM; sleep 86400 & wait");
        once.spec.as_mut().context("a spec")?.restart_policy = Some("Never".into());
        for pod in [pod("web", SERVE), once] {
            namespace.home_pods().create(&PostParams::default(), &pod).await?;
        }
        let local = ready(&namespace, 2).await?;
        for name in ["web", "once"] {
            let shadows = namespace.shadow_pods();
            let before = shadows.get(name).await?.uid();
            shadows.delete(name, &DeleteParams::default()).await?;
            let again = |shadow: Option<&ShadowPod>| shadow.is_some_and(|shadow| shadow.uid() != before);
            wait::until_one("another ShadowPod", shadows, name, again).await?;
            wait::until_one("its pod", namespace.away_pods(), name, |pod| pod.is_some_and(is_ready)).await?;
            assert_eq!(ready(&namespace, 2).await?[name].uid(), local[name].uid());
        }
        Ok(())
    })
    .await
}
