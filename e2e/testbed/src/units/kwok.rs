//! Simulated nodes: kwok reports them ready and their pods running, without running anything.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::bootstrap::until;
use super::probe::Probe;
use super::{Launch, Site};
use crate::command::{run, run_with_input};
use crate::progress::Step;

const PORT: u16 = 10247;
const STAGES: &str = include_str!("../../manifests/kwok-stages.yaml");

pub fn kwok(site: &Site<'_>) -> Result<Launch> {
    let stages = site.cluster_path("kwok-stages.yaml");
    let mut launch = Launch::with_args([
        format!("--config={}", stages.display()),
        format!("--kubeconfig={}", site.kubeconfig_of("kwok")?),
        "--manage-nodes-with-label-selector=type=kwok".into(),
        format!("--cidr={}", site.cluster.kwok_pod_cidr),
        format!("--node-ip={}", site.cluster.api_address),
        format!("--node-port={PORT}"),
        format!("--tls-cert-file={}", site.pki("kwok-serving.crt")),
        format!("--tls-private-key-file={}", site.pki("kwok-serving.key")),
        "--node-lease-duration-seconds=40".into(),
    ]);
    launch.files = vec![(stages, STAGES.to_owned())];
    Ok(launch)
}

pub fn kwok_ready(_: &Site<'_>) -> Probe {
    Probe::http(format!("https://127.0.0.1:{PORT}/healthz"))
}

/// Creates the nodes that are missing, and waits until all are Ready.
pub fn nodes(site: &Site<'_>, step: &Step) -> Result<()> {
    let existing = run(site.kubectl()?.args(["get", "nodes", "-l", "type=kwok", "-o", "name"]))?;
    let missing: Vec<Value> = (0..site.spec.kwok_nodes)
        .map(|index| format!("{}-kwok-{index}", site.cluster.name))
        .filter(|name| !existing.lines().any(|line| line == format!("node/{name}")))
        .map(|name| node(site, &name))
        .collect();
    if !missing.is_empty() {
        step.waiting(&format!("{} nodes to be created", missing.len()));
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": missing });
        let mut create = site.kubectl()?;
        create.args(["create", "-f", "-"]);
        // The list may be megabytes: an error need not repeat it.
        run_with_input(&mut create, &list.to_string())
            .map_err(|error| anyhow::anyhow!("{}", error.root_cause()))
            .context("cannot create the simulated nodes")?;
    }
    until(step, "kwok to report the nodes Ready", || {
        let ready = r#"{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}"#;
        let states = site.get(&["nodes", "-l", "type=kwok"], ready)?;
        Ok(states.lines().filter(|state| *state == "True").count() >= site.spec.kwok_nodes as usize)
    })
}

fn node(site: &Site<'_>, name: &str) -> Value {
    // Beside real nodes, only pods that say so go to simulated ones.
    let taints = if site.spec.has_kubelets() {
        json!([{ "key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule" }])
    } else {
        json!([])
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "type": "kwok",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
            },
            "annotations": { "kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0" },
        },
        "spec": { "taints": taints },
        "status": {
            "capacity": { "cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti" },
            "allocatable": { "cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti" },
        },
    })
}
