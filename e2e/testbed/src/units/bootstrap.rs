//! What must be in a cluster before tests use it.

use anyhow::{Result, bail};
use serde_json::json;
use std::time::{Duration, Instant};

use super::Site;
use crate::command::run;
use crate::progress::Step;

const FIRST_OBJECTS: &str = include_str!("../../manifests/first-objects.yaml");

pub fn first_objects(site: &Site<'_>, step: &Step) -> Result<()> {
    step.waiting("roles and the DNS service to be created");
    site.apply(
        &FIRST_OBJECTS
            .replace("@DNS@", &site.cluster.dns_address().to_string())
            .replace("@SERVER@", &site.cluster.api_address.to_string()),
    )
}

/// Until the namespace `default` has its service account, the API server refuses pods there.
pub fn service_accounts(site: &Site<'_>, step: &Step) -> Result<()> {
    until(step, "service account default/default", || {
        Ok(!site.get(&["serviceaccount", "default", "-n", "default"], "{.metadata.uid}")?.is_empty())
    })
}

/// The node has its pod CIDR of the plan, and is Ready.
pub fn node_ready(site: &Site<'_>, step: &Step) -> Result<()> {
    let name = site.node.name.as_str();
    until(step, &format!("node {name} to register"), || Ok(!site.get(&["node", name], "{.metadata.uid}")?.is_empty()))?;
    if site.get(&["node", name], "{.spec.podCIDR}")?.is_empty() {
        let cidr = site.node.pod_cidr;
        let patch = json!({ "spec": { "podCIDR": cidr, "podCIDRs": [cidr] } }).to_string();
        run(site.kubectl()?.args(["patch", "node", name, "--type=merge", "-p", &patch]))?;
    }
    until(step, &format!("node {name} to be Ready"), || {
        // The taint goes a moment after the condition came; others are somebody's intent.
        let ready = r#"{.status.conditions[?(@.type=="Ready")].status} {.spec.taints[*].key}"#;
        let state = site.get(&["node", name], ready)?;
        Ok(state.starts_with("True") && !state.contains("node.kubernetes.io/not-ready"))
    })
}

/// Checks again and again, for two minutes.
pub fn until(step: &Step, what: &str, mut check: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut last_error = None;
    while Instant::now() < deadline {
        step.waiting(what);
        match check() {
            Ok(true) => return Ok(()),
            Ok(false) => last_error = None,
            Err(error) => last_error = Some(error),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    match last_error {
        Some(error) => Err(error.context(format!("waited two minutes for {what}"))),
        None => bail!("waited two minutes for {what}"),
    }
}
