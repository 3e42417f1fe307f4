//! What a testbed should consist of: the answer to "which clusters do I want?".

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::plan::{CLUSTER_NAMES, MAX_NODES};

/// The shape of a testbed. An existing testbed only grows: `up` with a smaller shape keeps what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// How many clusters; the first is `home`, the second `away`.
    pub clusters: u8,
    /// Real kubelets per cluster.
    pub nodes: u8,
    /// Simulated nodes per cluster, played by kwok.
    pub kwok_nodes: u32,
    /// Only etcd, the API server, the controller-manager and the scheduler.
    pub control_plane_only: bool,
    /// Give every cluster the same pod and service CIDR, and translate between them.
    pub overlapping_cidrs: bool,
    /// Run a Prometheus per cluster that scrapes annotated pods.
    pub prometheus: bool,
    /// Requests per second allowed to the controller-manager and the scheduler; stock when absent.
    pub api_qps: Option<u32>,
    /// Further flags by component name, e.g. `kube-controller-manager` → `--node-monitor-grace-period=10s`.
    pub extra_args: BTreeMap<String, Vec<String>>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            clusters: 2,
            nodes: 1,
            kwok_nodes: 0,
            control_plane_only: false,
            overlapping_cidrs: false,
            prometheus: false,
            api_qps: None,
            extra_args: BTreeMap::new(),
        }
    }
}

impl Spec {
    /// Refuses what the address plan cannot hold.
    pub fn validate(&self) -> Result<()> {
        let most = CLUSTER_NAMES.len();
        ensure!((1..=most).contains(&usize::from(self.clusters)), "--clusters must be between 1 and {most}");
        ensure!((1..=MAX_NODES).contains(&self.nodes), "--nodes must be between 1 and {MAX_NODES}");
        ensure!(self.kwok_nodes <= 5000, "--kwok-nodes must be at most 5000");
        Ok(())
    }

    /// The existing shape grown by the wanted one.
    pub fn grown_by(&self, wanted: &Spec) -> Result<Spec> {
        ensure!(
            self.overlapping_cidrs == wanted.overlapping_cidrs,
            "the testbed exists with --overlapping-cidrs={}; run `testbed down` first to change that",
            self.overlapping_cidrs
        );
        let mut extra_args = self.extra_args.clone();
        extra_args.extend(wanted.extra_args.clone());
        Ok(Spec {
            clusters: self.clusters.max(wanted.clusters),
            nodes: self.nodes.max(wanted.nodes),
            kwok_nodes: self.kwok_nodes.max(wanted.kwok_nodes),
            control_plane_only: self.control_plane_only && wanted.control_plane_only,
            overlapping_cidrs: self.overlapping_cidrs,
            prometheus: self.prometheus || wanted.prometheus,
            api_qps: wanted.api_qps.or(self.api_qps),
            extra_args,
        })
    }

    /// Whether pods really run: there are kubelets.
    pub fn has_kubelets(&self) -> bool {
        !self.control_plane_only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_what_is_there() {
        let existing = Spec { clusters: 3, prometheus: true, ..Spec::default() };
        let grown = existing.grown_by(&Spec { nodes: 2, ..Spec::default() }).unwrap();
        assert_eq!((grown.clusters, grown.nodes, grown.prometheus), (3, 2, true));
    }

    #[test]
    fn growing_refuses_other_addresses() {
        let overlapping = Spec { overlapping_cidrs: true, ..Spec::default() };
        assert!(Spec::default().grown_by(&overlapping).is_err());
    }

    #[test]
    fn a_control_plane_grows_into_a_whole_cluster() {
        let bare = Spec { control_plane_only: true, ..Spec::default() };
        assert!(bare.grown_by(&Spec::default()).unwrap().has_kubelets());
        assert!(!bare.grown_by(&bare).unwrap().has_kubelets());
    }

    #[test]
    fn too_many_clusters_are_refused() {
        assert!(Spec { clusters: 8, ..Spec::default() }.validate().is_err());
        assert!(Spec { clusters: 0, ..Spec::default() }.validate().is_err());
    }
}
