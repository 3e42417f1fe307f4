//! The watches on the other side: two for each twin namespace, because rights there are by namespace.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context as _;
use kube::api::Api;
use kube::runtime::watcher;
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
}

impl RemoteWatches {
    /// Opens and closes watches as twin namespaces come and go, until `stop`.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let this = Arc::new(self);
        let mut changes = this.twins.changes();
        let mut open: HashMap<Arc<str>, CancellationToken> = HashMap::new();
        let mut tasks = JoinSet::new();
        loop {
            let wanted = this.twins.all();
            for (home, away) in &wanted {
                if !open.contains_key(away) {
                    let stop = stop.child_token();
                    open.insert(away.clone(), stop.clone());
                    this.clone().open(home.clone(), away.clone(), stop, &mut tasks)?;
                }
            }
            open.retain(|away, stop| {
                let keep = wanted.values().any(|wanted| wanted == away);
                if !keep {
                    stop.cancel();
                }
                keep
            });
            tokio::select! {
                () = stop.cancelled() => break,
                _ = changes.changed() => {}
                Some(ended) = tasks.join_next() => ended.context("a watch on the remote cluster panicked")?,
            }
        }
        while tasks.join_next().await.is_some() {}
        Ok(())
    }

    fn open(
        self: Arc<Self>,
        home: Arc<str>,
        away: Arc<str>,
        stop: CancellationToken,
        tasks: &mut JoinSet<()>,
    ) -> anyhow::Result<()> {
        tracing::info!(%home, %away, "watching a twin namespace");
        let (first, second) = (self.cluster.watches.lease()?, self.cluster.watches.lease()?);
        let lists = [Gate::default(), Gate::default()];
        let watch = |resource, synced: &Gate| Watch {
            cluster: self.cluster.role,
            resource,
            scope: Scope::Namespace(away.clone()),
            config: watcher::Config::default().labels(&self.selector),
            metrics: self.metrics.clone(),
            kicks: self.kicks.clone(),
            synced: synced.clone(),
        };
        let (shadows, pods) = (watch("shadowpods", &lists[0]), watch("pods", &lists[1]));
        let told = {
            let this = self.clone();
            move |key: ObjectKey| this.tell(&key)
        };
        tasks.spawn({
            let (this, told, away, stop) = (self.clone(), told.clone(), away.clone(), stop.clone());
            async move {
                let api = Api::namespaced(first.client.clone(), &away);
                let digest = |shadow| Some(digest::shadow(shadow));
                shadows
                    .run::<ShadowPod, _>(api, this.shadows.clone(), digest, told, stop)
                    .await;
                this.shadows.forget(&Scope::Namespace(away));
            }
        });
        tasks.spawn({
            let (this, away, stop) = (self.clone(), away.clone(), stop.clone());
            async move {
                let api = Api::namespaced(second.client.clone(), &away);
                pods.run::<RawPod, _>(api, this.remotes.clone(), digest::remote, told, stop)
                    .await;
                this.remotes.forget(&Scope::Namespace(away.clone()));
            }
        });
        tasks.spawn(async move {
            if health::all_opened(&lists, &stop).await {
                self.wake(&home);
            }
            // From here on the watches themselves tell of every change; the closing is told to the pods left behind.
            stop.cancelled().await;
            self.wake(&home);
        });
        Ok(())
    }

    /// Names the local pod of something that changed on the other side.
    fn tell(&self, away: &ObjectKey) {
        if let Some(namespace) = self.twins.home(&away.namespace) {
            self.queue.add(ObjectKey {
                namespace,
                name: away.name.clone(),
            });
        }
    }

    fn wake(&self, home: &str) {
        for key in self.locals.keys() {
            if &*key.namespace == home {
                self.queue.add(key);
            }
        }
    }
}
