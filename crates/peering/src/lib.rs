//! The peering operator, on consumers and providers.
//!
//! Everywhere it keeps the cluster's identity ([`cluster_id`]); on a consumer it also keeps a virtual-kubelet running
//! for every VirtualNode ([`virtual_node`]). It never talks to another cluster and never reads a Secret.

pub mod cluster_id;
pub mod virtual_node;
mod watches;

use clap::{Parser, ValueEnum};
use spillway_api::core::ClusterId;
use spillway_api::well_known::{field_manager, name};
use spillway_operator::ObjectKey;
use spillway_operator::args::CommonArgs;
use spillway_operator::client::{self, Cluster};
use spillway_operator::health::{self, Readiness};
use spillway_operator::leader::Election;
use spillway_operator::metrics::Metrics;
use spillway_operator::server;
use spillway_operator::supervise::Supervisor;
use spillway_operator::watches::Watches;

use crate::watches::Watching;

/// What this cluster is to its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Its pods run elsewhere: it has virtual nodes
    Consumer,
    /// It runs the pods of others
    Provider,
    Both,
}

impl Role {
    fn consumes(self) -> bool {
        matches!(self, Role::Consumer | Role::Both)
    }
}

/// Keeps the identity of this cluster and a virtual-kubelet for every VirtualNode
#[derive(Clone, Debug, Parser)]
#[command(name = "peering", version)]
pub struct Args {
    #[command(flatten)]
    pub common: CommonArgs,

    /// The namespace of the installation: home of the lease and of the cluster's ID
    #[arg(long, env = "POD_NAMESPACE")]
    pub namespace: String,

    /// What this cluster is to its peers
    #[arg(long, value_enum, default_value = "both")]
    pub role: Role,

    /// The ID of this cluster: a DNS label of at most 63 characters, different from that of every peer. Without it one
    /// is derived from the UID of the namespace kube-system. An ID that is in use is never changed
    #[arg(long, value_parser = cluster_id::parse)]
    pub cluster_id: Option<ClusterId>,

    /// The VkOptionsTemplate of VirtualNodes that name none, as NAMESPACE/NAME [default: virtual-kubelet-default in the
    /// namespace of the installation]
    #[arg(long, value_parser = parse_template)]
    pub vk_options_template: Option<ObjectKey>,
}

fn parse_template(text: &str) -> Result<ObjectKey, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(ObjectKey::new(namespace, name))
        }
        _ => Err("must be NAMESPACE/NAME, such as spillway/virtual-kubelet-default".to_owned()),
    }
}

/// Runs until a signal, or until something ends that never should.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let metrics = Metrics::default();
    let readiness = Readiness::default();
    let config = client::config(args.common.kubeconfig.as_deref()).await?;
    let cluster = Cluster::local(&config, &metrics)?;
    let (lease_client, _connections) = Cluster::separate(&config, "local", &metrics)?;

    let mut supervisor = Supervisor::new()?;
    let stop = supervisor.stop();
    supervisor.spawn(
        "metrics and probes",
        server::run(args.common.metrics_address, metrics.clone(), readiness.clone(), stop.clone()),
    );

    // A wrong --cluster-id is told at once, also by an instance that waits for the lease of a working one.
    let identity = cluster_id::Identity::new(cluster.client.clone(), &args.namespace, args.cluster_id.clone());
    identity.refuse_contradiction().await?;
    let election =
        Election::new(lease_client, &args.namespace, field_manager::PEERING, args.common.identity(), metrics.clone());
    let Some(lead) = supervisor.during(election.win(&stop)).await?.flatten() else { return supervisor.run().await };

    let mut watching = Watching {
        watches: Watches { cluster: &cluster, metrics: &metrics, readiness: &readiness },
        supervisor: &mut supervisor,
        synced: Vec::new(),
    };
    let identity = identity.watch(&mut watching)?;
    let virtual_nodes = if args.role.consumes() {
        let template = args
            .vk_options_template
            .clone()
            .unwrap_or_else(|| ObjectKey::new(args.namespace.as_str(), name::DEFAULT_VK_OPTIONS_TEMPLATE));
        Some(virtual_node::Controller::watch(cluster.client.clone(), identity.known(), template, &mut watching)?)
    } else {
        None
    };
    let synced = watching.synced;

    let ended = stop;
    let work = async move {
        if !health::all_opened(&synced, &ended).await {
            return;
        }
        let virtual_nodes = async {
            if let Some(controller) = virtual_nodes {
                controller.run(metrics.controller("virtual-nodes"), ended.clone()).await;
            }
        };
        tokio::join!(identity.run(metrics.controller("cluster-id"), ended.clone()), virtual_nodes);
    };
    supervisor.spawn("leader", lead.work(work));
    supervisor.run().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from(["peering", "--namespace=spillway"].iter().chain(flags))
    }

    #[test]
    fn flags_are_checked_before_anything_runs() {
        let args = parse(&["--role=consumer", "--vk-options-template=a/b", "--cluster-id=home"]).unwrap();
        assert!(args.role.consumes());
        assert_eq!(args.vk_options_template, Some(ObjectKey::new("a", "b")));
        assert!(!parse(&["--role=provider"]).unwrap().role.consumes());
        assert!(parse(&[]).unwrap().role.consumes());
        for (flag, said) in [
            ("--vk-options-template=b", "NAMESPACE/NAME"),
            ("--vk-options-template=a/b/c", "NAMESPACE/NAME"),
            ("--cluster-id=Not.A.Label", "DNS label"),
            ("--role=none", "consumer"),
        ] {
            let error = parse(&[flag]).unwrap_err().to_string();
            assert!(error.contains(said), "{flag}: {error}");
        }
    }
}
