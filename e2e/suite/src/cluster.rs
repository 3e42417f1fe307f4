//! One side of a pair of clusters, as a test sees it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use spillway_testbed::Testbed;

/// A cluster of the testbed with a client of its own. Clients are never shared between tests: each test has its runtime.
#[derive(Clone)]
pub struct Side {
    pub name: String,
    pub client: Client,
    pub kubeconfig: PathBuf,
    pub api_url: String,
}

impl Side {
    pub async fn connect(testbed: &Testbed, name: &str) -> Result<Self> {
        let cluster = testbed.cluster(name)?;
        let config = config(&cluster.kubeconfig_path).await?;
        let client = Client::try_from(config).with_context(|| format!("no client for cluster {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            client,
            kubeconfig: cluster.kubeconfig_path.clone(),
            api_url: cluster.api_url.clone(),
        })
    }
}

/// The client configuration in a kubeconfig file.
pub async fn config(path: &std::path::Path) -> Result<Config> {
    // Two providers may be compiled in; rustls wants to be told which.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
}
