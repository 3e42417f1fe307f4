//! VirtualNode → Node. Pure: the clock is a parameter.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::api::ObjectMeta;
use serde_json::Value;
use spillway_api::k8s::{Node, NodeSpec, NodeStatus, Taint};
use spillway_api::node::NodeKind;
use spillway_api::offloading::VirtualNodeSpec;
use spillway_api::well_known::{annotation, label, taint};

use super::applied;
use super::health::Health;
use super::status::status;

/// What the node looks like from outside, besides what the VirtualNode says.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub name: String,
    pub foreign_cluster_id: String,
    pub node_ip: Option<String>,
    /// The version of the remote API server, which the node shows as its kubelet's; empty while it is not known.
    pub version: String,
    pub extra_labels: BTreeMap<String, String>,
    pub extra_annotations: BTreeMap<String, String>,
}

/// Whether a Node is a virtual node of this remote cluster.
pub fn is_ours(node: &Node, facts: &Facts) -> bool {
    NodeKind::of(node).leads_to(&facts.foreign_cluster_id)
}

/// The labels that the Node must bear. What others add stays.
pub fn labels(virtual_node: &VirtualNodeSpec, facts: &Facts) -> BTreeMap<String, String> {
    let storage = !virtual_node.storage_classes.is_empty();
    let defaults = [(label::OS, "linux"), (label::ARCH, "amd64"), (label::ROLE, "agent")];
    let fixed = [
        (label::HOSTNAME, facts.name.as_str()),
        (label::NODE_TYPE, label::NODE_TYPE_VIRTUAL),
        (label::AUTOSCALER_TYPE, label::AUTOSCALER_TYPE_VIRTUAL_KUBELET),
        (label::REMOTE_CLUSTER_ID, facts.foreign_cluster_id.as_str()),
        (label::EXCLUDE_FROM_LOAD_BALANCERS, "true"),
        (label::EXCLUDE_FROM_LOAD_BALANCERS_ALPHA, "true"),
        (label::STORAGE_AVAILABLE, if storage { "true" } else { "false" }),
    ];
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let mut labels: BTreeMap<_, _> = defaults.into_iter().map(owned).collect();
    labels.extend(facts.extra_labels.clone());
    labels.extend(virtual_node.labels.clone());
    labels.extend(fixed.into_iter().map(owned)); // last: nobody may claim to be another node
    labels
}

/// The annotations that the Node must bear, but for the one that remembers them.
pub fn annotations(virtual_node: &VirtualNodeSpec, facts: &Facts) -> BTreeMap<String, String> {
    let mut annotations = facts.extra_annotations.clone();
    annotations.extend(virtual_node.annotations.clone());
    annotations.insert(annotation::NODE_CLUSTER_ID.to_owned(), facts.foreign_cluster_id.clone());
    annotations
}

/// The taints that the VirtualNode asks for, one for each key and effect.
pub fn taints(virtual_node: &VirtualNodeSpec) -> Vec<Taint> {
    let mut taints: Vec<Taint> = Vec::new();
    for taint in virtual_node.taints.iter().filter(|taint| taint.key != taint::NOT_ALLOWED) {
        if !taints.iter().any(|other| (&other.key, &other.effect) == (&taint.key, &taint.effect)) {
            taints.push(taint.clone());
        }
    }
    taints
}

/// The Node as it is registered: with the labels, annotations, taints and cordon that it had when it was `last` seen, if
/// it ever was. The taint that keeps pods away is set on one that never was, and never again: an admin who takes it away
/// means it.
pub fn node(
    virtual_node: &VirtualNodeSpec,
    facts: &Facts,
    health: &Health,
    last: Option<&Node>,
    now: Timestamp,
) -> Node {
    let spec = match last {
        Some(last) => {
            let NodeSpec { provider_id, taints, unschedulable, .. } = last.spec.clone().unwrap_or_default();
            NodeSpec { provider_id, taints, unschedulable, ..NodeSpec::default() }
        }
        None => NodeSpec { taints: Some(vec![not_allowed()]), ..NodeSpec::default() },
    };
    let metadata = ObjectMeta {
        name: Some(facts.name.clone()),
        labels: last.and_then(|last| last.metadata.labels.clone()),
        annotations: last.and_then(|last| last.metadata.annotations.clone()),
        ..ObjectMeta::default()
    };
    let mut node = Node { metadata, spec: Some(spec), status: None };
    applied::complete(&mut node, virtual_node, facts);
    // A Node keeps the status it is created with, so that it is never seen without capacity.
    let status = status(virtual_node, facts, health, last, now);
    node.status = serde_json::from_value::<NodeStatus>(Value::Object(status)).ok();
    node
}

fn not_allowed() -> Taint {
    Taint {
        key: taint::NOT_ALLOWED.to_owned(),
        value: Some(taint::NOT_ALLOWED_VALUE.to_owned()),
        effect: taint::NOT_ALLOWED_EFFECT.to_owned(),
        time_added: None,
    }
}

#[cfg(test)]
pub(super) mod tests;
