//! The command line.

mod run;

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const TEACHING: &str = "\
Real Kubernetes clusters on this machine, without Docker or a registry.

Two clusters, `home` and `away`, with a real kubelet each, and a flat network between their pods:

    testbed up
    testbed kubectl home -- get nodes -o wide
    testbed cut home away --control-plane
    testbed mend home away
    testbed down

Everything is real: etcd, the API server, controllers, scheduler, kubelet, kube-proxy, CoreDNS, containerd.
The first `up` builds them from pinned Go modules (about 20 minutes on 2 cores) into ~/.cache/spillway; later
ones take about half a minute. Nothing leaves the machine: clusters have no route out.

It needs Linux, root and Go. State lies in /var/lib/spillway-testbed (or $SPILLWAY_TESTBED_DIR).";

/// Real Kubernetes clusters on this machine, without Docker or a registry.
#[derive(Parser)]
#[command(name = "testbed", version, long_about = TEACHING, max_term_width = 110)]
pub struct Cli {
    /// Which testbed; several live side by side and never touch one another.
    #[arg(long, global = true, default_value = "default", env = "SPILLWAY_TESTBED_NAME")]
    name: String,
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make the testbed, or repair and grow it: run it whenever something is missing.
    Up(UpArgs),
    /// Remove the testbed and every trace of it.
    Down {
        /// Every testbed on this machine.
        #[arg(long)]
        all: bool,
    },
    /// Show clusters, addresses, what runs, and cuts; fails when something is dead.
    Status,
    /// Print the path of a cluster's kubeconfig: export KUBECONFIG=$(testbed kubeconfig home)
    Kubeconfig { cluster: String },
    /// Run kubectl against a cluster: testbed kubectl home -- get pods -A
    Kubectl {
        cluster: String,
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Run helm against a cluster: testbed helm away -- list -A
    Helm {
        cluster: String,
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Run a program in the network of a cluster's first node, or of a node (home-1): testbed exec home -- ip route
    Exec {
        node: String,
        #[arg(last = true, required = true)]
        args: Vec<String>,
    },
    /// Partition two clusters: packets between them vanish, also those of open connections.
    ///
    /// Each stays reachable from the host and from third clusters. A cut replaces an earlier one of the pair.
    Cut {
        a: String,
        b: String,
        /// Only what goes to and from the API servers.
        #[arg(long, conflicts_with = "all")]
        control_plane: bool,
        /// Everything between the two (the default).
        #[arg(long)]
        all: bool,
    },
    /// End the partition of two clusters.
    Mend { a: String, b: String },
    /// End a component with SIGTERM, e.g. home/kubelet; without a cluster, that of every cluster.
    Stop { component: String },
    /// End a component with SIGKILL.
    Kill { component: String },
    /// Start a component again and wait until it serves.
    Start { component: String },
    /// Load a docker-archive into every node.
    LoadImage {
        archive: PathBuf,
        /// Only into this cluster's nodes.
        #[arg(long)]
        cluster: Option<String>,
    },
    /// Show a component's log, e.g. home/kube-apiserver.
    Logs {
        component: String,
        /// Go on as it grows.
        #[arg(short, long)]
        follow: bool,
    },
    /// Build the product's container image, without Docker.
    #[command(subcommand)]
    Image(ImageAction),
}

#[derive(Args)]
struct UpArgs {
    /// How many clusters: home, away, third, fourth, …
    #[arg(long, default_value_t = 2)]
    clusters: u8,
    /// Real kubelets per cluster.
    #[arg(long, default_value_t = 1)]
    nodes: u8,
    /// Simulated nodes per cluster (label type=kwok; tainted where there are real ones).
    #[arg(long, default_value_t = 0)]
    kwok_nodes: u32,
    /// No kubelets, no pods: etcd, API server, controller-manager and scheduler only.
    #[arg(long)]
    control_plane_only: bool,
    /// Give all clusters the same CIDRs; each is reached from the others under a translated one.
    #[arg(long)]
    overlapping_cidrs: bool,
    /// Run a Prometheus per cluster; it scrapes pods annotated prometheus.io/scrape=true (port, path, scheme).
    #[arg(long)]
    prometheus: bool,
    /// Let controller-manager and scheduler make this many requests per second (they allow themselves few).
    #[arg(long)]
    api_qps: Option<u32>,
    /// Another flag for a component: --arg kube-controller-manager=--node-monitor-grace-period=10s
    #[arg(long = "arg", value_name = "COMPONENT=FLAG", value_parser = component_flag)]
    args: Vec<(String, String)>,
}

#[derive(Subcommand)]
enum ImageAction {
    /// Write a docker-archive with the given programs, their libraries, CA certificates and a non-root user.
    Build {
        #[arg(long, default_value = "target/release")]
        bin_dir: PathBuf,
        #[arg(long)]
        out: PathBuf,
        /// NAME:TAG
        #[arg(long)]
        tag: String,
        #[arg(required = true)]
        binaries: Vec<String>,
    },
    /// Write the same file tree into a folder, for a Dockerfile: FROM scratch, COPY DIR /
    Rootfs {
        dir: PathBuf,
        #[arg(long, default_value = "target/release")]
        bin_dir: PathBuf,
        #[arg(required = true)]
        binaries: Vec<String>,
    },
}

fn component_flag(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .filter(|(component, flag)| !component.is_empty() && flag.starts_with("--"))
        .map(|(component, flag)| (component.to_owned(), flag.to_owned()))
        .ok_or_else(|| "expected COMPONENT=--FLAG=VALUE".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_component_flag_keeps_its_own_equals_sign() {
        assert_eq!(component_flag("kubelet=--v=4").unwrap(), ("kubelet".into(), "--v=4".into()));
        assert!(component_flag("kubelet").is_err());
    }
}
