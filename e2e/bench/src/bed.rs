//! The clusters that are measured, with Spillway's objects and rights in them.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use kube::api::{Api, PostParams};
use serde_json::json;
use spillway_api::offloading::VirtualNode;
use spillway_api::well_known::{label, name};
use spillway_e2e::by_hand::{self, Peering};
use spillway_e2e::install::{self, Image};
use spillway_e2e::{Side, wait};
use spillway_testbed::{Progress, Spec, State, Testbed};

use crate::args::Settings;
use crate::identity;
use crate::link;
use crate::operators::Operator;
use crate::plan::Limits;
use crate::running::Running;

pub const VIRTUAL_NODE: &str = "away";
/// Pods that stay in their cluster; on both sides.
pub const VANILLA: &str = "vanilla";
/// Pods that cross; at home.
pub const OFFLOADED: &str = "offloaded";
const DELAY_PORT: u16 = 7443;

pub struct Bed {
    pub testbed: Testbed,
    pub home: Side,
    pub away: Side,
    pub twin: String,
    peering: Peering,
    settings: Settings,
    /// Kubeconfigs; they go with the testbed.
    keys: PathBuf,
    logs: PathBuf,
}

impl Bed {
    /// Makes the clusters; what an earlier run left is removed first, unless it was to be kept.
    pub async fn up(settings: &Settings, limits: Limits) -> Result<Self> {
        let (wanted, spec) = (settings.clone(), spec(settings, limits));
        let testbed = tokio::task::spawn_blocking(move || -> Result<Testbed> {
            if !wanted.keep {
                Testbed::remove(&wanted.testbed, &Progress::to_stderr())?;
            }
            let testbed = Testbed::up(&wanted.testbed, &spec)?;
            // There is no kubelet: the charts' Deployments are played by simulated nodes, and only their rights are used.
            let image = Image { tag: "bench".to_owned(), archive: PathBuf::new() };
            install::umbrella(&testbed, "home", &image, true, false)?;
            install::umbrella(&testbed, "away", &image, false, true)?;
            // The garbage collector asks for every owner of a kind that it has not come to know yet, which it does by chance.
            for cluster in ["home", "away"] {
                let component = format!("{cluster}/kube-controller-manager");
                testbed.kill(&component)?;
                testbed.start(&component)?;
            }
            link::count(&testbed)?;
            Ok(testbed)
        })
        .await??;
        let (home, away) = (Side::connect(&testbed, "home").await?, Side::connect(&testbed, "away").await?);
        let (keys, logs) = (testbed.dir().join("bench"), settings.out.join("logs"));
        for folder in [&keys, &logs] {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let nobody = Peering {
            home_id: String::new(),
            away_id: String::new(),
            tenant_namespace: String::new(),
            kubeconfig_secret: String::new(),
        };
        let settings = settings.clone();
        let mut bed = Self { testbed, home, away, twin: String::new(), peering: nobody, settings, keys, logs };
        bed.peer().await?;
        Ok(bed)
    }

    /// The same clusters under other limits: what they concern is restarted.
    pub async fn change_limits(&mut self, limits: Limits) -> Result<()> {
        let (name, spec) = (self.settings.testbed.clone(), spec(&self.settings, limits));
        self.testbed = tokio::task::spawn_blocking(move || Testbed::up(&name, &spec)).await??;
        Ok(())
    }

    /// Makes the clusters known to each other, and one namespace of home offloaded.
    async fn peer(&mut self) -> Result<()> {
        let operators = self.peering_operators().await?;
        self.peering = by_hand::peer(&self.home, &self.away).await?;
        let huge = json!({"cpu": "100000", "memory": "100Ti", "pods": "100000", "ephemeral-storage": "100Ti"});
        let node = json!({
            "metadata": {"name": VIRTUAL_NODE, "labels": {label::REMOTE_CLUSTER_ID: self.peering.away_id}},
            "spec": {
                "clusterID": self.peering.away_id, "createNode": true,
                "kubeconfigSecretRef": {"name": self.peering.kubeconfig_secret}, "resourceQuota": {"hard": huge},
            },
        });
        by_hand::apply::<VirtualNode>(&self.home, &self.peering.tenant_namespace, node).await?;
        let spaces = [(&self.home, VANILLA), (&self.away, VANILLA), (&self.home, OFFLOADED)];
        for (side, namespace) in spaces {
            make_namespace(side, namespace).await?;
        }
        self.twin = by_hand::twin(&self.home, &self.away, &self.peering, OFFLOADED).await?;
        // The API server refuses pods until their account is there.
        let twin = self.twin.clone();
        for (side, namespace) in spaces.into_iter().chain([(&self.away, twin.as_str())]) {
            let accounts = Api::<ServiceAccount>::namespaced(side.client.clone(), namespace);
            wait::until_one("the namespace's account", accounts, "default", |account| account.is_some()).await?;
        }
        // Its rights come with it; the peering operator has made it before it is asked to stop.
        self.virtual_kubelet_identity().await?;
        for operator in operators {
            operator.stop().await?;
        }
        Ok(())
    }

    async fn peering_operators(&self) -> Result<Vec<Operator>> {
        let mut started = Vec::new();
        for (side, role) in [(&self.home, "consumer"), (&self.away, "provider")] {
            let account = "spillway-peering";
            let kubeconfig = identity::of_service_account(side, install::NAMESPACE, account, &self.keys).await?;
            let args = [format!("--namespace={}", install::NAMESPACE), format!("--role={role}")];
            let name = format!("peering-{role}");
            started.push(self.operator(side, "peering", &name, 9102, &kubeconfig, &args).await?);
        }
        Ok(started)
    }

    /// Starts every operator, and waits until the virtual node takes pods.
    pub async fn start(&self, rtt_ms: u64) -> Result<Running> {
        let mut others = self.peering_operators().await?;
        let kubeconfig =
            identity::of_service_account(&self.away, install::NAMESPACE, "spillway-shadow-pod", &self.keys).await?;
        let args = [format!("--namespace={}", install::NAMESPACE)];
        others.push(self.operator(&self.away, "shadow-pod", "shadow-pod", 9103, &kubeconfig, &args).await?);
        let delay = (rtt_ms > 0).then(|| self.delay(rtt_ms)).transpose()?;
        let virtual_kubelet = self.virtual_kubelet(rtt_ms).await?;
        let nodes = Api::<Node>::all(self.home.client.clone());
        wait::until_one("the virtual node to take pods", nodes, VIRTUAL_NODE, |node| node.is_some_and(takes_pods))
            .await?;
        Ok(Running { virtual_kubelet, others, delay, rtt_ms })
    }

    /// Starts virtual-kubelet alone, and does not wait for it.
    pub async fn virtual_kubelet(&self, rtt_ms: u64) -> Result<Operator> {
        let kubeconfig = self.virtual_kubelet_identity().await?;
        let server = (rtt_ms > 0).then(|| format!("https://127.0.0.1:{DELAY_PORT}"));
        let remote = identity::of_consumer(&self.home, &self.peering, server, &self.keys).await?;
        let (home, peering) = (self.testbed.cluster("home")?, &self.peering);
        let args = [
            format!("--nodename={VIRTUAL_NODE}"),
            format!("--tenant-namespace={}", peering.tenant_namespace),
            format!("--home-cluster-id={}", peering.home_id),
            format!("--foreign-cluster-id={}", peering.away_id),
            format!("--node-ip={}", home.api_address),
            format!("--foreign-kubeconfig={}", remote.display()),
        ];
        self.spawn(&self.home, "virtual-kubelet", "virtual-kubelet", 9101, &kubeconfig, &args)
    }

    async fn virtual_kubelet_identity(&self) -> Result<PathBuf> {
        let account = format!("{}{VIRTUAL_NODE}", name::VIRTUAL_KUBELET_PREFIX);
        identity::of_service_account(&self.home, &self.peering.tenant_namespace, &account, &self.keys).await
    }

    async fn operator(
        &self,
        side: &Side,
        binary: &str,
        name: &str,
        port: u16,
        kubeconfig: &Path,
        args: &[String],
    ) -> Result<Operator> {
        let mut operator = self.spawn(side, binary, name, port, kubeconfig, args)?;
        let address = self.testbed.cluster(&side.name)?.api_address;
        operator.ready(SocketAddr::from((address, port))).await?;
        Ok(operator)
    }

    fn spawn(
        &self,
        side: &Side,
        binary: &str,
        name: &str,
        port: u16,
        kubeconfig: &Path,
        args: &[String],
    ) -> Result<Operator> {
        let mut command = self.program(side, &binaries(&self.settings)?.join(binary))?;
        command.args(args).arg(format!("--kubeconfig={}", kubeconfig.display()));
        // One name for all its lives, as a pod has whose container restarts.
        command.args([format!("--metrics-address=0.0.0.0:{port}"), format!("--identity=bench-{name}")]);
        Operator::start(name, command, &self.logs)
    }

    fn delay(&self, rtt_ms: u64) -> Result<Operator> {
        let mut command = self.program(&self.home, &std::env::current_exe()?)?;
        let away = self.testbed.cluster("away")?.api_address;
        command.args(["delay", &format!("--listen=127.0.0.1:{DELAY_PORT}"), &format!("--to={away}:6443")]);
        command.arg(format!("--rtt-ms={rtt_ms}"));
        Operator::start("delay", command, &self.logs)
    }

    fn program(&self, side: &Side, path: &Path) -> Result<Command> {
        self.testbed.on_node(&side.name, &path.to_string_lossy())
    }

    /// The processes of both clusters, as `CLUSTER/COMPONENT`.
    pub fn components(&self) -> Vec<(String, u32)> {
        let running = |state| match state {
            State::Running { pid } => u32::try_from(pid).ok(),
            _ => None,
        };
        let all = self.testbed.components().into_iter();
        all.filter_map(|part| Some((format!("{}/{}", part.cluster, part.name), running(part.state)?))).collect()
    }
}

fn spec(settings: &Settings, limits: Limits) -> Spec {
    Spec { control_plane_only: true, kwok_nodes: settings.nodes, api_qps: limits.per_second(), ..Spec::default() }
}

/// Where the operators' release binaries are.
pub fn binaries(settings: &Settings) -> Result<PathBuf> {
    match &settings.binaries {
        Some(folder) => Ok(folder.canonicalize().with_context(|| format!("there is no {}", folder.display()))?),
        None => Ok(std::env::current_exe()?.parent().context("this program lies nowhere")?.to_owned()),
    }
}

async fn make_namespace(side: &Side, name: &str) -> Result<()> {
    let api = Api::<Namespace>::all(side.client.clone());
    if api.get_opt(name).await?.is_none() {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        api.create(&PostParams::default(), &namespace).await?;
    }
    Ok(())
}

/// Ready, and without the taints of the time when its virtual-kubelet was away.
fn takes_pods(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
        && !taints.iter().any(|taint| taint.key.starts_with("node.kubernetes.io/"))
}
