//! A link that is cut while pods run, are made, deleted, evicted, and end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, EvictParams, PostParams};
use serde_json::json;
use spillway_e2e::{Namespace, Observer, wait};

use super::{converged, cut_while, end, patient, restarts, stale};
use crate::pods::{SERVE, is_ready};
use crate::{VIRTUAL_NODE, alone, node};

/// Ends when it is told to by a file.
const UNTIL_TOLD: &str = "until [ -f /tmp/end ]; do sleep 0.1; done";

fn jobs(namespace: &Namespace) -> Api<Job> {
    Api::namespaced(namespace.home.client.clone(), &namespace.name)
}

async fn job(namespace: &Namespace, name: &str) -> Result<String> {
    let mut spec = json!(patient(name, UNTIL_TOLD).spec);
    spec["restartPolicy"] = json!("Never");
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": spec});
    let job = json!({"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": template}});
    jobs(namespace).create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    let labelled = kube::runtime::watcher::Config::default().labels(&format!("app={name}"));
    let pods =
        wait::until("the pod of the Job", namespace.home_pods(), labelled, |pods| pods.values().any(is_ready)).await?;
    pods.into_keys().next().context("a pod")
}

async fn everything_that_happens_during_a_cut_is_made_up_for(namespace: Namespace, length: Duration) -> Result<()> {
    let (home, away) = (namespace.home_pods(), namespace.away_pods());
    for name in ["stays", "goes", "evicted"] {
        home.create(&PostParams::default(), &patient(name, SERVE)).await?;
    }
    let ends = job(&namespace, "ends").await?;
    let moved = job(&namespace, "moved").await?;
    for name in ["stays", "goes", "evicted"] {
        wait::until_one("a ready pod", home.clone(), name, |pod| pod.is_some_and(is_ready)).await?;
    }
    let uid = async |pods: &Api<Pod>, name: &str| anyhow::Ok(pods.get(name).await?.uid());
    let (stayed, local) = (uid(&away, "stays").await?, uid(&home, "evicted").await?);
    let (evicted, moved_before) = (uid(&away, "evicted").await?, uid(&away, &moved).await?);
    let (local_seen, remote_seen) = (Observer::of(home.clone()), Observer::of(away.clone()));
    let begun = Instant::now();

    let mended = cut_while(length, async {
        // At once, before anybody at home can know of the cut.
        end(&namespace, &ends)?;
        for name in ["evicted", &moved] {
            away.evict(name, &EvictParams::default()).await?;
        }
        home.delete("goes", &DeleteParams::default()).await?;
        home.create(&PostParams::default(), &patient("born", SERVE)).await?;
        let other = |before: &Option<String>| {
            let before = before.clone();
            move |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != before && is_ready(pod))
        };
        wait::until_one("the evicted pod, made again without home", away.clone(), "evicted", other(&evicted)).await?;
        wait::until_one("that of the Job too", away.clone(), &moved, other(&moved_before)).await?;
        let nodes = Api::<Node>::all(namespace.home.client.clone());
        let down = |node: Option<&Node>| node.is_some_and(|node| !node::is_ready(node));
        // Its pods stay Ready: only the control plane is known to be cut, and the node controller marks those pods alone
        // whose node it has not heard of.
        wait::until_one("the node to be NotReady", nodes, VIRTUAL_NODE, down).await.map(drop)
    })
    .await?;

    let nodes = Api::<Node>::all(namespace.home.client.clone());
    wait::until_one("the node", nodes, VIRTUAL_NODE, |node| node.is_some_and(node::is_ready)).await?;
    converged("the node is Ready", mended)?;
    wait::until_one("the pod that stayed", home.clone(), "stays", |pod| pod.is_some_and(is_ready)).await?;
    converged("the pod that stayed is Ready", mended)?;
    let succeeded = |job: Option<&Job>| job.and_then(|job| job.status.as_ref()?.succeeded) == Some(1);
    wait::until_one("the Job that ended during the cut", jobs(&namespace), "ends", succeeded).await?;
    converged("the Job that ended during the cut is complete", mended)?;
    let again = |pod: Option<&Pod>| pod.is_some_and(|pod| is_ready(pod) && restarts(pod) == 1);
    wait::until_one("the evicted pod", home.clone(), "evicted", again).await?;
    converged("the evicted pod is Ready, with one restart", mended)?;
    wait::until_one("the evicted Job's pod", home.clone(), &moved, again).await?;
    converged("the evicted pod of a Job runs, with one restart", mended)?;
    for pods in [&home, &away] {
        wait::until_one("the deleted pod to go", pods.clone(), "goes", |pod| pod.is_none()).await?;
    }
    converged("the deleted pod is gone", mended)?;
    wait::until_one("the pod born during the cut", home.clone(), "born", |pod| pod.is_some_and(is_ready)).await?;
    converged("the pod born during the cut is Ready", mended)?;

    ensure!(uid(&away, "stays").await? == stayed, "the remote pod that was not touched was replaced");
    ensure!(uid(&home, "evicted").await? == local, "the local pod of the evicted one was replaced");
    end(&namespace, &moved)?;
    wait::until_one("the moved Job", jobs(&namespace), "moved", succeeded).await?;
    ensure!(remote_seen.duplicates().is_empty(), "two at a time: {:?}", remote_seen.duplicates());
    let runs = remote_seen.runs();
    for (name, expected) in [("stays", 1), ("evicted", 2), (ends.as_str(), 1), (moved.as_str(), 2), ("born", 1)] {
        let local = uid(&home, name).await?.context("a UID")?;
        let pods = runs.get(&local).with_context(|| format!("{name} was never seen away"))?;
        let started: usize = pods.values().map(|containers| containers.len()).sum();
        ensure!(pods.len() == expected && started == expected, "{name} ran in {pods:?}, not {expected} times");
    }
    let stale = stale(&local_seen.seen(), begun, mended);
    ensure!(stale.is_empty(), "written over what the node controller said: {stale:?}");
    Ok(())
}

#[tokio::test]
async fn what_happens_during_a_cut_of_ten_seconds_is_made_up_for() -> Result<()> {
    alone(|namespace| everything_that_happens_during_a_cut_is_made_up_for(namespace, Duration::from_secs(10))).await
}

#[tokio::test]
#[ignore = "soak"]
async fn what_happens_during_a_cut_of_ten_minutes_is_made_up_for() -> Result<()> {
    alone(|namespace| everything_that_happens_during_a_cut_is_made_up_for(namespace, Duration::from_secs(600))).await
}
