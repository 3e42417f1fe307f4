//! The library's face: what tests and benchmarks call.

use anyhow::{Context, Result, bail, ensure};
use ipnet::Ipv4Net;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cut::{Cuts, Scope};
use crate::plan::{Node, Plan};
use crate::progress::Progress;
use crate::spec::Spec;
use crate::state::{Home, Record};
use crate::status::{self, ComponentStatus};
use crate::units::{self, Instance};
use crate::{binaries, command, down, up};

/// A process asked to stop gets this long before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// A running testbed. Dropping it changes nothing: clusters live until [`Testbed::down`].
pub struct Testbed {
    home: Home,
    record: Record,
    plan: Plan,
    clusters: Vec<Cluster>,
    progress: Progress,
}

/// Where one cluster is reached and what it uses.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub name: String,
    /// The administrator's; works from the host and from every cluster of the testbed.
    pub kubeconfig_path: PathBuf,
    /// `https://ADDRESS:PORT`.
    pub api_url: String,
    pub api_address: Ipv4Addr,
    pub pod_cidr: Ipv4Net,
    /// Under which range the host and the other clusters reach the pods; another one when CIDRs overlap.
    pub reachable_pod_cidr: Ipv4Net,
    pub service_cidr: Ipv4Net,
    pub nodes: Vec<Node>,
    /// `http://ADDRESS:PORT`, when the testbed was made with Prometheus.
    pub prometheus_url: Option<String>,
    /// The certificate authority and every client certificate.
    pub pki_dir: PathBuf,
}

impl Testbed {
    /// Makes the testbed, or repairs and grows it to at least this shape.
    pub fn up(name: &str, spec: &Spec) -> Result<Self> {
        Self::up_with(name, spec, Progress::to_stderr())
    }

    pub fn up_with(name: &str, spec: &Spec, progress: Progress) -> Result<Self> {
        let home = Home::of(name)?;
        let record = up::bring_up(&home, spec, &progress)?;
        Ok(Self::from_record(home, record, progress))
    }

    /// An existing testbed, as it is.
    pub fn open(name: &str) -> Result<Self> {
        let home = Home::of(name)?;
        let record = home.record()?;
        Ok(Self::from_record(home, record, Progress::to_stderr()))
    }

    /// The names of all testbeds on this machine.
    pub fn names() -> Vec<String> {
        crate::state::names()
    }

    /// Removes a testbed by name, however far its making had come; that there is none is fine.
    pub fn remove(name: &str, progress: &Progress) -> Result<()> {
        down::take_down(&Home::of(name)?, progress)
    }

    pub fn down(self) -> Result<()> {
        down::take_down(&self.home, &self.progress)
    }

    fn from_record(home: Home, record: Record, progress: Progress) -> Self {
        let plan = Plan::new(record.slot, &record.spec);
        let clusters = plan
            .clusters
            .iter()
            .map(|cluster| Cluster {
                name: cluster.name.clone(),
                kubeconfig_path: home.kubeconfig(&cluster.name),
                api_url: cluster.api_url(),
                api_address: cluster.api_address,
                pod_cidr: cluster.pod_cidr,
                reachable_pod_cidr: cluster.reachable_pod_cidr,
                service_cidr: cluster.service_cidr,
                nodes: cluster.nodes.clone(),
                prometheus_url: record
                    .spec
                    .prometheus
                    .then(|| format!("http://{}:{}", cluster.api_address, units::PROMETHEUS_PORT)),
                pki_dir: home.pki(&cluster.name),
            })
            .collect();
        Self { home, record, plan, clusters, progress }
    }

    pub fn name(&self) -> &str {
        &self.home.name
    }

    pub fn spec(&self) -> &Spec {
        &self.record.spec
    }

    /// Where everything of the testbed lies; logs are below `logs/CLUSTER/`.
    pub fn dir(&self) -> &Path {
        &self.home.dir
    }

    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    pub fn cluster(&self, name: &str) -> Result<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name == name).with_context(|| {
            let names: Vec<&str> = self.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
            format!("testbed {} has no cluster {name:?}; it has: {}", self.home.name, names.join(", "))
        })
    }

    /// Cuts two clusters from each other; a cut in force is replaced.
    pub fn cut(&self, a: &str, b: &str, scope: Scope) -> Result<()> {
        self.change_cuts(a, b, |cuts| cuts.cut(a, b, scope))
    }

    pub fn mend(&self, a: &str, b: &str) -> Result<()> {
        self.change_cuts(a, b, |cuts| {
            cuts.mend(a, b);
            Ok(())
        })
    }

    fn change_cuts(&self, a: &str, b: &str, change: impl FnOnce(&mut Cuts) -> Result<()>) -> Result<()> {
        self.cluster(a)?;
        self.cluster(b)?;
        let _lock = self.home.lock()?;
        let mut cuts = Cuts::load(&self.home)?;
        change(&mut cuts)?;
        cuts.enforce(&self.home, &self.plan)
    }

    pub fn cuts(&self) -> Result<Cuts> {
        Cuts::load(&self.home)
    }

    /// Asks a component to end and waits. `[CLUSTER/]COMPONENT`; without a cluster, that of every cluster.
    pub fn stop(&self, component: &str) -> Result<()> {
        self.each(component, |instance| instance.recorded(&self.home).stop(STOP_PATIENCE))
    }

    /// Ends a component without warning.
    pub fn kill(&self, component: &str) -> Result<()> {
        self.each(component, |instance| instance.recorded(&self.home).kill())
    }

    /// Starts a component that was stopped, killed or has died, and waits until it serves.
    pub fn start(&self, component: &str) -> Result<()> {
        self.each(component, |instance| units::start_one(&self.home, &self.record.spec, instance, &self.progress))
    }

    fn each(&self, component: &str, work: impl Fn(&Instance<'_>) -> Result<()>) -> Result<()> {
        let all = units::instances(&self.record.spec, &self.plan);
        let chosen = self.select(&all, component)?;
        let _lock = self.home.lock()?;
        for instance in chosen {
            work(instance)?;
        }
        Ok(())
    }

    fn select<'a, 'b>(&self, all: &'b [Instance<'a>], component: &str) -> Result<Vec<&'b Instance<'a>>> {
        let (cluster, name) = match component.split_once('/') {
            Some((cluster, name)) => (Some(&self.cluster(cluster)?.name), name),
            None => (None, component),
        };
        let processes = || all.iter().filter(|instance| instance.is_process());
        let chosen: Vec<_> = processes()
            .filter(|instance| instance.name() == name)
            .filter(|instance| cluster.is_none_or(|cluster| *cluster == instance.cluster.name))
            .collect();
        if chosen.is_empty() {
            let known: std::collections::BTreeSet<String> = processes().map(Instance::name).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            bail!("there is no component {name:?}; there are: {}", known.join(", "));
        }
        Ok(chosen)
    }

    /// The logs of a component, one file per cluster that it is chosen in.
    pub fn logs(&self, component: &str) -> Result<Vec<PathBuf>> {
        let all = units::instances(&self.record.spec, &self.plan);
        let chosen = self.select(&all, component)?;
        Ok(chosen.iter().map(|instance| self.home.log(&instance.cluster.name, &instance.name())).collect())
    }

    pub fn components(&self) -> Vec<ComponentStatus> {
        status::components(&self.home, &units::instances(&self.record.spec, &self.plan))
    }

    /// Loads a docker-archive into every node, or into those of one cluster.
    pub fn load_image(&self, archive: &Path, cluster: Option<&str>) -> Result<()> {
        cluster.map(|name| self.cluster(name)).transpose()?;
        ensure!(self.record.spec.has_kubelets(), "the testbed has only control planes: no node could use an image");
        let _lock = self.home.lock()?;
        for (_, node) in self.plan.nodes().filter(|(c, _)| cluster.is_none_or(|name| c.name == name)) {
            units::load_image(&self.home, &node.name, archive)?;
        }
        Ok(())
    }

    /// `kubectl` as the administrator of a cluster, to be given its arguments.
    pub fn kubectl(&self, cluster: &str) -> Result<Command> {
        self.cluster(cluster)?;
        let planned = self.plan.cluster(cluster).context("the plan lacks the cluster")?;
        binaries::ensure("kubectl", &self.progress)?;
        units::kubectl(&self.home, planned)
    }

    /// `helm` as the administrator of a cluster; built when first asked for.
    pub fn helm(&self, cluster: &str) -> Result<Command> {
        let cluster = self.cluster(cluster)?;
        let mut helm = command::command(binaries::ensure("helm", &self.progress)?);
        helm.env("KUBECONFIG", &cluster.kubeconfig_path);
        for (variable, folder) in
            [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")]
        {
            helm.env(variable, self.home.dir.join("helm").join(folder));
        }
        Ok(helm)
    }

    /// A program run on a node, as far as its network goes: `home` is the first node, `home-1` the second.
    pub fn on_node(&self, node: &str, program: &str) -> Result<Command> {
        let name = self.cluster(node).map_or_else(|_| node.to_owned(), |cluster| cluster.nodes[0].name.clone());
        if !self.plan.nodes().any(|(_, planned)| planned.name == name) {
            let known: Vec<&str> = self.plan.nodes().map(|(_, node)| node.name.as_str()).collect();
            bail!("there is no node {node:?}; there are: {}", known.join(", "));
        }
        Ok(command::inside(&self.home.network_namespace(&name), program))
    }
}
