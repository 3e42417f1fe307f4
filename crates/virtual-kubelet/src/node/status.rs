//! The part of the Node's status that is ours. Pure: the clock is a parameter.

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_api::RawObject;
use spillway_api::k8s::{Node, NodeCondition};
use spillway_api::offloading::VirtualNodeSpec;
use spillway_api::well_known::{label, name, reason};

use super::forge::{self, Facts};
use super::health::Health;
use crate::time::seconds;

/// `before` is the Node as it was last seen.
pub fn status(
    virtual_node: &VirtualNodeSpec,
    facts: &Facts,
    health: &Health,
    before: Option<&Node>,
    now: Timestamp,
) -> RawObject {
    let labels = forge::labels(virtual_node, facts);
    let hard = virtual_node.resource_quota.as_ref().map(|quota| json!(quota.hard)).unwrap_or_else(|| json!({}));
    let mut addresses = vec![json!({"type": "Hostname", "address": facts.name})];
    addresses.extend(facts.node_ip.iter().map(|ip| json!({"type": "InternalIP", "address": ip})));
    let status = json!({
        "capacity": hard, "allocatable": hard, "addresses": addresses, "images": virtual_node.images,
        "conditions": conditions(health, before, now),
        "nodeInfo": {
            "architecture": labels.get(label::ARCH), "operatingSystem": labels.get(label::OS),
            "kubeletVersion": version(facts, before), "kubeProxyVersion": "",
            "containerRuntimeVersion": name::NODE_RUNTIME,
            "osImage": "", "kernelVersion": "", "machineID": "", "systemUUID": "", "bootID": "",
        },
    });
    status.as_object().cloned().unwrap_or_default()
}

/// The one that was shown last, until the remote API server has told its own.
fn version(facts: &Facts, before: Option<&Node>) -> String {
    if !facts.version.is_empty() {
        return facts.version.clone();
    }
    let info = before.and_then(|node| node.status.as_ref()?.node_info.as_ref());
    info.map(|info| info.kubelet_version.clone()).unwrap_or_default()
}

fn conditions(health: &Health, before: Option<&Node>, now: Timestamp) -> Vec<Value> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let ready = match (health, condition(before, "Ready")) {
        (Health::Reachable, _) => {
            ("True".to_owned(), reason::KUBELET_READY.to_owned(), "the remote cluster is reachable".to_owned())
        }
        (Health::Away { reason, message }, _) => ("False".to_owned(), (*reason).to_owned(), message.clone()),
        // A restart or a probe that failed must not make a healthy node NotReady.
        (Health::Undecided, Some(shown)) => (shown.status.clone(), text(&shown.reason), text(&shown.message)),
        (Health::Undecided, None) => (
            "False".to_owned(),
            reason::KUBELET_NOT_READY.to_owned(),
            "the remote cluster has not answered yet".to_owned(),
        ),
    };
    let fine = |kind, reason: &str| (kind, ("False".to_owned(), reason.to_owned(), String::new()));
    [
        ("Ready", ready),
        fine("MemoryPressure", reason::SUFFICIENT_MEMORY),
        fine("DiskPressure", reason::NO_DISK_PRESSURE),
        fine("PIDPressure", reason::NO_PID_PRESSURE),
    ]
    .map(|(kind, (status, reason, message))| {
        let same = condition(before, kind).filter(|condition| condition.status == status);
        let since = same.and_then(|same| same.last_transition_time.as_ref()).map_or(now, |time| time.0);
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": seconds(now), "lastTransitionTime": seconds(since),
        })
    })
    .into()
}

fn condition<'a>(node: Option<&'a Node>, kind: &str) -> Option<&'a NodeCondition> {
    let conditions = node?.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether two statuses differ in more than the time of their heartbeat.
pub fn differs(wanted: &RawObject, seen: &Node) -> bool {
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

/// The strategic merge patch. Maps are merged by the API server: a resource that is no longer offered must be named to be
/// erased. While the health is undecided, what the node controller may just have written is not overwritten.
pub fn patch(mut wanted: RawObject, node: &Node, health: &Health) -> Value {
    if *health == Health::Undecided
        && condition(Some(node), "Ready").is_some()
        && let Some(Value::Array(conditions)) = wanted.get_mut("conditions")
    {
        conditions.retain(|condition| condition["type"] != "Ready");
    }
    let status = node.status.clone().unwrap_or_default();
    for (field, there) in [("capacity", status.capacity), ("allocatable", status.allocatable)] {
        if let Some(Value::Object(wanted)) = wanted.get_mut(field) {
            for resource in there.unwrap_or_default().into_keys() {
                wanted.entry(resource).or_insert(Value::Null);
            }
        }
    }
    if let Some(Value::Array(addresses)) = wanted.get_mut("addresses") {
        addresses.push(json!({"$patch": "replace"}));
    }
    json!({"metadata": {"uid": node.metadata.uid}, "status": wanted})
}

#[cfg(test)]
mod tests;
