//! One life of pods of several kinds, told step by step to whoever wants to strike at a certain moment.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use kube::runtime::watcher::Config;
use serde_json::json;
use spillway_e2e::{Namespace, Observer, persist, wait};
use tokio::sync::watch;

use super::{patient, restarts};
use crate::pods::{SERVE, is_ready};

/// Where in the cycle its pods are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    Beginning,
    Created,
    Crossed,
    Running,
    Deleting,
}

pub const MOMENTS: [Moment; 5] =
    [Moment::Beginning, Moment::Created, Moment::Crossed, Moment::Running, Moment::Deleting];

/// Creates two pods and two Jobs, lets them run, and deletes the pods; nothing may be lost, doubled or run twice.
pub async fn run(namespace: &Namespace, round: usize, now: &watch::Sender<Moment>) -> Result<()> {
    let remote = Observer::of(namespace.away_pods());
    let local = Observer::of(namespace.home_pods());
    let jobs = Api::<Job>::namespaced(namespace.home.client.clone(), &namespace.name);
    let pods = [format!("pod-{round}-a"), format!("pod-{round}-b")];
    let (good, bad) = (format!("good-{round}"), format!("bad-{round}"));
    now.send_replace(Moment::Beginning);
    for name in &pods {
        persist::create(&namespace.home_pods(), &patient(name, SERVE)).await?;
    }
    for (name, command) in [(&good, "sleep 1"), (&bad, "sleep 1; exit 3")] {
        let mut spec = json!(patient(name, command).spec);
        spec["restartPolicy"] = json!("Never");
        let template = json!({"metadata": {"labels": {"app": name}}, "spec": spec});
        let job = json!({"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": template}});
        persist::create(&jobs, &serde_json::from_value(job)?).await?;
    }
    now.send_replace(Moment::Created);
    wait::until_one("a pod to cross", namespace.away_pods(), &pods[0], |pod| pod.is_some()).await?;
    now.send_replace(Moment::Crossed);
    let running = |seen: &BTreeMap<String, Pod>| pods.iter().all(|name| seen.get(name).is_some_and(is_ready));
    let seen = wait::until("the pods to run", namespace.home_pods(), Config::default(), running).await?;
    now.send_replace(Moment::Running);
    let ended = |name: &str, count: fn(&Job) -> Option<i32>| {
        let (jobs, name) = (jobs.clone(), name.to_owned());
        async move { wait::until_one("a Job to end", jobs, &name, |job| job.and_then(count) == Some(1)).await }
    };
    ended(&good, |job| job.status.as_ref()?.succeeded).await?;
    ended(&bad, |job| job.status.as_ref()?.failed).await?;
    for name in &pods {
        persist::delete(&namespace.home_pods(), name, &DeleteParams::default()).await?;
    }
    now.send_replace(Moment::Deleting);
    for api in [namespace.home_pods(), namespace.away_pods()] {
        let gone = |seen: &BTreeMap<String, Pod>| !pods.iter().any(|name| seen.contains_key(name));
        wait::until("the deleted pods to go", api, Config::default(), gone).await?;
    }
    let left = wait::until("all", namespace.home_pods(), Config::default(), |_| true).await?;

    let runs = remote.runs();
    for pod in pods.iter().map(|name| &seen[name]) {
        let (uid, name) = (pod.uid().context("a UID")?, pod.name_any());
        once(&name, &uid, &runs)?;
        let lives = local
            .seen()
            .iter()
            .filter(|seen| seen.pod.name_any() == name && seen.pod.uid().as_ref() != Some(&uid))
            .count();
        ensure!(lives == 0, "{name} had another life");
        ensure!(restarts(pod) == 0, "{name} was restarted");
    }
    for name in [&good, &bad] {
        let of_job: Vec<_> = left.values().filter(|pod| pod.labels().get("app") == Some(name)).collect();
        ensure!(of_job.len() == 1, "{name} has {} pods", of_job.len());
        once(name, &of_job[0].uid().context("a UID")?, &runs)?;
    }
    ensure!(remote.duplicates().is_empty(), "two at a time: {:?}", remote.duplicates());
    for name in [&good, &bad] {
        persist::delete(&jobs, name, &DeleteParams::background()).await?;
    }
    for api in [namespace.home_pods(), namespace.away_pods()] {
        wait::until("the pods of the Jobs to go", api, Config::default(), BTreeMap::is_empty).await?;
    }
    Ok(())
}

type Runs = BTreeMap<String, BTreeMap<String, std::collections::BTreeSet<String>>>;

/// One remote pod, one container that ran.
fn once(name: &str, uid: &str, runs: &Runs) -> Result<()> {
    let of_pod = runs.get(uid).with_context(|| format!("{name} was never seen away"))?;
    ensure!(of_pod.len() == 1 && of_pod.values().all(|ran| ran.len() == 1), "{name} ran more than once: {of_pod:?}");
    Ok(())
}
