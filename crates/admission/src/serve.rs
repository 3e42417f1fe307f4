//! HTTPS with a certificate that can change while it is served.
//!
//! HTTP/1.1 only: API servers speak nothing else to webhooks, so that requests spread over replicas.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// An API server keeps idle connections for 90 s. Were they closed here first, a request on its way would be lost with one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(150);
/// After the signal to end: by then no Service sends new connections here.
const LINGER: Duration = Duration::from_secs(5);
const DRAIN: Duration = Duration::from_secs(5);
const CONNECTIONS: usize = 512;

pub fn tls(certificates: Arc<dyn ResolvesServerCert>) -> anyhow::Result<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("the TLS settings are not usable")?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Serves until `stop`, and a little longer.
pub async fn run(
    address: SocketAddr,
    tls: ServerConfig,
    router: Router,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for webhooks (see --webhook-address)"))?;
    serve(listener, tls, router, stop).await;
    Ok(())
}

async fn serve(listener: TcpListener, tls: ServerConfig, router: Router, stop: CancellationToken) {
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let end = async {
        stop.cancelled().await;
        tokio::time::sleep(LINGER).await;
    };
    tokio::pin!(end);
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut end => break,
            next = next => next,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (acceptor, watcher, router) = (acceptor.clone(), connections.watcher(), router.clone());
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection(stream, acceptor, watcher, router).await {
                tracing::debug!(error = format!("{error:#}"), "a connection ended early");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, connections.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and are dropped");
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, watcher: Watcher, router: Router) -> anyhow::Result<()> {
    let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream))
        .await
        .context("the TLS handshake took too long")?
        .context("the TLS handshake failed")?;
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    watcher.watch(served).await.context("the connection broke")
}

#[cfg(test)]
mod tests;
