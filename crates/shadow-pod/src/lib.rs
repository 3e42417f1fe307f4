//! Keeps one Pod alive per ShadowPod, on the provider and without asking the consumer.
//!
//! It never touches a pod that is not owned by a ShadowPod, and never runs again what has finished.

pub mod controller;
pub mod digest;
pub mod forge;
pub mod outcome;
pub mod plan;

use std::sync::Arc;

use clap::Parser;
use kube::api::Api;
use kube::runtime::watcher;
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
use spillway_operator::{Index, Queue, server};

use controller::Controller;

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

    let queue = Arc::new(Queue::default());
    let (shadows, pods) = (Arc::new(Index::default()), Arc::new(Index::default()));
    let watches = Watches { cluster: &cluster, metrics: &metrics, readiness: &readiness };
    let (told, heard) = (queue.clone(), queue.clone());
    let ours = watcher::Config::default().labels(&format!("{}={}", label::MANAGED_BY, label::MANAGED_BY_SHADOW_POD));
    let lists = [
        watches.start::<ShadowPod, _>(
            &mut supervisor,
            "shadowpods",
            watcher::Config::default(),
            Api::all,
            &shadows,
            |shadow| Some(digest::shadow(shadow)),
            move |key| told.add(key),
        )?,
        watches.start(&mut supervisor, "pods", ours, Api::all, &pods, digest::pod, move |key| heard.add(key))?,
    ];

    let (lease_client, _) = Cluster::separate(&config, "local", &metrics)?;
    let election =
        Election::new(lease_client, &args.namespace, "spillway-shadow-pod", args.common.identity(), metrics.clone());
    let controller = Arc::new(Controller { client: cluster.client.clone(), shadows, pods });
    let reconciles = metrics.controller("shadow-pod");
    let stop_work = stop.clone();
    // A replica that waits for the lease keeps its indexes warm, so that it can take over at once.
    supervisor.spawn(
        "controller",
        election.lead(stop.clone(), async move {
            if health::all_opened(&lists, &stop_work).await {
                workers::run(queue, Limits::default(), reconciles, stop_work, move |key| {
                    let controller = controller.clone();
                    async move { controller.reconcile(key).await }
                })
                .await;
            }
        }),
    );
    supervisor.run().await
}
