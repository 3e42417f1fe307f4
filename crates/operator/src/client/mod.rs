//! Clients to a cluster. Writes go over a pool of HTTP/1.1 connections with a bound on requests in flight and no rate
//! limit; watches go over HTTP/2 connections of their own, because an API server allows 100 streams on each and a
//! hyper pool keeps one connection per host (see [`WatchPool`]). Every connection can be closed from outside, so that
//! one that fell silent during a cut is dialled anew when the peer is back.

mod connections;
mod observe;
mod watch_pool;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use hyper_util::client::legacy::Builder;
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, Client, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tower::limit::ConcurrencyLimitLayer;
use tower::{BoxError, ServiceBuilder};

pub use connections::Connections;
pub use watch_pool::{WATCHES_PER_CONNECTION, WatchLease, WatchPool};

use crate::metrics::Metrics;
use connections::TrackedConnector;
use observe::ObserveLayer;

/// An answer that has not begun by then counts as lost. Above the API server's own limit for admission webhooks.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(35);

/// How many requests may be in flight, by cluster: enough to fill a link, below what API priority and fairness queues.
pub const IN_FLIGHT_LOCAL: usize = 32;
pub const IN_FLIGHT_REMOTE: usize = 200;

/// Everything an operator needs to talk to one cluster.
#[derive(Clone)]
pub struct Cluster {
    /// For writes and single reads.
    pub client: Client,
    pub watches: WatchPool,
    pub connections: Connections,
    /// "local" or "remote".
    pub role: &'static str,
}

impl Cluster {
    pub fn new(config: &Config, role: &'static str, in_flight: usize, metrics: &Metrics) -> anyhow::Result<Self> {
        let connections = Connections::default();
        let stack = Stack { config: config.clone(), connections: connections.clone(), role, metrics: metrics.clone() };
        let client = stack.http1(in_flight)?;
        Ok(Self { client, watches: WatchPool::new(stack), connections, role })
    }

    pub fn local(config: &Config, metrics: &Metrics) -> anyhow::Result<Self> {
        Self::new(config, "local", IN_FLIGHT_LOCAL, metrics)
    }

    pub fn remote(config: &Config, metrics: &Metrics) -> anyhow::Result<Self> {
        Self::new(config, "remote", IN_FLIGHT_REMOTE, metrics)
    }

    /// A client with connections of its own, for what must not queue behind bulk writes: leases, heartbeats, probes.
    pub fn separate(config: &Config, role: &'static str, metrics: &Metrics) -> anyhow::Result<(Client, Connections)> {
        let cluster = Self::new(config, role, 4, metrics)?;
        Ok((cluster.client, cluster.connections))
    }
}

/// The configuration of the cluster that this process runs in, or of the given kubeconfig file.
pub async fn config(kubeconfig: Option<&Path>) -> anyhow::Result<Config> {
    let Some(path) = kubeconfig else {
        return Config::incluster()
            .context("not running in a pod with a service account; give a kubeconfig with --kubeconfig");
    };
    let file = Kubeconfig::read_from(path).map_err(|error| {
        // The rest of a parser's message quotes the file, which is secret.
        let text = format!("{:#}", anyhow::Error::from(error));
        let first = text.lines().next().unwrap_or_default();
        anyhow::anyhow!("cannot read the kubeconfig {}: {first}", path.display())
    })?;
    Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("the kubeconfig {} is not usable", path.display()))
}

/// What all clients to one cluster share.
#[derive(Clone)]
struct Stack {
    config: Config,
    connections: Connections,
    role: &'static str,
    metrics: Metrics,
}

impl Stack {
    fn http1(&self, in_flight: usize) -> anyhow::Result<Client> {
        let mut builder = HyperClient::builder(TokioExecutor::new());
        builder.pool_idle_timeout(Duration::from_secs(60)).pool_max_idle_per_host(in_flight);
        self.client(&mut builder, Protocol::Http1, Some(in_flight))
    }

    fn http2(&self) -> anyhow::Result<Client> {
        let mut builder = HyperClient::builder(TokioExecutor::new());
        builder
            .http2_only(true)
            .timer(TokioTimer::new())
            .http2_keep_alive_interval(Duration::from_secs(10))
            .http2_keep_alive_timeout(Duration::from_secs(20))
            .http2_keep_alive_while_idle(true)
            .http2_initial_stream_window_size(1 << 20)
            .http2_initial_connection_window_size(16 << 20);
        self.client(&mut builder, Protocol::Http2, None)
    }

    fn client(&self, builder: &mut Builder, protocol: Protocol, in_flight: Option<usize>) -> anyhow::Result<Client> {
        // kube installs a default only for one of its two providers; the other must be asked for.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let tls = self.config.rustls_client_config().context("the cluster's TLS settings are not usable")?;
        let https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let tracked = TrackedConnector::new(self.connections.clone());
        let connector = match protocol {
            Protocol::Http1 => https.enable_http1().wrap_connector(tracked),
            Protocol::Http2 => https.enable_http2().wrap_connector(tracked),
        };
        let hyper: HyperClient<_, Body> = builder.pool_timer(TokioTimer::new()).build(connector);
        let service = ServiceBuilder::new()
            .layer(self.config.base_uri_layer())
            .option_layer(self.config.auth_layer().context("the cluster's credentials are not usable")?)
            .layer(ObserveLayer::new(self.role, self.metrics.clone(), REQUEST_TIMEOUT))
            .option_layer(in_flight.map(ConcurrencyLimitLayer::new))
            .map_err(BoxError::from)
            .service(hyper);
        Ok(Client::new(service, self.config.default_namespace.clone()))
    }
}

enum Protocol {
    Http1,
    Http2,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_that_is_none_is_not_quoted() {
        let path = std::env::temp_dir().join(format!("spillway-kubeconfig-{}", std::process::id()));
        std::fs::write(&path, "token: [hush\n").unwrap();
        let error = format!("{:#}", config(Some(&path)).await.unwrap_err());
        std::fs::remove_file(&path).unwrap();
        assert!(error.contains("cannot read the kubeconfig") && !error.contains("hush"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
