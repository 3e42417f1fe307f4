//! The smallest strategic merge patch that takes a pod's status to the one that it should have.

use serde_json::{Value, json};
use spillway_api::RawObject;
use spillway_api::raw_pod::str_of;
use spillway_api::well_known::condition;

use super::NOT_OURS;

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
    "AllContainersRestarting",
    condition::UPDATE_REFUSED,
];

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
