//! Remote pod status → local pod status, and the smallest patch that takes the local one there.

use serde_json::{Value, json};
use spillway_api::RawObject;
use spillway_api::raw_pod::str_of;

use super::digest::LocalDigest;

/// Never written: they belong to the API server, the resource claim controller and the scheduler.
const NOT_OURS: &[&str] = &["qosClass", "resourceClaimStatuses", "nominatedNodeName"];

/// Lists of a pod status that a strategic merge patch merges by a key.
const MERGED_LISTS: &[(&str, &str)] = &[("conditions", "type"), ("podIPs", "ip"), ("hostIPs", "ip")];

/// Conditions that a kubelet writes; those of others are left alone.
const OUR_CONDITIONS: &[&str] = &[
    "PodScheduled",
    "PodReadyToStartContainers",
    "Initialized",
    "ContainersReady",
    "Ready",
    "PodResizePending",
    "PodResizeInProgress",
];

const CONTAINER_LISTS: &[&str] = &["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// How a remote status is translated.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    /// The address of this virtual node.
    pub node_ip: Option<String>,
}

impl Mirror {
    /// The status that the local pod should have.
    pub fn status(&self, remote: &RawObject, recreations: i64, local: &LocalDigest) -> RawObject {
        let mut status = remote.clone();
        for field in NOT_OURS {
            status.remove(*field);
        }
        set_generation(&mut status, local.generation);
        self.set_host(&mut status);
        for list in CONTAINER_LISTS {
            for container in array(&mut status, list) {
                add_restarts(container, recreations);
            }
        }
        // What the provider takes away it brings back; here the condition is for those who disrupt the local pod.
        if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
            conditions.retain(|condition| condition.get("type") != Some(&json!("DisruptionTarget")));
        }
        for condition in array(&mut status, "conditions") {
            if let Some(condition) = condition.as_object_mut() {
                set_generation(condition, local.generation);
            }
        }
        status
    }

    /// The status of a pod that is held up before it could start.
    pub fn waiting(&self, reason: &str, message: &str, local: &LocalDigest) -> RawObject {
        let mut status = local.status.clone();
        for field in NOT_OURS {
            status.remove(*field);
        }
        status.insert("phase".to_owned(), json!("Pending"));
        status.insert("reason".to_owned(), json!(reason));
        status.insert("message".to_owned(), json!(message));
        status
    }

    fn set_host(&self, status: &mut RawObject) {
        match &self.node_ip {
            Some(ip) if status.contains_key("hostIP") => {
                status.insert("hostIP".to_owned(), json!(ip));
                status.insert("hostIPs".to_owned(), json!([{"ip": ip}]));
            }
            _ => {
                status.remove("hostIP");
                status.remove("hostIPs");
            }
        }
    }
}

fn array<'a>(status: &'a mut RawObject, field: &str) -> impl Iterator<Item = &'a mut Value> {
    status.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// The generation that the remote saw is that of another object.
fn set_generation(object: &mut RawObject, generation: Option<i64>) {
    if object.remove("observedGeneration").is_some()
        && let Some(generation) = generation
    {
        object.insert("observedGeneration".to_owned(), json!(generation));
    }
}

fn add_restarts(container: &mut Value, recreations: i64) {
    if let Some(count) = container.get_mut("restartCount") {
        *count = json!(count.as_i64().unwrap_or(0) + recreations);
    }
}

/// The strategic merge patch of the status from `now` to `wanted`, or `None` if nothing differs.
pub fn patch(now: &RawObject, wanted: &RawObject) -> Option<RawObject> {
    // The API server puts a generation that is taken away back by itself.
    let kept = |field: &str| NOT_OURS.contains(&field) || field == "observedGeneration";
    let gone = now.keys().filter(|field| !wanted.contains_key(*field) && !kept(field));
    let changes = wanted.keys().chain(gone).filter_map(|field| {
        let change = change(field, now.get(field), wanted.get(field))?;
        Some((field.clone(), change))
    });
    let patch: RawObject = changes.collect();
    (!patch.is_empty()).then_some(patch)
}

/// What takes one field from `now` to `wanted`.
fn change(field: &str, now: Option<&Value>, wanted: Option<&Value>) -> Option<Value> {
    if now == wanted {
        return None;
    }
    let Some(key) = merge_key(field) else { return Some(wanted.cloned().unwrap_or(Value::Null)) };
    let changes = list_changes(field, key, now, wanted);
    (!changes.is_empty()).then_some(Value::Array(changes))
}

fn merge_key(field: &str) -> Option<&'static str> {
    MERGED_LISTS.iter().find(|(list, _)| *list == field).map(|(_, key)| *key)
}

fn list_changes(field: &str, key: &str, now: Option<&Value>, wanted: Option<&Value>) -> Vec<Value> {
    let empty = Vec::new();
    let now = now.and_then(Value::as_array).unwrap_or(&empty);
    let wanted = wanted.and_then(Value::as_array).unwrap_or(&empty);
    let named = |item: &Value| item.as_object().map(|item| str_of(item, key).to_owned()).unwrap_or_default();
    // Of addresses the first is the one that counts, and a merge keeps the order of what it is given: all are named.
    let ordered = field != "conditions" && wanted != now;
    let changed = wanted.iter().filter(|item| ordered || !now.contains(item));
    let mut changes: Vec<_> = changed.map(|item| replaced(item, now, key)).collect();
    let gone = now.iter().map(named).filter(|name| !wanted.iter().any(|item| named(item) == *name));
    let gone = gone.filter(|name| field != "conditions" || OUR_CONDITIONS.contains(&name.as_str()));
    changes.extend(gone.map(|name| json!({"$patch": "delete", key: name})));
    changes
}

/// An item of a merged list is itself merged: what it no longer has must be named to be erased.
fn replaced(item: &Value, now: &[Value], key: &str) -> Value {
    let mut item = item.clone();
    let before = now.iter().find(|before| before.get(key) == item.get(key)).and_then(Value::as_object);
    if let (Some(item), Some(before)) = (item.as_object_mut(), before) {
        for field in before.keys() {
            item.entry(field.clone()).or_insert(Value::Null);
        }
    }
    item
}

#[cfg(test)]
mod tests;
