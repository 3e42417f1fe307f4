//! What a cluster consists of, as a table: a new component is a new row, and a function that gives its flags.

mod bootstrap;
mod containers;
mod control_plane;
mod dns;
mod kubelet;
mod kwok;
mod probe;
mod prometheus;
mod run;
mod site;

pub use containers::load as load_image;
pub use prometheus::PORT as PROMETHEUS_PORT;
pub use run::{Instance, bring_up, instances, start_one};
pub use site::{Site, kubectl};

use anyhow::{Result, ensure};
use std::path::PathBuf;

use crate::packages::{self, Package};
use crate::progress::Step;
use crate::spec::Spec;
use probe::Probe;

/// One kind of thing that a cluster, or each of its nodes, has.
pub struct Row {
    pub name: &'static str,
    pub scope: Scope,
    pub source: Source,
    /// What must be ready before this starts: of the same node where that is per node, else of the cluster.
    pub after: &'static [&'static str],
    pub wanted: fn(&Spec) -> bool,
    pub work: Work,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Node,
}

/// Where the program comes from.
pub enum Source {
    /// Built by us.
    Go(&'static str),
    /// Installed, with all that it takes.
    Debian(&'static str, &'static [Package]),
    /// No program of its own; what is built for it.
    Testbed(&'static [&'static str]),
}

pub enum Work {
    /// A process that runs until it is stopped.
    Serve { launch: fn(&Site<'_>) -> Result<Launch>, ready: fn(&Site<'_>) -> Probe },
    /// Something done once, and harmless when done again.
    Once(fn(&Site<'_>, &Step) -> Result<()>),
}

/// How a process is to be started.
#[derive(Default)]
pub struct Launch {
    pub args: Vec<String>,
    /// Configuration that it reads, written before it starts; a change restarts it.
    pub files: Vec<(PathBuf, String)>,
    /// Whether it lives with the node's own mounts.
    pub in_node_mounts: bool,
}

impl Launch {
    fn with_args<S: Into<String>>(args: impl IntoIterator<Item = S>) -> Self {
        Self { args: args.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

const fn serve(launch: fn(&Site<'_>) -> Result<Launch>, ready: fn(&Site<'_>) -> Probe) -> Work {
    Work::Serve { launch, ready }
}

fn always(_: &Spec) -> bool {
    true
}

fn with_prometheus(spec: &Spec) -> bool {
    spec.prometheus
}

fn with_kwok(spec: &Spec) -> bool {
    spec.kwok_nodes > 0
}

use Scope::{Cluster, Node};
use Source::{Debian, Go, Testbed};

/// Everything, in no particular order: `after` decides.
#[rustfmt::skip]
pub static TABLE: [Row; 16] = [
    Row { name: "etcd", scope: Cluster, source: Go("etcd"), after: &[], wanted: always,
          work: serve(control_plane::etcd, control_plane::etcd_ready) },
    Row { name: "kube-apiserver", scope: Cluster, source: Go("kube-apiserver"), after: &["etcd"], wanted: always,
          work: serve(control_plane::apiserver, control_plane::apiserver_ready) },
    Row { name: "kube-controller-manager", scope: Cluster, source: Go("kube-controller-manager"), after: &["kube-apiserver"], wanted: always,
          work: serve(control_plane::controller_manager, control_plane::controller_manager_ready) },
    Row { name: "kube-scheduler", scope: Cluster, source: Go("kube-scheduler"), after: &["kube-apiserver"], wanted: always,
          work: serve(control_plane::scheduler, control_plane::scheduler_ready) },
    Row { name: "first-objects", scope: Cluster, source: Testbed(&["kubectl"]), after: &["kube-apiserver"], wanted: always,
          work: Work::Once(bootstrap::first_objects) },
    Row { name: "service-accounts", scope: Cluster, source: Testbed(&["kubectl"]), after: &["kube-controller-manager"], wanted: always,
          work: Work::Once(bootstrap::service_accounts) },
    Row { name: "containerd", scope: Node, source: Debian("containerd", &packages::NODE), after: &[], wanted: Spec::has_kubelets,
          work: serve(containers::containerd, containers::containerd_ready) },
    Row { name: "images", scope: Node, source: Testbed(&["pause"]), after: &["containerd"], wanted: Spec::has_kubelets,
          work: Work::Once(containers::stock_images) },
    Row { name: "kubelet", scope: Node, source: Go("kubelet"), after: &["images", "kube-apiserver"], wanted: Spec::has_kubelets,
          work: serve(kubelet::kubelet, kubelet::kubelet_ready) },
    Row { name: "kube-proxy", scope: Node, source: Go("kube-proxy"), after: &["kube-apiserver"], wanted: Spec::has_kubelets,
          work: serve(kubelet::proxy, kubelet::proxy_ready) },
    Row { name: "node-ready", scope: Node, source: Testbed(&["kubectl"]), after: &["kubelet", "kube-proxy"], wanted: Spec::has_kubelets,
          work: Work::Once(bootstrap::node_ready) },
    Row { name: "coredns", scope: Cluster, source: Go("coredns"), after: &["first-objects"], wanted: Spec::has_kubelets,
          work: serve(dns::coredns, dns::coredns_ready) },
    Row { name: "kwok", scope: Cluster, source: Go("kwok"), after: &["kube-apiserver"], wanted: with_kwok,
          work: serve(kwok::kwok, kwok::kwok_ready) },
    Row { name: "kwok-nodes", scope: Cluster, source: Testbed(&["kubectl"]), after: &["kwok"], wanted: with_kwok,
          work: Work::Once(kwok::nodes) },
    Row { name: "pod-discovery", scope: Cluster, source: Debian("sh", &[]), after: &["first-objects"], wanted: with_prometheus,
          work: serve(prometheus::discovery, prometheus::discovery_ready) },
    Row { name: "prometheus", scope: Cluster, source: Debian("prometheus", &packages::PROMETHEUS), after: &["first-objects"], wanted: with_prometheus,
          work: serve(prometheus::prometheus, prometheus::prometheus_ready) },
];

/// Refuses flags for what is no process of ours.
pub fn check_names<'a>(names: impl Iterator<Item = &'a String>) -> Result<()> {
    let known: Vec<&str> =
        TABLE.iter().filter(|row| matches!(row.work, Work::Serve { .. })).map(|row| row.name).collect();
    for name in names {
        ensure!(known.contains(&name.as_str()), "there is no component {name:?}; there are: {}", known.join(", "));
    }
    Ok(())
}

/// The programs to build and the packages to install for this shape, in the order of their need.
pub fn requirements(spec: &Spec) -> (Vec<&'static str>, Vec<&'static Package>) {
    let mut programs = vec!["kubectl"];
    let mut needed: Vec<&Package> = packages::ALWAYS.iter().collect();
    for row in TABLE.iter().filter(|row| (row.wanted)(spec)) {
        match row.source {
            Go(program) => programs.push(program),
            Debian(_, list) => needed.extend(list),
            Testbed(list) => programs.extend(list),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    programs.retain(|program| seen.insert(*program));
    (programs, needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dependency_is_a_row_and_none_is_circular() {
        let mut ready: Vec<&str> = Vec::new();
        while ready.len() < TABLE.len() {
            let next: Vec<&str> = TABLE
                .iter()
                .filter(|row| !ready.contains(&row.name) && row.after.iter().all(|name| ready.contains(name)))
                .map(|row| row.name)
                .collect();
            assert!(!next.is_empty(), "nothing can start after {ready:?}");
            ready.extend(next);
        }
    }

    #[test]
    fn a_bare_control_plane_builds_no_kubelet() {
        let bare = Spec { control_plane_only: true, ..Spec::default() };
        let (programs, packages) = requirements(&bare);
        assert!(!programs.contains(&"kubelet") && !programs.contains(&"pause") && !programs.contains(&"kwok"));
        assert!(packages.iter().all(|package| package.name != "containerd"));
    }
}
