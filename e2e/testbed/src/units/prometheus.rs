//! A Prometheus per cluster that finds by itself what to scrape: every pod annotated `prometheus.io/scrape`.

use anyhow::Result;

use super::probe::Probe;
use super::{Launch, Site};

/// Where Prometheus listens on the first node.
pub const PORT: u16 = 9090;
const TEMPLATE: &str = include_str!("../../manifests/prometheus.yaml");

pub fn prometheus(site: &Site<'_>) -> Result<Launch> {
    let config = site.cluster_path("prometheus.yaml");
    let mut launch = Launch::with_args([
        format!("--config.file={}", config.display()),
        format!("--storage.tsdb.path={}", site.cluster_path("prometheus").display()),
        "--storage.tsdb.retention.time=1d".into(),
        format!("--web.listen-address={}:{PORT}", site.cluster.api_address),
        "--log.level=warn".into(),
    ]);
    let text = TEMPLATE
        .replace("@KUBECONFIG@", &site.kubeconfig_of("prometheus")?)
        .replace("@API@", &site.cluster.api_address.to_string())
        .replace("@CLUSTER@", &site.cluster.name)
        .replace("@PKI@", &site.home.pki(&site.cluster.name).display().to_string());
    launch.files = vec![(config, text)];
    Ok(launch)
}

pub fn prometheus_ready(site: &Site<'_>) -> Probe {
    Probe::http(format!("http://{}:{PORT}/-/ready", site.cluster.api_address))
}
