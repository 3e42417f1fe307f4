//! A cut that outlasts the patience of the pods: home's own controllers act, and what they superseded must go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::watcher::Config;
use serde_json::{Value, json};
use spillway_e2e::observe::{origin, started};
use spillway_e2e::{Namespace, Observer, wait};

use super::{converged, cut_while, stale};
use crate::pods::{SERVE, is_ready, ready, remote_spec};
use crate::{VIRTUAL_NODE, alone};

/// Gives up on a node five seconds after it went away.
pub fn impatient() -> Value {
    let mut spec = remote_spec(SERVE);
    let soon = ["not-ready", "unreachable"].map(|state| {
        json!({"key": format!("node.kubernetes.io/{state}"), "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5})
    });
    spec["tolerations"].as_array_mut().unwrap().extend(soon);
    spec
}

async fn create(namespace: &Namespace) -> Result<()> {
    let template = |app: &str, spec: Value| json!({"metadata": {"labels": {"app": app}}, "spec": spec});
    let spec = |app: &str, replicas: i32, spec: Value| json!({"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template(app, spec)});
    let deployment = json!({"metadata": {"name": "web"}, "spec": spec("web", 2, impatient())});
    Api::<Deployment>::namespaced(namespace.home.client.clone(), &namespace.name)
        .create(&PostParams::default(), &serde_json::from_value(deployment)?)
        .await?;
    // Bound at birth, so that its next life is on the node before the link is back.
    let mut bound = remote_spec(SERVE);
    bound["nodeName"] = json!(VIRTUAL_NODE);
    let mut spec = spec("db", 1, bound);
    spec["serviceName"] = json!("db");
    Api::<StatefulSet>::namespaced(namespace.home.client.clone(), &namespace.name)
        .create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": "db"}, "spec": spec}))?)
        .await?;
    Ok(())
}

fn uids<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> BTreeSet<String> {
    pods.into_iter().filter_map(|pod| pod.uid()).collect()
}

#[tokio::test]
async fn after_a_cut_longer_than_the_pods_patience_only_their_replacements_run() -> Result<()> {
    alone(async |namespace| {
        let (home, away) = (namespace.home_pods(), namespace.away_pods());
        create(&namespace).await?;
        let before = ready(&namespace, 3).await?;
        let former = uids(before.values());
        let (local_seen, remote_seen) = (Observer::of(home.clone()), Observer::of(away.clone()));
        let begun = Instant::now();

        let mended = cut_while(Duration::from_secs(10), async {
            home.delete("db-0", &DeleteParams::default().grace_period(0)).await?;
            let reborn = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != before["db-0"].uid());
            wait::until_one("another db-0", home.clone(), "db-0", reborn).await?;
            let replaced = |pods: &BTreeMap<String, Pod>| {
                let evicted = |pod: &&Pod| {
                    former.contains(&pod.uid().unwrap_or_default()) && pod.metadata.deletion_timestamp.is_some()
                };
                let fresh =
                    |pod: &&Pod| pod.name_any().starts_with("web-") && !former.contains(&pod.uid().unwrap_or_default());
                pods.values().filter(evicted).count() == 2 && pods.values().filter(fresh).count() == 2
            };
            wait::until("the impatient to be evicted and replaced", home.clone(), Config::default(), replaced)
                .await
                .map(drop)
        })
        .await?;

        let after = ready(&namespace, 3).await?;
        converged("the replacements are Ready and the evicted are gone", mended)?;
        let latter = uids(after.values());
        ensure!(former.is_disjoint(&latter), "a pod that was given up is back");
        let theirs = |pods: &BTreeMap<String, Pod>| pods.values().map(origin).collect::<BTreeSet<_>>() == latter;
        wait::until("the superseded remote pods to go", away, Config::default(), theirs).await?;
        converged("the superseded remote pods are gone", mended)?;

        ensure!(remote_seen.duplicates().is_empty(), "two at a time: {:?}", remote_seen.duplicates());
        let stale = stale(&local_seen.seen(), begun, mended);
        ensure!(stale.is_empty(), "written over what the node controller said: {stale:?}");
        nothing_of_a_former_life(&after["db-0"], &local_seen, &remote_seen)
    })
    .await
}

/// Every status that the new life ever had speaks of its own remote pod.
fn nothing_of_a_former_life(local: &Pod, local_seen: &Observer, remote_seen: &Observer) -> Result<()> {
    let uid = local.uid().context("a UID")?;
    let (mut containers, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    let address = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    for seen in remote_seen.seen().iter().filter(|seen| origin(&seen.pod) == uid) {
        containers.extend(started(&seen.pod));
        addresses.extend(address(&seen.pod));
    }
    ensure!(!containers.is_empty(), "its own remote pod was seen");
    for seen in local_seen.seen().iter().filter(|seen| seen.pod.uid().as_ref() == Some(&uid)) {
        let shown = started(&seen.pod);
        ensure!(shown.is_subset(&containers), "{shown:?} are of a former life");
        ensure!(
            address(&seen.pod).is_none_or(|ip| addresses.contains(&ip)),
            "{:?} is of a former life",
            address(&seen.pod)
        );
        ensure!(!is_ready(&seen.pod) || !shown.is_empty(), "ready before anything of it ran");
    }
    Ok(())
}
