//! Where a unit of work takes place: one cluster, and one of its nodes.

use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

use crate::command::{command, run, run_with_input};
use crate::plan::{Cluster, Node};
use crate::spec::Spec;
use crate::state::Home;
use crate::{binaries, kubeconfig};

#[derive(Clone, Copy)]
pub struct Site<'a> {
    pub home: &'a Home,
    pub spec: &'a Spec,
    pub cluster: &'a Cluster,
    /// The node itself, or the first one for what belongs to the cluster.
    pub node: &'a Node,
}

impl Site<'_> {
    pub fn pki(&self, file: &str) -> String {
        self.home.pki(&self.cluster.name).join(file).display().to_string()
    }

    /// A folder below the cluster's.
    pub fn cluster_path(&self, name: &str) -> PathBuf {
        self.home.cluster_dir(&self.cluster.name).join(name)
    }

    /// A folder below the node's.
    pub fn node_path(&self, name: &str) -> PathBuf {
        self.home.node_dir(&self.node.name).join(name)
    }

    pub fn kubeconfig_of(&self, client: &str) -> Result<String> {
        Ok(kubeconfig::of_client(self.home, self.cluster, client)?.display().to_string())
    }

    /// `kubectl` as the cluster's administrator.
    pub fn kubectl(&self) -> Result<Command> {
        kubectl(self.home, self.cluster)
    }

    pub fn apply(&self, manifest: &str) -> Result<()> {
        let mut apply = self.kubectl()?;
        apply.args(["apply", "--server-side", "--force-conflicts", "--field-manager=testbed", "-f", "-"]);
        run_with_input(&mut apply, manifest)
            .with_context(|| format!("cannot create the testbed's objects in {}", self.cluster.name))?;
        Ok(())
    }

    /// One value of an object, empty when it is absent.
    pub fn get(&self, object: &[&str], jsonpath: &str) -> Result<String> {
        run(self.kubectl()?.arg("get").args(object).args(["--ignore-not-found", "-o", &format!("jsonpath={jsonpath}")]))
    }
}

/// `kubectl` for a cluster, with a cache of its own: another testbed's clusters had the same addresses.
pub fn kubectl(home: &Home, cluster: &Cluster) -> Result<Command> {
    let mut kubectl = command(binaries::path("kubectl")?);
    kubectl.env("KUBECONFIG", home.kubeconfig(&cluster.name));
    kubectl.env("KUBECACHEDIR", home.cluster_dir(&cluster.name).join("kubectl-cache"));
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        kubectl.env_remove(proxy);
    }
    Ok(kubectl)
}
