//! Opens the operator's watches: each feeds an index, and readiness waits for its first list.

use std::future::Future;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use kube::Client;
use kube::api::{Api, Resource};
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use serde::de::DeserializeOwned;
use spillway_operator::client::Cluster;
use spillway_operator::health::{Gate, Readiness};
use spillway_operator::index::Scope;
use spillway_operator::metrics::Metrics;
use spillway_operator::peer::Kicks;
use spillway_operator::supervise::Supervisor;
use spillway_operator::watch::Watch;
use spillway_operator::{Index, ObjectKey};

pub struct Watching<'a> {
    cluster: &'a Cluster,
    metrics: &'a Metrics,
    pub readiness: &'a Readiness,
    supervisor: &'a mut Supervisor,
    gates: Vec<Gate>,
}

/// What to watch.
pub struct Selection<K> {
    resource: &'static str,
    scope: Scope,
    config: watcher::Config,
    api: Box<dyn FnOnce(Client) -> Api<DeserializeGuard<K>>>,
}

impl<K: Resource<DynamicType = ()> + 'static> Selection<K> {
    pub fn everywhere(resource: &'static str, config: watcher::Config) -> Self {
        Self {
            resource,
            scope: Scope::Cluster,
            config,
            api: Box::new(Api::all),
        }
    }

    /// Needs no more than a Role in that namespace.
    pub fn within(namespace: &str, resource: &'static str, config: watcher::Config) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        let namespace: Arc<str> = namespace.into();
        Self {
            resource,
            scope: Scope::Namespace(namespace.clone()),
            config,
            api: Box::new(move |client| Api::namespaced(client, &namespace)),
        }
    }
}

impl<'a> Watching<'a> {
    pub fn new(
        cluster: &'a Cluster,
        metrics: &'a Metrics,
        readiness: &'a Readiness,
        supervisor: &'a mut Supervisor,
    ) -> Self {
        Self {
            cluster,
            metrics,
            readiness,
            supervisor,
            gates: Vec::new(),
        }
    }

    pub fn open<K, D>(
        &mut self,
        selection: Selection<K>,
        index: Arc<Index<D>>,
        digest: impl Fn(K) -> Option<D> + Send + Sync + 'static,
        notify: impl Fn(ObjectKey) + Send + Sync + 'static,
    ) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug + Send + 'static,
        D: Send + Sync + 'static,
    {
        let lease = self.cluster.watches.lease()?;
        let api = (selection.api)(lease.client.clone());
        let synced = self.readiness.gate(format!("list of {}", selection.resource));
        self.gates.push(synced.clone());
        let watch = Watch {
            cluster: self.cluster.role,
            resource: selection.resource,
            scope: selection.scope,
            config: selection.config,
            metrics: self.metrics.clone(),
            kicks: Kicks::default(),
            synced,
        };
        let stop = self.supervisor.stop();
        self.supervisor
            .spawn(format!("watch of {}", selection.resource), async move {
                watch.run(api, index, digest, notify, stop).await;
                drop(lease);
                Ok(())
            });
        Ok(())
    }

    /// Ends when every watch has had its first list.
    pub fn synced(self) -> impl Future<Output = ()> + Send + 'static {
        let gates = self.gates;
        async move {
            for gate in gates {
                gate.opened().await;
            }
        }
    }
}
