//! VirtualNode → Node, and its status. Pure: the clock is a parameter.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use spillway_api::k8s::{Node, NodeSpec, NodeStatus, Taint};
use spillway_api::offloading::VirtualNodeSpec;
use spillway_api::well_known::{label, reason, taint};
use spillway_operator::peer::Reach;

/// What the node looks like from outside, besides what the VirtualNode says.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub name: String,
    pub foreign_cluster_id: String,
    pub node_ip: Option<String>,
    /// The version of the remote API server, which the node shows as its kubelet's.
    pub version: String,
    pub extra_labels: BTreeMap<String, String>,
    pub extra_annotations: BTreeMap<String, String>,
}

/// What a virtual node shows as its container runtime, and no kubelet does.
const RUNTIME: &str = "spillway://";

/// Whether a Node is a virtual node of this remote cluster. One that lost its labels still is; a real node never is,
/// whatever its name.
pub fn is_ours(node: &Node, facts: &Facts) -> bool {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    let labelled = |key: &str, value: &str| {
        node.metadata.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|there| there == value)
    };
    info.is_some_and(|info| info.container_runtime_version == RUNTIME)
        || (labelled(label::NODE_TYPE, label::NODE_TYPE_VIRTUAL)
            && labelled(label::REMOTE_CLUSTER_ID, &facts.foreign_cluster_id))
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

pub fn annotations(virtual_node: &VirtualNodeSpec, facts: &Facts) -> BTreeMap<String, String> {
    let mut annotations = facts.extra_annotations.clone();
    annotations.extend(virtual_node.annotations.clone());
    annotations
}

/// The Node as it is first made. The taint is set here and never again: an admin who takes it away means it.
pub fn node(virtual_node: &VirtualNodeSpec, facts: &Facts, reach: &Reach, now: Timestamp) -> Node {
    let not_allowed = Taint {
        key: taint::NOT_ALLOWED.to_owned(),
        value: Some(taint::NOT_ALLOWED_VALUE.to_owned()),
        effect: taint::NOT_ALLOWED_EFFECT.to_owned(),
        time_added: None,
    };
    let own = virtual_node.taints.iter().filter(|own| own.key != taint::NOT_ALLOWED).cloned();
    let status = serde_json::from_value::<NodeStatus>(Value::Object(status(virtual_node, facts, reach, None, now)));
    Node {
        metadata: ObjectMeta {
            name: Some(facts.name.clone()),
            labels: Some(labels(virtual_node, facts)),
            annotations: Some(annotations(virtual_node, facts)),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            taints: Some(own.chain([not_allowed]).collect()),
            provider_id: virtual_node.provider_id.clone(),
            ..NodeSpec::default()
        }),
        // A Node keeps the status it is created with, so that it is never seen without capacity.
        status: status.ok(),
    }
}

/// The part of the Node's status that is ours.
pub fn status(
    virtual_node: &VirtualNodeSpec,
    facts: &Facts,
    reach: &Reach,
    before: Option<&Node>,
    now: Timestamp,
) -> spillway_api::RawObject {
    let labels = labels(virtual_node, facts);
    let hard = virtual_node.resource_quota.as_ref().map(|quota| json!(quota.hard)).unwrap_or_else(|| json!({}));
    let mut addresses = vec![json!({"type": "Hostname", "address": facts.name})];
    addresses.extend(facts.node_ip.iter().map(|ip| json!({"type": "InternalIP", "address": ip})));
    let status = json!({
        "capacity": hard, "allocatable": hard, "addresses": addresses, "images": virtual_node.images,
        "conditions": conditions(reach, before, now),
        "nodeInfo": {
            "architecture": labels.get(label::ARCH), "operatingSystem": labels.get(label::OS),
            "kubeletVersion": facts.version, "kubeProxyVersion": "", "containerRuntimeVersion": RUNTIME,
            "osImage": "", "kernelVersion": "", "machineID": "", "systemUUID": "", "bootID": "",
        },
    });
    status.as_object().cloned().unwrap_or_default()
}

fn conditions(reach: &Reach, before: Option<&Node>, now: Timestamp) -> Vec<Value> {
    let ready = match reach {
        Reach::Reachable => ("True", reason::KUBELET_READY, "the remote cluster is reachable".to_owned()),
        Reach::Unknown => ("False", reason::KUBELET_NOT_READY, "the remote cluster has not been asked yet".to_owned()),
        Reach::Away { reason, message, .. } => ("False", *reason, message.clone()),
    };
    let fine = |kind, reason| (kind, ("False", reason, String::new()));
    [
        ("Ready", ready),
        fine("MemoryPressure", reason::SUFFICIENT_MEMORY),
        fine("DiskPressure", reason::NO_DISK_PRESSURE),
        fine("PIDPressure", reason::NO_PID_PRESSURE),
    ]
    .map(|(kind, (status, reason, message))| {
        let since = transition(before, kind, status).unwrap_or(now);
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": seconds(now), "lastTransitionTime": seconds(since),
        })
    })
    .into()
}

/// Since when the condition has had this status.
fn transition(before: Option<&Node>, kind: &str, status: &str) -> Option<Timestamp> {
    let conditions = before?.status.as_ref()?.conditions.as_ref()?;
    let same = conditions.iter().find(|condition| condition.type_ == kind && condition.status == status)?;
    same.last_transition_time.as_ref().map(|time| time.0)
}

/// Times in the API have whole seconds.
fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whether two statuses differ in more than the time of their heartbeat.
pub fn differs(wanted: &spillway_api::RawObject, seen: &Node) -> bool {
    let seen = seen.status.as_ref().map(|status| json!(status)).unwrap_or_default();
    let without_heartbeat = |conditions: Option<&Value>| {
        let mut conditions = conditions.cloned().unwrap_or_default();
        for condition in conditions.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            condition.remove("lastHeartbeatTime");
            condition.retain(|_, value| value != "");
        }
        conditions
    };
    let empty =
        |value: Option<&Value>| value.is_none_or(|value| value.is_null() || *value == json!([]) || *value == json!({}));
    wanted.iter().any(|(field, value)| match field.as_str() {
        "conditions" => {
            let seen = without_heartbeat(seen.get(field));
            let wanted = without_heartbeat(Some(value));
            wanted
                .as_array()
                .into_iter()
                .flatten()
                .any(|condition| !seen.as_array().is_some_and(|seen| seen.contains(condition)))
        }
        _ => seen.get(field) != Some(value) && !(empty(seen.get(field)) && empty(Some(value))),
    })
}

#[cfg(test)]
mod tests;
