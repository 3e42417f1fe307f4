//! Everything that a watch has shown, in order: for what must never have been, not even for a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use spillway_api::well_known::annotation;

use crate::wait;

/// One version of a pod, or its end.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub gone: bool,
    pub pod: Pod,
}

/// Watches pods until it is dropped.
pub struct Observer {
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Observer {
    pub fn of(pods: Api<Pod>) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        Self { task: tokio::spawn(collect(pods, seen.clone())), seen }
    }

    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.seen).clone()
    }

    /// How the pod of this name was last seen.
    pub fn last(&self, name: &str) -> Option<Pod> {
        lock(&self.seen).iter().rev().find(|seen| seen.pod.name_any() == name).map(|seen| seen.pod.clone())
    }

    /// Waits until the pod of this name was seen, there or to go, and gives how. (Another watch may have shown it before.)
    pub async fn until_seen(&self, name: &str, gone: bool) -> Result<Pod> {
        let begun = Instant::now();
        loop {
            let is_it = |seen: &&Seen| seen.gone == gone && seen.pod.name_any() == name;
            let seen = lock(&self.seen).iter().rev().find(is_it).map(|seen| seen.pod.clone());
            if let Some(pod) = seen {
                return Ok(pod);
            }
            ensure!(begun.elapsed() < wait::DEADLINE, "{name} was never seen{}", if gone { " to go" } else { "" });
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Of each local pod, by UID: its remote pods, by UID, and of each the containers that have run.
    pub fn runs(&self) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
        let mut runs = BTreeMap::<_, BTreeMap<_, BTreeSet<_>>>::new();
        for Seen { pod, .. } in lock(&self.seen).iter() {
            let of_pod = runs.entry(origin(pod)).or_default().entry(pod.uid().unwrap_or_default()).or_default();
            of_pod.extend(started(pod));
        }
        runs
    }

    /// The local UIDs that had more than one running remote pod at some moment.
    pub fn duplicates(&self) -> BTreeSet<String> {
        let (mut running, mut duplicates) = (BTreeMap::<String, BTreeSet<String>>::new(), BTreeSet::new());
        for Seen { pod, gone, .. } in lock(&self.seen).iter() {
            let of_origin = running.entry(origin(pod)).or_default();
            let uid = pod.uid().unwrap_or_default();
            let runs = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
            if *gone || !runs {
                of_origin.remove(&uid);
            } else {
                of_origin.insert(uid);
            }
            if of_origin.len() > 1 {
                duplicates.insert(origin(pod));
            }
        }
        duplicates
    }
}

/// The UID of the local pod that a remote one stands for.
pub fn origin(pod: &Pod) -> String {
    pod.annotations().get(annotation::ORIGIN_UID).cloned().unwrap_or_default()
}

/// The IDs of containers that run or have run; one that was only made has not.
pub fn started(pod: &Pod) -> BTreeSet<String> {
    let status = pod.status.as_ref();
    let lists = [
        status.and_then(|status| status.init_container_statuses.as_ref()),
        status.and_then(|status| status.container_statuses.as_ref()),
    ];
    lists.into_iter().flatten().flatten().flat_map(ids).collect()
}

fn ids(container: &ContainerStatus) -> Vec<String> {
    let states = [container.state.as_ref(), container.last_state.as_ref()].into_iter().flatten();
    let runs = container.state.as_ref().is_some_and(|state| state.running.is_some());
    let ended = states.filter_map(|state| state.terminated.as_ref()?.container_id.clone());
    ended.chain(container.container_id.clone().filter(|_| runs)).filter(|id| !id.is_empty()).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn collect(pods: Api<Pod>, seen: Arc<Mutex<Vec<Seen>>>) {
    let events = watcher::watcher(pods, watcher::Config::default()).default_backoff();
    pin_mut!(events);
    let (mut known, mut listed) = (BTreeMap::<String, Pod>::new(), BTreeMap::new());
    while let Some(event) = events.next().await {
        let note = |gone, pod: &Pod| lock(&seen).push(Seen { at: Instant::now(), gone, pod: pod.clone() });
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(pod)) => {
                note(false, &pod);
                listed.insert(pod.uid().unwrap_or_default(), pod);
            }
            // What a new list lacks went while nobody looked.
            Ok(Event::InitDone) => {
                known.iter().filter(|(uid, _)| !listed.contains_key(*uid)).for_each(|(_, pod)| note(true, pod));
                known = std::mem::take(&mut listed);
            }
            Ok(Event::Apply(pod)) => {
                note(false, &pod);
                known.insert(pod.uid().unwrap_or_default(), pod);
            }
            Ok(Event::Delete(pod)) => {
                note(true, &pod);
                known.remove(&pod.uid().unwrap_or_default());
            }
            Err(_) => {} // the API server may be what the test kills; the watch goes on by itself
        }
    }
}
