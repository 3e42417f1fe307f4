//! The watches on the other side: two for each twin namespace, because rights there are by namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::Context as _;
use kube::api::Api;
use kube::runtime::watcher;
use parking_lot::Mutex;
use spillway_api::RawPod;
use spillway_api::offloading::ShadowPod;
use spillway_operator::client::Cluster;
use spillway_operator::health::{self, Gate};
use spillway_operator::index::Scope;
use spillway_operator::metrics::Metrics;
use spillway_operator::peer::Kicks;
use spillway_operator::watch::Watch;
use spillway_operator::{Index, ObjectKey, Queue};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::pods::digest::{self, LocalDigest, RemoteDigest, ShadowDigest};
use crate::twins::Twins;

pub struct RemoteWatches {
    pub cluster: Cluster,
    pub selector: String,
    pub metrics: Metrics,
    pub kicks: Kicks,
    pub twins: Arc<Twins>,
    pub queue: Arc<Queue<ObjectKey>>,
    pub locals: Arc<Index<LocalDigest>>,
    pub shadows: Arc<Index<ShadowDigest>>,
    pub remotes: Arc<Index<RemoteDigest>>,
    pub troubles: Arc<Troubles>,
}

/// Why twin namespaces can't be read, by their names and what of them; what can be read is not in here.
#[derive(Default)]
pub struct Troubles(Mutex<BTreeMap<(Arc<str>, &'static str), String>>);

impl Troubles {
    pub fn of(&self, away: &str) -> Option<String> {
        self.0.lock().iter().find(|((namespace, _), _)| **namespace == *away).map(|(_, trouble)| trouble.clone())
    }

    /// Takes note of what a watch says of itself; true if that is news.
    fn note(&self, away: &Arc<str>, resource: &'static str, trouble: Option<String>) -> bool {
        let key = (away.clone(), resource);
        match trouble {
            Some(trouble) => self.0.lock().insert(key, trouble.clone()) != Some(trouble),
            None => self.0.lock().remove(&key).is_some(),
        }
    }

    fn forget(&self, away: &str) {
        self.0.lock().retain(|(namespace, _), _| **namespace != *away);
    }
}

type OnRefusal = Box<dyn Fn(Option<String>) + Send + Sync>;

/// The watches of one twin namespace.
struct Opened {
    home: Arc<str>,
    stop: CancellationToken,
    running: TaskTracker,
}

impl RemoteWatches {
    /// Opens and closes watches as twin namespaces come and go, until `stop`.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let this = Arc::new(self);
        let mut changes = this.twins.changes();
        let mut open: HashMap<Arc<str>, Opened> = HashMap::new();
        let mut tasks = JoinSet::new();
        loop {
            let wanted = this.twins.all();
            let pairs: HashMap<_, _> = wanted.iter().map(|(home, away)| (away, home)).collect();
            let closing: Vec<_> = open
                .iter()
                .filter(|(away, opened)| pairs.get(away) != Some(&&opened.home))
                .map(|(away, _)| away.clone())
                .collect();
            for away in closing {
                if let Some(opened) = open.remove(&away) {
                    this.close(&away, opened).await;
                }
            }
            for (home, away) in &wanted {
                if !open.contains_key(away) {
                    open.insert(away.clone(), this.clone().open(home, away, stop.child_token(), &mut tasks)?);
                }
            }
            tokio::select! {
                () = stop.cancelled() => break,
                _ = changes.changed() => {}
                Some(ended) = tasks.join_next() => ended.context("a watch on the remote cluster panicked")?,
            }
        }
        while tasks.join_next().await.is_some() {}
        Ok(())
    }

    /// Everything of the old watches must be gone before new ones of the same namespace may be opened.
    async fn close(&self, away: &Arc<str>, opened: Opened) {
        tracing::info!(home = %opened.home, %away, "no longer watching a twin namespace");
        opened.stop.cancel();
        opened.running.close();
        opened.running.wait().await;
        self.troubles.forget(away);
        let scope = Scope::Namespace(away.clone());
        self.shadows.forget(&scope);
        self.remotes.forget(&scope);
        self.wake(&opened.home, away);
    }

    fn open(
        self: Arc<Self>,
        home: &Arc<str>,
        away: &Arc<str>,
        stop: CancellationToken,
        tasks: &mut JoinSet<()>,
    ) -> anyhow::Result<Opened> {
        tracing::info!(%home, %away, "watching a twin namespace");
        let (first, second) = (self.cluster.watches.lease()?, self.cluster.watches.lease()?);
        let (lists, running) = ([Gate::default(), Gate::default()], TaskTracker::new());
        let watch = |resource, synced: &Gate| Watch {
            cluster: self.cluster.role,
            resource,
            scope: Scope::Namespace(away.clone()),
            config: watcher::Config::default().labels(&self.selector),
            metrics: self.metrics.clone(),
            kicks: self.kicks.clone(),
            synced: synced.clone(),
            on_refusal: Some(self.clone().on_refusal(home, away, resource)),
        };
        let (shadows, pods) = (watch("shadowpods", &lists[0]), watch("pods", &lists[1]));
        let told = {
            let this = self.clone();
            move |key: ObjectKey| this.tell(&key)
        };
        tasks.spawn(running.track_future({
            let (this, told, stop) = (self.clone(), told.clone(), stop.clone());
            let api = Api::namespaced(first.client.clone(), away);
            async move {
                let _lease = first;
                let digest = |shadow| Some(digest::shadow(shadow));
                shadows.run::<ShadowPod, _>(api, this.shadows.clone(), digest, told, stop).await;
            }
        }));
        tasks.spawn(running.track_future({
            let (this, stop) = (self.clone(), stop.clone());
            let api = Api::namespaced(second.client.clone(), away);
            async move {
                let _lease = second;
                pods.run::<RawPod, _>(api, this.remotes.clone(), digest::remote, told, stop).await;
            }
        }));
        tasks.spawn(running.track_future({
            let (home, away, stop) = (home.clone(), away.clone(), stop.clone());
            async move {
                if health::all_opened(&lists, &stop).await {
                    self.wake(&home, &away);
                }
            }
        }));
        Ok(Opened { home: home.clone(), stop, running })
    }

    /// A list that is refused is no list of nothing: pods that wait for it say so.
    fn on_refusal(self: Arc<Self>, home: &Arc<str>, away: &Arc<str>, resource: &'static str) -> OnRefusal {
        let (home, away) = (home.clone(), away.clone());
        Box::new(move |refusal| {
            if self.troubles.note(&away, resource, refusal) {
                self.wake(&home, &away);
            }
        })
    }

    /// Names the local pod of something that changed on the other side.
    fn tell(&self, away: &ObjectKey) {
        if let Some(namespace) = self.twins.home(&away.namespace) {
            self.queue.add(ObjectKey { namespace, name: away.name.clone() });
        }
    }

    /// Names everything of a pair of namespaces: also twins whose local pod is gone, which no local event would name.
    fn wake(&self, home: &Arc<str>, away: &Arc<str>) {
        self.locals.keys_in(&Scope::Namespace(home.clone())).into_iter().for_each(|key| self.queue.add(key));
        let scope = Scope::Namespace(away.clone());
        let twins = self.shadows.keys_in(&scope).into_iter().chain(self.remotes.keys_in(&scope));
        twins.for_each(|key| self.queue.add(ObjectKey { namespace: home.clone(), name: key.name }));
    }
}
