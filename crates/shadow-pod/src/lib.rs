//! Keeps one Pod alive per ShadowPod, on the provider and without asking the consumer.
//!
//! It never touches a pod that no ShadowPod owns or left behind, and never runs again what has finished.

pub mod controller;
pub mod digest;
pub mod disruption;
pub mod forge;
mod leisure;
mod lives;
pub mod outcome;
pub mod plan;
pub mod uninstall;
pub mod update;

use std::sync::Arc;

use clap::{Parser, ValueEnum};
use kube::api::Api;
use kube::runtime::watcher;
use spillway_api::RawPod;
use spillway_api::k8s::Node;
use spillway_api::offloading::ShadowPod;
use spillway_api::well_known::label;
use spillway_operator::args::CommonArgs;
use spillway_operator::client::{self, Cluster};
use spillway_operator::health::{self, Readiness};
use spillway_operator::leader::Election;
use spillway_operator::metrics::Metrics;
use spillway_operator::supervise::Supervisor;
use spillway_operator::watches::Watches;
use spillway_operator::workers::{self, Limits};
use spillway_operator::{Index, ObjectKey, Queue, server};

use controller::Controller;
use digest::{NodeDigest, PodDigest};

/// The requests to the API server of its own cluster that may be in flight: all its work is there.
const IN_FLIGHT: usize = 200;

/// Runs on a provider: for every ShadowPod that a consumer created, keeps the pod it describes running here, also while
/// the consumer cannot be reached.
#[derive(Clone, Debug, Parser)]
#[command(name = "shadow-pod", version)]
pub struct Args {
    #[command(flatten)]
    pub common: CommonArgs,

    /// The namespace of the lease by which one of several replicas is elected
    #[arg(long, env = "POD_NAMESPACE", default_value = "liqo")]
    pub namespace: String,

    /// What becomes of a pod that is being deleted on a node that is not ready: it is waited for until Kubernetes itself
    /// gives the pod up (its node is back, deleted, or tainted as out of service), or its object is removed and another pod
    /// made at once, although the old one may still run where nobody can see it
    #[arg(long, default_value = "wait")]
    pub on_node_lost: OnNodeLost,

    /// Check that nothing would be left behind if this operator were removed from its cluster, and end
    #[arg(long)]
    pub uninstall_check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnNodeLost {
    Wait,
    Force,
}

pub async fn run(args: Args) -> anyhow::Result<()> {
    let (metrics, readiness) = (Metrics::default(), Readiness::default());
    let config = client::config(args.common.kubeconfig.as_deref()).await?;
    let cluster = Cluster::new(&config, "local", IN_FLIGHT, &metrics)?;
    let mut supervisor = Supervisor::new()?;
    let stop = supervisor.stop();
    supervisor.spawn(
        "metrics server",
        server::run(args.common.metrics_address, metrics.clone(), readiness.clone(), stop.clone()),
    );

    let (lease_client, _) = Cluster::separate(&config, "local", &metrics)?;
    let election =
        Election::new(lease_client, &args.namespace, "spillway-shadow-pod", args.common.identity(), metrics.clone());
    let Some(lead) = supervisor.during(election.win(&stop)).await?.flatten() else { return supervisor.run().await };

    let queue = Arc::new(Queue::default());
    let (shadows, pods) = (Arc::new(Index::default()), Arc::new(Index::<PodDigest>::keeping_last(|_| true)));
    let watches = Watches { cluster: &cluster, metrics: &metrics, readiness: &readiness };
    let (told, heard, known) = (queue.clone(), queue.clone(), pods.clone());
    let digest_pod = move |pod: RawPod| {
        let before = known.get(&ObjectKey::of(&pod));
        digest::pod(pod, before.as_deref())
    };
    let ours = watcher::Config::default().labels(&format!("{}={}", label::MANAGED_BY, label::MANAGED_BY_SHADOW_POD));
    let mut lists = vec![
        watches.start::<ShadowPod, _>(
            &mut supervisor,
            "shadowpods",
            watcher::Config::default(),
            Api::all,
            &shadows,
            |shadow| Some(digest::shadow(shadow)),
            move |key| told.add(key),
        )?,
        watches.start(&mut supervisor, "pods", ours, Api::all, &pods, digest_pod, move |key| heard.add(key))?,
    ];
    let nodes = Arc::new(Index::<NodeDigest>::default());
    let force = args.on_node_lost == OnNodeLost::Force;
    if force {
        let (all, lost, queue, pods) = (watcher::Config::default(), nodes.clone(), queue.clone(), pods.clone());
        let look_at_its_pods = move |node: ObjectKey| {
            if lost.get(&node).is_some_and(|node| node.is_lost) {
                deleted_on(&node, &pods).into_iter().for_each(|key| queue.add(key));
            }
        };
        let digest_node = |node: Node| Some(digest::node(&node));
        lists.push(watches.start(&mut supervisor, "nodes", all, Api::all, &nodes, digest_node, look_at_its_pods)?);
    }

    let controller = Arc::new(Controller::new(cluster.client.clone(), shadows, pods, force.then_some(nodes)));
    let reconciles = metrics.controller("shadow-pod");
    supervisor.spawn(
        "controller",
        lead.work(async move {
            if health::all_opened(&lists, &stop).await {
                workers::run(queue, Limits::default(), reconciles, stop, move |key| {
                    let controller = controller.clone();
                    async move { controller.reconcile(key).await }
                })
                .await;
            }
        }),
    );
    supervisor.run().await
}

/// The pods that are being deleted on a node.
fn deleted_on(node: &ObjectKey, pods: &Index<PodDigest>) -> Vec<ObjectKey> {
    let is_deleted_there = |pod: &PodDigest| pod.deletion.is_some() && pod.node.as_deref() == Some(&*node.name);
    pods.keys().into_iter().filter(|key| pods.get(key).is_some_and(|pod| is_deleted_there(&pod))).collect()
}
