//! Watches the pods of a namespace into a tally, and waits.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::StreamExt;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use kube::runtime::watcher::{self, Event};
use parking_lot::Mutex;
use spillway_api::RawPod;
use spillway_api::offloading::ShadowPod;
use spillway_e2e::Side;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::tally::{Counts, Tally};

/// Returns when every ShadowPod says what became of its pod, which shadow-pod puts off while pods come: that work belongs
/// to the run, too.
pub async fn all_shown(provider: &Side, namespace: &str) -> Result<()> {
    let shadows = Api::<ShadowPod>::namespaced(provider.client.clone(), namespace);
    let from_cache = ListParams::default().match_any();
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        if shadows.list(&from_cache).await?.iter().all(|shadow| shadow.status.is_some()) {
            return Ok(());
        }
    }
    bail!("two minutes were not enough for every ShadowPod in {} to say what became of its pod", provider.name)
}

pub struct PodWatch {
    side: String,
    tally: Arc<Mutex<Tally>>,
    counts: watch::Receiver<Counts>,
    _task: AbortOnDropHandle<()>,
}

impl PodWatch {
    /// Returns when the first list has come, so that nothing that follows is missed.
    pub async fn start(side: &Side, namespace: &str) -> Result<Self> {
        let api = Api::<RawPod>::namespaced(side.client.clone(), namespace);
        let tally = Arc::new(Mutex::new(Tally::default()));
        let (sender, counts) = watch::channel(Counts::default());
        let (listed, mut synced) = watch::channel(false);
        let kept = tally.clone();
        let task = tokio::spawn(async move {
            let mut events = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
            let mut list = HashSet::new();
            while let Some(event) = events.next().await {
                let now = Instant::now();
                if let Ok(Event::InitApply(pod)) = &event {
                    list.insert(pod.name_any());
                }
                match event {
                    Ok(Event::InitApply(pod) | Event::Apply(pod)) => {
                        let (bound, ready) = (!pod.spec_str("nodeName").is_empty(), is_ready(&pod));
                        sender.send_replace(kept.lock().seen(&pod.name_any(), bound, ready, now));
                    }
                    Ok(Event::Delete(pod)) => {
                        sender.send_replace(kept.lock().gone(&pod.name_any(), now));
                    }
                    Ok(Event::Init) => list.clear(),
                    Ok(Event::InitDone) => {
                        sender.send_replace(kept.lock().listed(&list, now));
                        listed.send_replace(true);
                    }
                    Err(error) => eprintln!("bench: a watch of pods broke and is opened again: {error}"),
                }
            }
        });
        synced.wait_for(|synced| *synced).await?;
        Ok(Self { side: side.name.clone(), tally, counts, _task: AbortOnDropHandle::new(task) })
    }

    /// Waits until so many have been Ready; when the last one was.
    pub async fn all_ready(&self, pods: u32) -> Result<Instant> {
        self.until("Ready", pods, |counts| counts.ready >= pods as usize).await?;
        Ok(self.tally.lock().last_ready().unwrap_or_else(Instant::now))
    }

    /// Waits until none is left; when the last one went.
    pub async fn all_gone(&self, pods: u32) -> Result<Instant> {
        self.until("gone", pods, |counts| counts.present == 0).await?;
        Ok(self.tally.lock().last_gone().unwrap_or_else(Instant::now))
    }

    async fn until(&self, what: &str, pods: u32, condition: impl Fn(&Counts) -> bool) -> Result<()> {
        // The stock controller-manager deletes 10 pods a second; a system that is slower by far has failed.
        let deadline = Duration::from_secs(120) + Duration::from_millis(400) * pods;
        let mut counts = self.counts.clone();
        let waited = tokio::time::timeout(deadline, counts.wait_for(|counts| condition(counts))).await;
        if waited.is_err() {
            let Counts { present, ready } = *self.counts.borrow();
            bail!(
                "{deadline:?} were not enough for {pods} pods to be {what} in {}: {present} there, {ready} were Ready",
                self.side
            );
        }
        Ok(())
    }

    pub fn tally(&self) -> parking_lot::MutexGuard<'_, Tally> {
        self.tally.lock()
    }
}

fn is_ready(pod: &RawPod) -> bool {
    let conditions = pod.status.get("conditions").and_then(|conditions| conditions.as_array());
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
