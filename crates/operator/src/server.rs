//! `/metrics`, `/livez` and `/readyz` over plain HTTP.

use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::health::Readiness;
use crate::metrics::Metrics;

/// Serves until `stop`.
pub async fn run(
    address: SocketAddr,
    metrics: Metrics,
    readiness: Readiness,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for metrics and probes (see --metrics-address)"))?;
    serve(listener, metrics, readiness, stop).await
}

async fn serve(
    listener: TcpListener,
    metrics: Metrics,
    readiness: Readiness,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let router = Router::new()
        .route("/metrics", get(move || std::future::ready(render(&metrics))))
        .route("/livez", get(|| std::future::ready("ok\n")))
        .route("/readyz", get(move || std::future::ready(ready(&readiness))));
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
        .context("the metrics server failed")
}

fn render(metrics: &Metrics) -> impl IntoResponse + use<> {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics.render())
}

fn ready(readiness: &Readiness) -> (StatusCode, String) {
    let missing = readiness.missing();
    if missing.is_empty() {
        (StatusCode::OK, "ok\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for: {}\n", missing.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn fetch(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn serves_metrics_liveness_and_readiness() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (metrics, readiness, stop) = (Metrics::default(), Readiness::default(), CancellationToken::new());
        let gate = readiness.gate("list of pods");
        let server = tokio::spawn(serve(listener, metrics.clone(), readiness, stop.clone()));

        assert!(fetch(address, "/livez").await.starts_with("HTTP/1.1 200"));
        let unready = fetch(address, "/readyz").await;
        assert!(unready.starts_with("HTTP/1.1 503") && unready.contains("waiting for: list of pods"), "{unready}");
        gate.open();
        assert!(fetch(address, "/readyz").await.starts_with("HTTP/1.1 200"));
        metrics.leader(true);
        assert!(fetch(address, "/metrics").await.contains("spillway_leader 1"));

        stop.cancel();
        server.await.unwrap().unwrap();
    }
}
