//! Operators that die while pods are made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use futures::{StreamExt, pin_mut, try_join};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use spillway_api::well_known::annotation;
use spillway_e2e::install::NAMESPACE;
use spillway_e2e::{Namespace, Side, process, wait};

use crate::pods::{SERVE, is_ready, pod, ready};
use crate::{VIRTUAL_NODE, offloaded};

const PODS: usize = 50;
const KILLS: usize = 10;

/// An operator and how to find its pod.
pub struct Victim {
    side: Side,
    namespace: String,
    selector: String,
    program: &'static str,
}

impl Victim {
    async fn ready_pod(&self) -> Result<Pod> {
        let api = Api::<Pod>::namespaced(self.side.client.clone(), &self.namespace);
        let config = watcher::Config::default().labels(&self.selector);
        let pods =
            wait::until(&format!("a ready {}", self.program), api, config, |pods| pods.values().any(living)).await?;
        pods.into_values().find(living).context("a pod")
    }

    /// Kills it once, by SIGKILL or by force-deleting its pod, and waits until it is back.
    pub async fn kill(&self, by_signal: bool) -> Result<()> {
        let pod = self.ready_pod().await?;
        let (name, uid) = (pod.name_any(), pod.uid().context("a UID")?);
        let api = Api::<Pod>::namespaced(self.side.client.clone(), &self.namespace);
        if by_signal {
            let processes = process::of_pod(&uid, self.program)?;
            ensure!(!processes.is_empty(), "no process of {name}");
            let restarts = restarts(&pod);
            processes.into_iter().try_for_each(process::kill)?;
            let back = |pod: Option<&Pod>| pod.is_some_and(|pod| living(pod) && restarts < self::restarts(pod));
            wait::until_one("the container to be back", api, &name, back).await?;
        } else {
            api.delete(&name, &DeleteParams::default().grace_period(0)).await?;
            let config = watcher::Config::default().labels(&self.selector);
            let replaced =
                |pods: &BTreeMap<String, Pod>| pods.values().any(|pod| living(pod) && pod.uid().as_ref() != Some(&uid));
            wait::until("another pod in its place", api, config, replaced).await?;
        }
        Ok(())
    }
}

fn living(pod: &Pod) -> bool {
    is_ready(pod) && pod.metadata.deletion_timestamp.is_none()
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|status| status.restart_count).sum()
}

fn victim(side: &Side, namespace: &str, selector: &str, program: &'static str) -> Victim {
    Victim { side: side.clone(), namespace: namespace.to_owned(), selector: selector.to_owned(), program }
}

/// That of the shared virtual node.
pub fn virtual_kubelet(namespace: &Namespace) -> Victim {
    virtual_kubelet_of(namespace, VIRTUAL_NODE)
}

pub fn virtual_kubelet_of(namespace: &Namespace, node: &str) -> Victim {
    let selector = format!("liqo.io/virtual-node={node}");
    victim(&namespace.home, &namespace.peering.tenant_namespace, &selector, "virtual-kubelet")
}

fn victims(namespace: &Namespace) -> Vec<Victim> {
    vec![
        virtual_kubelet(namespace),
        victim(&namespace.home, NAMESPACE, "app.kubernetes.io/name=controller-manager", "peering"),
        victim(&namespace.away, NAMESPACE, "app.kubernetes.io/name=shadow-pod", "shadow-pod"),
    ]
}

/// Collects the UIDs of every remote pod ever seen, by name.
async fn observe(pods: Api<Pod>, seen: Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>) -> Result<()> {
    let events = watcher::watcher(pods, watcher::Config::default()).default_backoff().applied_objects();
    pin_mut!(events);
    while let Some(pod) = events.next().await {
        let Ok(pod) = pod else { continue };
        let mut seen = seen.lock().unwrap();
        seen.entry(pod.name_any()).or_default().insert(pod.uid().unwrap_or_default());
    }
    Ok(())
}

#[tokio::test]
async fn ten_kills_of_each_operator_lose_and_duplicate_no_pod() -> Result<()> {
    offloaded(async |namespace| {
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let observer = tokio::spawn(observe(namespace.away_pods(), seen.clone()));
        let victims = victims(&namespace);
        for round in 0..KILLS {
            // All three die while pods are being made; what was made must have crossed before the next round.
            let killing = try_join_all(victims.iter().map(|victim| victim.kill(round % 2 == 0)));
            let creating = async {
                for i in 0..PODS / KILLS {
                    let name = format!("p{round}-{i}");
                    namespace.home_pods().create(&PostParams::default(), &pod(&name, SERVE)).await?;
                    wait::until_one("a pod to cross", namespace.away_pods(), &name, |pod| pod.is_some()).await?;
                }
                anyhow::Ok(())
            };
            try_join!(killing, creating).with_context(|| format!("in round {round}"))?;
        }
        let home = ready(&namespace, PODS).await?;
        observer.abort();

        let away = namespace.away_pods().list(&Default::default()).await?;
        let origins: BTreeSet<_> =
            away.iter().filter_map(|pod| pod.annotations().get(annotation::ORIGIN_UID)).collect();
        let locals: BTreeSet<_> = home.values().filter_map(|pod| pod.metadata.uid.as_ref()).collect();
        ensure!(away.items.len() == PODS && origins == locals, "one remote pod for each local one");
        let seen = seen.lock().unwrap().clone();
        let rerun: Vec<_> = seen.iter().filter(|(_, uids)| uids.len() != 1).collect();
        ensure!(rerun.is_empty() && seen.len() == PODS, "each was made once: {rerun:?}");
        Ok(())
    })
    .await
}
