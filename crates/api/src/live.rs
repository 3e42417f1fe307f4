//! What may change of a pod while it runs: labels, annotations, and the few fields of its spec that the API server lets
//! anyone change. Whoever carries such changes over notes what it carried last in an annotation, by a digest: what the
//! other side's admission did to the object meanwhile is then no difference.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::RawObject;
use crate::well_known::annotation;

/// Annotations that tell of the carrying itself.
const OF_THE_CARRIER: &[&str] = &[annotation::LIVE_DIGEST, annotation::ORIGIN_UID, annotation::DELETION_GRACE_SECONDS];

/// The fields of a pod spec that may change while it runs, in whole or in part.
pub const FIELDS: &[&str] =
    &["containers", "initContainers", "activeDeadlineSeconds", "tolerations", "resources", "ephemeralContainers"];
/// Those of them of which only a part may: lists of containers.
pub const CONTAINERS: &[&str] = &["containers", "initContainers"];
/// What may change of a container.
pub const OF_CONTAINER: &[&str] = &["image", "resources"];

/// What a pod spec says of the fields that may change while it runs.
pub fn part(spec: &RawObject) -> RawObject {
    let mut part = Map::new();
    for field in FIELDS {
        let value = match spec.get(*field) {
            Some(Value::Array(containers)) if CONTAINERS.contains(field) => containers.iter().map(container).collect(),
            Some(value) => value.clone(),
            None => continue,
        };
        if !is_empty(&value) {
            part.insert((*field).to_owned(), value);
        }
    }
    part
}

fn container(container: &Value) -> Value {
    let mut part = Map::new();
    for field in ["name"].iter().chain(OF_CONTAINER) {
        if let Some(value) = container.get(field).filter(|value| !is_empty(value)) {
            part.insert((*field).to_owned(), value.clone());
        }
    }
    Value::Object(part)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// A digest of everything that may change while a pod runs.
pub fn digest(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>, spec: &RawObject) -> String {
    let annotations: BTreeMap<_, _> =
        annotations.iter().filter(|(key, _)| !OF_THE_CARRIER.contains(&key.as_str())).collect();
    let text = json!({"labels": labels, "annotations": annotations, "spec": part(spec)}).to_string();
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: Value) -> RawObject {
        value.as_object().cloned().unwrap_or_default()
    }

    fn digested(annotations: &[(&str, &str)], pod: Value) -> String {
        let annotations = annotations.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        digest(&BTreeMap::new(), &annotations, &spec(pod))
    }

    #[test]
    fn only_what_may_change_counts() {
        let pod =
            json!({"containers": [{"name": "c", "image": "a", "command": ["x"]}], "nodeName": "n", "volumes": []});
        let base = digested(&[], pod.clone());
        for (pointer, value, same) in [
            ("/containers/0/image", json!("b"), false),
            ("/containers/0/command", json!(["y"]), true),
            ("/nodeName", json!("m"), true),
        ] {
            let mut changed = pod.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert_eq!(digested(&[], changed) == base, same, "{pointer}");
        }
        for (field, value) in [
            ("activeDeadlineSeconds", json!(5)),
            ("tolerations", json!([{"key": "a"}])),
            ("ephemeralContainers", json!([{"name": "e"}])),
        ] {
            let mut changed = pod.clone();
            changed[field] = value;
            assert_ne!(digested(&[], changed), base, "{field}");
        }
    }

    #[test]
    fn an_empty_list_is_no_list_and_the_carriers_own_notes_do_not_count() {
        let base = digested(&[("note", "n")], json!({"containers": [{"name": "c"}]}));
        let same =
            json!({"containers": [{"name": "c", "resources": {}}], "tolerations": [], "ephemeralContainers": null});
        assert_eq!(
            digested(&[("note", "n"), (annotation::LIVE_DIGEST, "x"), (annotation::ORIGIN_UID, "u")], same),
            base
        );
        assert_ne!(digested(&[("note", "m")], json!({"containers": [{"name": "c"}]})), base);
    }
}
