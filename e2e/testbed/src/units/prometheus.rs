//! A Prometheus per cluster that finds by itself what to scrape: every pod annotated `prometheus.io/scrape`.

use anyhow::Result;
use std::path::PathBuf;

use super::probe::Probe;
use super::{Launch, Site};
use crate::binaries;

/// Where Prometheus listens on the first node.
pub const PORT: u16 = 9090;
const TEMPLATE: &str = include_str!("../../manifests/prometheus.yaml");
const DISCOVERY: &str = include_str!("../../manifests/discover-pods.sh");
const DISCOVERY_TEMPLATE: &str = include_str!("../../manifests/discover-pods.gotemplate");

/// Debian's Prometheus cannot watch Kubernetes itself; this does, and writes files that Prometheus watches.
pub fn discovery(site: &Site<'_>) -> Result<Launch> {
    let (script, template) = (site.cluster_path("discover-pods.sh"), site.cluster_path("discover-pods.gotemplate"));
    let mut launch = Launch::with_args([
        script.display().to_string(),
        binaries::path("kubectl")?.display().to_string(),
        site.kubeconfig_of("prometheus")?,
        template.display().to_string(),
        targets(site).display().to_string(),
    ]);
    launch.files = vec![(script, DISCOVERY.to_owned()), (template, DISCOVERY_TEMPLATE.to_owned())];
    Ok(launch)
}

pub fn discovery_ready(site: &Site<'_>) -> Probe {
    Probe::Path(targets(site))
}

fn targets(site: &Site<'_>) -> PathBuf {
    site.cluster_path("scrape-targets")
}

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
        .replace("@TARGETS@", &targets(site).display().to_string())
        .replace("@API@", &site.cluster.api_address.to_string())
        .replace("@CLUSTER@", &site.cluster.name)
        .replace("@PKI@", &site.home.pki(&site.cluster.name).display().to_string());
    launch.files = vec![(config, text)];
    Ok(launch)
}

pub fn prometheus_ready(site: &Site<'_>) -> Probe {
    Probe::http(format!("http://{}:{PORT}/-/ready", site.cluster.api_address))
}
