//! Starts supervised watches of the cluster that the operator runs in.

use std::sync::Arc;

use kube::Client;
use kube::api::{Api, Resource};
use kube::runtime::watcher;
use serde::de::DeserializeOwned;

use crate::client::Cluster;
use crate::guarded::Guarded;
use crate::health::{Gate, Readiness};
use crate::index::{Index, Scope};
use crate::key::ObjectKey;
use crate::metrics::Metrics;
use crate::peer::Kicks;
use crate::supervise::Supervisor;
use crate::watch::Watch;

/// What all watches of one cluster share.
pub struct Watches<'a> {
    pub cluster: &'a Cluster,
    pub metrics: &'a Metrics,
    pub readiness: &'a Readiness,
}

impl Watches<'_> {
    /// Watches `resource` into `index`. The gate, a condition of readiness, opens with the first complete list.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is one thing that a watch needs; a builder would only rename them"
    )]
    pub fn start<K, D>(
        &self,
        supervisor: &mut Supervisor,
        resource: &'static str,
        config: watcher::Config,
        api: impl FnOnce(Client) -> Api<Guarded<K>>,
        index: &Arc<Index<D>>,
        digest: impl Fn(K) -> Option<D> + Send + Sync + 'static,
        notify: impl Fn(ObjectKey) + Send + Sync + 'static,
    ) -> anyhow::Result<Gate>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,
        D: Send + Sync + 'static,
    {
        let lease = self.cluster.watches.lease()?;
        let synced = self.readiness.gate(format!("list of {resource}"));
        let watch = Watch {
            cluster: self.cluster.role,
            resource,
            scope: Scope::Cluster,
            config,
            metrics: self.metrics.clone(),
            kicks: Kicks::default(),
            synced: synced.clone(),
            on_refusal: None,
        };
        let (api, index, stop) = (api(lease.client.clone()), index.clone(), supervisor.stop());
        supervisor.spawn(format!("watch of {resource}"), async move {
            let _lease = lease;
            watch.run::<K, D>(api, index, digest, notify, stop).await;
            Ok(())
        });
        Ok(synced)
    }
}
