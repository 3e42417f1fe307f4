//! The watches of this operator, as they are opened: what each needs, and the gates of their first lists.

use std::sync::Arc;

use kube::Client;
use kube::api::{Api, Resource};
use kube::runtime::watcher;
use serde::de::DeserializeOwned;
use spillway_operator::Guarded;
use spillway_operator::health::Gate;
use spillway_operator::supervise::Supervisor;
use spillway_operator::watches::Watches;
use spillway_operator::{Index, ObjectKey};

pub struct Watching<'a> {
    pub watches: Watches<'a>,
    pub supervisor: &'a mut Supervisor,
    /// All open: absence from an index means absence from the cluster.
    pub synced: Vec<Gate>,
}

/// What to watch, and the right by which: in one namespace (a Role is enough) or in all.
pub struct Selection<F> {
    pub resource: &'static str,
    pub config: watcher::Config,
    pub api: F,
}

impl Watching<'_> {
    pub fn open<K, D, F>(
        &mut self,
        selection: Selection<F>,
        index: &Arc<Index<D>>,
        digest: impl Fn(K) -> Option<D> + Send + Sync + 'static,
        notify: impl Fn(ObjectKey) + Send + Sync + 'static,
    ) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,
        D: Send + Sync + 'static,
        F: FnOnce(Client) -> Api<Guarded<K>>,
    {
        let Selection { resource, config, api } = selection;
        let supervisor = &mut *self.supervisor;
        let synced = self.watches.start(supervisor, resource, config, api, index, digest, notify)?;
        self.synced.push(synced);
        Ok(())
    }
}
