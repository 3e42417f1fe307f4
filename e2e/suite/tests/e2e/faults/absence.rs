//! What happens while an operator is away is made up for when it is back.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::watcher::Config;
use serde_json::json;
use spillway_api::offloading::{ShadowPod, ShadowPodPhase};
use spillway_e2e::{Namespace, Observer, wait};

use super::end;
use crate::pods::{is_ready, phase, remote_spec};
use crate::{alone, testbed, victims};

/// Ends well once it is told to by a file, also while it is being deleted.
const ENDS_WELL: &str = "end() { until [ -e /tmp/end ]; do sleep 0.1; done; exit 0; }; trap end TERM; end";
const KUBELET: &str = "home/kubelet";

fn jobs(namespace: &Namespace) -> Api<Job> {
    Api::namespaced(namespace.home.client.clone(), &namespace.name)
}

/// A Job whose pod runs; gives the pod.
async fn running_job(namespace: &Namespace) -> Result<Pod> {
    let mut spec = remote_spec(ENDS_WELL);
    spec["restartPolicy"] = json!("Never");
    spec["terminationGracePeriodSeconds"] = json!(600);
    let job = json!({"metadata": {"name": "work"}, "spec": {"backoffLimit": 0, "template": {"spec": spec}}});
    jobs(namespace).create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    let pods =
        wait::until("the Job's pod", namespace.home_pods(), Config::default(), |pods| pods.values().any(is_ready));
    pods.await?.into_values().next().context("a pod")
}

async fn succeeds(namespace: &Namespace) -> Result<()> {
    let succeeded = |job: Option<&Job>| job.and_then(|job| job.status.as_ref()?.succeeded) == Some(1);
    wait::until_one("the Job to succeed", jobs(namespace), "work", succeeded).await.map(drop)
}

fn ran_once(seen: &Observer, local: &Pod) -> Result<()> {
    let lives = seen.runs().remove(&local.uid().context("a UID")?).context("its remote pod")?;
    let started: usize = lives.values().map(|containers| containers.len()).sum();
    ensure!(lives.len() == 1 && started == 1, "{lives:?}");
    Ok(())
}

#[tokio::test]
async fn a_pod_that_ends_and_is_deleted_while_shadow_pod_is_away_has_its_outcome_kept() -> Result<()> {
    alone(async |namespace| {
        let local = running_job(&namespace).await?;
        let (name, seen) = (local.name_any(), Observer::of(namespace.away_pods()));
        victims::shadow_pod(&namespace).freeze().await?;
        let during = async {
            end(&namespace, &name)?;
            let done = |pod: Option<&Pod>| pod.is_some_and(|pod| phase(pod) == "Succeeded");
            wait::until_one("the remote pod to end", namespace.away_pods(), &name, done).await?;
            namespace.away_pods().delete(&name, &DeleteParams::default()).await?;
            anyhow::Ok(())
        };
        let during = during.await;
        victims::shadow_pod(&namespace).kill(true).await?;
        during?;
        succeeds(&namespace).await?;
        wait::until_one("the remote pod to go", namespace.away_pods(), &name, |pod| pod.is_none()).await?;
        ran_once(&seen, &local)
    })
    .await
}

#[tokio::test]
async fn how_a_deleted_pod_ended_is_known_also_to_a_virtual_kubelet_that_was_away() -> Result<()> {
    alone(async |namespace| {
        let local = running_job(&namespace).await?;
        let (name, seen) = (local.name_any(), Observer::of(namespace.away_pods()));
        let (local_seen, shadows) = (Observer::of(namespace.home_pods()), namespace.shadow_pods());
        // The deletion must have crossed before virtual-kubelet goes; with its kubelet gone nobody starts it again.
        testbed().kill(KUBELET)?;
        let during = async {
            namespace.home_pods().delete(&name, &DeleteParams::default()).await?;
            let asked =
                |shadow: Option<&ShadowPod>| shadow.is_none_or(|shadow| shadow.metadata.deletion_timestamp.is_some());
            wait::until_one("the deletion to cross", shadows.clone(), &name, asked).await?;
            victims::virtual_kubelet(&namespace).vanish().await?;
            end(&namespace, &name)?;
            let recorded = |shadow: Option<&ShadowPod>| {
                shadow
                    .and_then(|shadow| shadow.status.as_ref())
                    .is_some_and(|status| status.phase == ShadowPodPhase::Succeeded)
            };
            wait::until_one("the outcome to be recorded", shadows.clone(), &name, recorded).await?;
            wait::until_one("the remote pod to go", namespace.away_pods(), &name, |pod| pod.is_none()).await.map(drop)
        };
        let during = during.await;
        testbed().start(KUBELET)?;
        during?;
        wait::until_one("the ShadowPod to go", shadows, &name, |shadow| shadow.is_none()).await?;
        let end = local_seen.last(&name).context("the local pod")?;
        assert_eq!(phase(&end), "Succeeded");
        ran_once(&seen, &local)
    })
    .await
}
