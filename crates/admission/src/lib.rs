//! The admission webhooks, and the certificates that they are served with.
//!
//! A webhook is a [`review::Handler`]: one file, one line in [`handlers`], and its entry in the chart's configuration. It
//! decides from the request alone. The operator makes its certificates itself and needs no other tool for them.

pub mod certificates;
pub mod daemonsets;
pub mod metrics;
pub mod review;
pub mod serve;

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Parser;
use spillway_operator::args::CommonArgs;
use spillway_operator::client::{self, Cluster};
use spillway_operator::health::Readiness;
use spillway_operator::metrics::Metrics;
use spillway_operator::server;
use spillway_operator::supervise::Supervisor;
use spillway_operator::watches::Watches;

use certificates::{Current, Keeper, Names};
use metrics::ReviewMetrics;
use review::Handler;

/// The Service and the MutatingWebhookConfiguration, as the chart names them.
pub const NAME: &str = "spillway-admission";
/// The Secret of the authority that signs the certificates.
pub const SECRET: &str = "spillway-admission-ca";

/// Serves the admission webhooks
#[derive(Clone, Debug, Parser)]
#[command(name = "admission", version)]
pub struct Args {
    #[command(flatten)]
    pub common: CommonArgs,

    /// Where the webhooks are served, over TLS
    #[arg(long, default_value = "0.0.0.0:9443", env = "SPILLWAY_WEBHOOK_ADDRESS")]
    pub webhook_address: SocketAddr,

    /// The namespace of the installation: home of the Service and of the Secret with the authority
    #[arg(long, env = "POD_NAMESPACE")]
    pub namespace: String,
}

/// Every webhook.
pub fn handlers() -> Vec<Arc<dyn Handler>> {
    vec![Arc::new(daemonsets::KeepOffVirtualNodes)]
}

/// Runs until a signal, or until something ends that never should.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let (metrics, readiness) = (Metrics::default(), Readiness::default());
    let config = client::config(args.common.kubeconfig.as_deref()).await?;
    let cluster = Cluster::local(&config, &metrics)?;
    let mut supervisor = Supervisor::new()?;
    let stop = supervisor.stop();
    supervisor.spawn(
        "metrics and probes",
        server::run(args.common.metrics_address, metrics.clone(), readiness.clone(), stop.clone()),
    );

    let current = Arc::new(Current::default());
    let router = review::router(handlers(), &ReviewMetrics::new(&metrics)?);
    let tls = serve::tls(current.clone())?;
    supervisor.spawn("webhooks", serve::run(args.webhook_address, tls, router, stop.clone()));

    let names = Names {
        namespace: args.namespace,
        secret: SECRET.to_owned(),
        service: NAME.to_owned(),
        configuration: NAME.to_owned(),
    };
    let watches = Watches { cluster: &cluster, metrics: &metrics, readiness: &readiness };
    let keeper = Keeper::watch(&watches, &mut supervisor, names, current)?;
    let reconciles = metrics.controller("certificates");
    supervisor.spawn("certificates", async move {
        keeper.run(reconciles, stop).await;
        Ok(())
    });
    supervisor.run().await
}
