//! What takes a running pod to what its ShadowPod asks for now, as far as the API server lets anyone change a running pod.

use std::collections::BTreeSet;

use kube::ResourceExt;
use serde_json::{Value, json};
use spillway_api::quantity::Quantity;
use spillway_api::raw_pod::str_of;
use spillway_api::well_known::{annotation, field_manager};
use spillway_api::{RawObject, RawPod, live};
use spillway_operator::managed;

/// Strategic merge patches, each for a resource of its own, to be sent in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// For `pods/ephemeralcontainers`.
    pub ephemeral_containers: Option<Value>,
    /// For `pods/resize`.
    pub resize: Option<Value>,
    /// For the pod itself.
    pub pod: Option<Value>,
}

/// `wanted` is forged from the ShadowPod; `now` was read from the API server, with its managed fields. The digest of what
/// was carried over is not part of it: [`carried`] notes it once everything was.
pub fn update(wanted: &RawPod, now: &RawPod) -> Update {
    Update {
        ephemeral_containers: ephemeral_containers(wanted, now).map(|list| patch(now, "ephemeralContainers", list)),
        resize: resize(wanted, now).map(|spec| json!({"metadata": {"uid": now.uid()}, "spec": spec})),
        pod: in_place(wanted, now),
    }
}

/// Adds to the patch of the pod itself that all of `wanted` has been carried over.
pub fn carried(pod: Option<Value>, wanted: &RawPod, now: &RawPod) -> Value {
    let mut patch = pod.unwrap_or_else(|| json!({"metadata": {"uid": now.uid()}}));
    patch["metadata"]["annotations"][annotation::LIVE_DIGEST] =
        json!(wanted.annotations().get(annotation::LIVE_DIGEST));
    patch
}

fn patch(now: &RawPod, field: &str, value: Value) -> Value {
    json!({"metadata": {"uid": now.uid()}, "spec": {field: value}})
}

fn list<'a>(pod: &'a RawPod, field: &str) -> &'a [Value] {
    pod.spec.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn name(container: &Value) -> &str {
    container.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Each container of `wanted` together with that of the same name that runs.
fn pairs<'a>(wanted: &'a RawPod, now: &'a RawPod, field: &str) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    let running = list(now, field);
    list(wanted, field).iter().filter_map(move |wanted| {
        let now = running.iter().find(|container| name(container) == name(wanted))?;
        Some((wanted, now))
    })
}

/// They can be added, but never changed nor removed.
fn ephemeral_containers(wanted: &RawPod, now: &RawPod) -> Option<Value> {
    let there: BTreeSet<_> = list(now, "ephemeralContainers").iter().map(name).collect();
    let missing: Vec<_> = list(wanted, "ephemeralContainers").iter().filter(|new| !there.contains(name(new))).collect();
    (!missing.is_empty()).then(|| json!(missing))
}

/// What the ShadowPod says of resources and the pod does not; what only the pod says was put there by this cluster.
fn resize(wanted: &RawPod, now: &RawPod) -> Option<Value> {
    let mut spec = RawObject::new();
    for field in live::CONTAINERS {
        let changes: Vec<_> = pairs(wanted, now, field).filter_map(|(wanted, now)| resized(wanted, now)).collect();
        if !changes.is_empty() {
            spec.insert((*field).to_owned(), json!(changes));
        }
    }
    if let Some(change) = resources(wanted.spec.get("resources"), now.spec.get("resources")) {
        spec.insert("resources".to_owned(), change);
    }
    (!spec.is_empty()).then_some(Value::Object(spec))
}

fn resized(wanted: &Value, now: &Value) -> Option<Value> {
    let resources = resources(wanted.get("resources"), now.get("resources"))?;
    Some(json!({"name": name(wanted), "resources": resources}))
}

fn resources(wanted: Option<&Value>, now: Option<&Value>) -> Option<Value> {
    let mut change = RawObject::new();
    for list in ["requests", "limits"] {
        let wanted = wanted.and_then(|wanted| wanted.get(list)).and_then(Value::as_object);
        let now = now.and_then(|now| now.get(list));
        let differing = wanted.into_iter().flatten().filter(|(resource, amount)| {
            now.and_then(|now| now.get(resource.as_str())).is_none_or(|now| !same_amount(amount, now))
        });
        let differing: RawObject = differing.map(|(resource, amount)| (resource.clone(), amount.clone())).collect();
        if !differing.is_empty() {
            change.insert(list.to_owned(), Value::Object(differing));
        }
    }
    (!change.is_empty()).then_some(Value::Object(change))
}

/// "1" is "1000m", and also 1.
fn same_amount(one: &Value, other: &Value) -> bool {
    let amount = |value: &Value| serde_json::from_value::<Quantity>(value.clone()).ok();
    one == other || amount(one).is_some_and(|one| Some(one) == amount(other))
}

/// What may change by an ordinary write.
fn in_place(wanted: &RawPod, now: &RawPod) -> Option<Value> {
    let mut metadata = RawObject::new();
    for (map, wanted) in [("labels", wanted.labels()), ("annotations", wanted.annotations())] {
        let mut changes = managed::changes(&now.metadata, wanted, field_manager::SHADOW_POD, map);
        changes.remove(annotation::LIVE_DIGEST);
        if !changes.is_empty() {
            metadata.insert(map.to_owned(), Value::Object(changes));
        }
    }
    let held: Vec<_> = wanted.finalizers().iter().filter(|name| !now.finalizers().contains(name)).collect();
    if !held.is_empty() {
        metadata.insert("finalizers".to_owned(), json!(held));
    }
    let mut spec = RawObject::new();
    for field in live::CONTAINERS {
        let images: Vec<_> = pairs(wanted, now, field).filter_map(|(wanted, now)| new_image(wanted, now)).collect();
        if !images.is_empty() {
            spec.insert((*field).to_owned(), json!(images));
        }
    }
    if let Some(deadline) = earlier_deadline(wanted, now) {
        spec.insert("activeDeadlineSeconds".to_owned(), json!(deadline));
    }
    if let Some(tolerations) = more_tolerations(wanted, now) {
        spec.insert("tolerations".to_owned(), json!(tolerations));
    }
    if metadata.is_empty() && spec.is_empty() {
        return None;
    }
    metadata.insert("uid".to_owned(), json!(now.uid()));
    Some(json!({"metadata": metadata, "spec": spec}))
}

fn new_image(wanted: &Value, now: &Value) -> Option<Value> {
    let image = wanted.get("image").filter(|image| now.get("image") != Some(image))?;
    Some(json!({"name": name(wanted), "image": image}))
}

/// It may be set, and it may shrink.
fn earlier_deadline(wanted: &RawPod, now: &RawPod) -> Option<i64> {
    let deadline = |pod: &RawPod| pod.spec.get("activeDeadlineSeconds").and_then(Value::as_i64);
    deadline(wanted).filter(|wanted| deadline(now).is_none_or(|now| *wanted < now))
}

/// They may only be added to, but how long one holds may change. (The list is replaced as a whole.)
fn more_tolerations(wanted: &RawPod, now: &RawPod) -> Option<Vec<Value>> {
    let mut tolerations = list(now, "tolerations").to_vec();
    for new in list(wanted, "tolerations") {
        match tolerations.iter_mut().find(|toleration| tolerates_the_same(toleration, new)) {
            Some(toleration) => *toleration = new.clone(),
            None => tolerations.push(new.clone()),
        }
    }
    (tolerations != list(now, "tolerations")).then_some(tolerations)
}

fn tolerates_the_same(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return false };
    ["key", "operator", "value", "effect"].into_iter().all(|field| str_of(one, field) == str_of(other, field))
}

#[cfg(test)]
mod tests;
