//! The patch that takes a living ShadowPod to what its local pod has become.

use kube::ResourceExt;
use serde_json::{Map, Value, json};
use spillway_api::offloading::ShadowPod;
use spillway_api::well_known::field_manager;
use spillway_api::{RawObject, live};
use spillway_operator::managed;

/// A merge patch that changes what may change while a pod runs, and holds only for the version that was read.
pub fn patch(there: &ShadowPod, wanted: &ShadowPod) -> Value {
    json!({
        "metadata": {
            "uid": there.uid(),
            "resourceVersion": there.resource_version(),
            "labels": managed::changes(&there.metadata, wanted.labels(), field_manager::VIRTUAL_KUBELET, "labels"),
            "annotations":
                managed::changes(&there.metadata, wanted.annotations(), field_manager::VIRTUAL_KUBELET, "annotations"),
        },
        "spec": {"pod": spec(&there.spec.pod, &wanted.spec.pod)},
    })
}

/// Containers are a list, which a merge patch replaces whole: each keeps what may not change.
fn spec(there: &RawObject, wanted: &RawObject) -> Map<String, Value> {
    let part = live::part(wanted);
    let mut patch = Map::new();
    for field in live::FIELDS {
        let change = match (live::CONTAINERS.contains(field), there.get(*field), part.get(*field)) {
            (true, Some(Value::Array(there)), Some(Value::Array(wanted))) => containers(there, wanted),
            (_, _, wanted) => wanted.cloned().unwrap_or(Value::Null),
        };
        if there.get(*field).unwrap_or(&Value::Null) != &change {
            patch.insert((*field).to_owned(), change);
        }
    }
    patch
}

fn containers(there: &[Value], wanted: &[Value]) -> Value {
    let changed = there.iter().map(|container| {
        let Some(wanted) = wanted.iter().find(|wanted| wanted.get("name") == container.get("name")) else {
            return container.clone();
        };
        let mut container = container.clone();
        for field in live::OF_CONTAINER {
            match wanted.get(field) {
                Some(value) => container[*field] = value.clone(),
                None => drop(container.as_object_mut().and_then(|container| container.remove(*field))),
            }
        }
        container
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shadow(labels: Value, pod: Value) -> ShadowPod {
        let managed = json!([{"manager": "spillway-virtual-kubelet", "operation": "Update", "fieldsV1": {"f:metadata": {
            "f:labels": {"f:app": {}, "f:tier": {}}}}}]);
        serde_json::from_value(json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod",
            "metadata": {"name": "web", "uid": "s1", "resourceVersion": "7", "labels": labels, "managedFields": managed},
            "spec": {"pod": pod},
        }))
        .unwrap()
    }

    #[test]
    fn only_differences_are_written_and_only_our_labels_are_taken_away() {
        let there = shadow(
            json!({"app": "web", "tier": "t", "liqo.io/creator-user": "theirs"}),
            json!({
                "containers": [{"name": "c", "image": "a", "command": ["x"], "resources": {"limits": {"cpu": "1"}}},
                               {"name": "injected", "image": "i"}],
                "activeDeadlineSeconds": 5, "dnsPolicy": "Default",
            }),
        );
        let wanted = shadow(
            json!({"app": "shop"}),
            json!({
                "containers": [{"name": "c", "image": "b", "command": ["y"]}], "activeDeadlineSeconds": 5,
                "ephemeralContainers": [{"name": "debug"}], "dnsPolicy": "None",
            }),
        );
        assert_eq!(
            patch(&there, &wanted),
            json!({
                "metadata": {"uid": "s1", "resourceVersion": "7", "labels": {"app": "shop", "tier": null}, "annotations": {}},
                "spec": {"pod": {
                    "containers": [{"name": "c", "image": "b", "command": ["x"]}, {"name": "injected", "image": "i"}],
                    "ephemeralContainers": [{"name": "debug"}],
                }},
            })
        );
    }
}
