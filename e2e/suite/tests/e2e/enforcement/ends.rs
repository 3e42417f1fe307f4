//! How pods end: for good, or to be made anew.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, EvictParams, PostParams};
use serde_json::json;
use spillway_api::offloading::{ShadowPodPhase, ShadowPodStatus};
use spillway_e2e::wait;

use super::{Ground, STUBBORN, exec, no_pod_was_made, spec};
use crate::pods::{SERVE, is_ready, pod, ready};
use crate::recreation::replaced_after;
use crate::{alone, offloaded};

/// Succeeds when it is told to, and fails when it is stopped before.
const WORK: &str = "trap 'exit 3' TERM; until [ -e /tmp/done ]; do sleep 0.2; done";

#[tokio::test]
async fn an_evicted_pod_is_made_anew_within_a_second_and_the_local_one_stays() -> Result<()> {
    alone(async |namespace| {
        namespace.home_pods().create(&PostParams::default(), &pod("web", SERVE)).await?;
        let local = ready(&namespace, 1).await?.remove("web").context("the pod")?;
        let took = replaced_after(&namespace, "web", async || {
            namespace.away_pods().evict("web", &EvictParams::default()).await?;
            Ok(())
        })
        .await?;
        println!("recreated {took:?} after the evicted pod was gone");
        ensure!(took.as_secs_f64() < 1.0, "recreated only after {took:?}");
        wait::until_one("the new pod", namespace.away_pods(), "web", |pod| pod.is_some_and(is_ready)).await?;
        let after = ready(&namespace, 1).await?.remove("web").context("the pod")?;
        assert_eq!(after.uid(), local.uid(), "the local pod was not replaced");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_evicted_run_to_completion_pod_is_run_again_and_succeeds_once() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let mut pod_spec = spec(WORK);
        pod_spec["restartPolicy"] = json!("Never");
        pod_spec["initContainers"] = json!([pod_spec["containers"][0].clone()]);
        pod_spec["initContainers"][0]["name"] = json!("setup");
        pod_spec["initContainers"][0]["command"] = json!(["true"]);
        let first = ground.running("job", json!({"spec": {"pod": pod_spec}})).await?;
        ground.pods.evict("job", &EvictParams::default()).await?;
        let second = ground.runs_anew("job", Some(&first)).await?;
        exec(&ground.name, "job", &["touch", "/tmp/done"]).await?;
        let status = ground.told("job", "success", |status| status.phase == ShadowPodPhase::Succeeded).await?;
        assert_eq!((&status.pod_uid, status.recreations), (&second.uid(), 1));
        ground.pods.delete("job", &DeleteParams::default()).await?;
        wait::until_one("the finished pod to go", ground.pods.clone(), "job", |pod| pod.is_none()).await?;
        no_pod_was_made(&ground, "job").await
    })
    .await
}

/// Also by a plain deletion, which leaves no condition that tells of a disruption: the way it exits (3) is its own.
#[tokio::test]
async fn a_deleted_run_to_completion_pod_is_run_again_however_it_exits() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let mut pod_spec = spec(WORK);
        pod_spec["restartPolicy"] = json!("Never");
        let first = ground.running("job", json!({"spec": {"pod": pod_spec}})).await?;
        ground.pods.delete("job", &DeleteParams::default()).await?;
        ground.runs_anew("job", Some(&first)).await.map(drop)
    })
    .await
}

#[tokio::test]
async fn what_must_not_run_twice_ends_as_failed_when_it_is_disrupted() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let once = |policy: &str, command: &str| {
            let mut pod_spec = spec(command);
            pod_spec["restartPolicy"] = json!(policy);
            let annotations = json!({"offloading.spillway.dev/on-disruption": "Fail"});
            json!({"metadata": {"annotations": annotations}, "spec": {"pod": pod_spec}})
        };
        ground.running("evicted", once("Never", WORK)).await?;
        ground.running("deleted", once("OnFailure", WORK)).await?;
        ground.running("forced", once("Always", STUBBORN)).await?;
        ground.pods.evict("evicted", &EvictParams::default()).await?;
        ground.pods.delete("deleted", &DeleteParams::default()).await?;
        ground.pods.delete("forced", &DeleteParams::default().grace_period(0)).await?;
        for (name, reason, exit) in [
            ("evicted", "EvictionByEvictionAPI", 3),
            ("deleted", "DeletedByProvider", 3),
            ("forced", "DeletedByProvider", 137),
        ] {
            let failed = |status: &ShadowPodStatus| status.phase == ShadowPodPhase::Failed;
            let outcome = ground.told(name, "failure", failed).await?.outcome.context("an outcome")?;
            let conditions = outcome["conditions"].as_array().context("conditions")?;
            let told =
                conditions.iter().find(|condition| condition["type"] == "DisruptionTarget").context("a condition")?;
            assert_eq!((told["status"].as_str(), told["reason"].as_str()), (Some("True"), Some(reason)), "{name}");
            let ended = &outcome["containerStatuses"][0]["state"]["terminated"];
            assert_eq!((outcome["phase"].as_str(), ended["exitCode"].as_i64()), (Some("Failed"), Some(exit)), "{name}");
            let gone = |pod: Option<&Pod>| pod.is_none();
            wait::until_one("the pod to go", ground.pods.clone(), name, gone).await?;
        }
        no_pod_was_made(&ground, "evicted").await?;
        let pods = ground.pods.list(&Default::default()).await?;
        let names: Vec<_> = pods.iter().map(|pod| pod.name_any()).collect();
        assert_eq!(names, ["after"]);
        Ok(())
    })
    .await
}
