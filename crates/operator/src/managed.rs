//! Which labels and annotations of an object were put there by a field manager, as the API server itself noted.
//!
//! Needed to take away what is no longer wanted without touching what others put beside it. Only an object that was read
//! from the API server has these notes: watches prune them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

/// What takes `labels` or `annotations` to what is wanted: new and changed keys, and `null` for those that `manager` put
/// there and nobody wants any more.
pub fn changes(there: &ObjectMeta, wanted: &BTreeMap<String, String>, manager: &str, map: &str) -> Map<String, Value> {
    let none = BTreeMap::new();
    let now = if map == "labels" { &there.labels } else { &there.annotations };
    let now = now.as_ref().unwrap_or(&none);
    let ours = keys(there, manager, map);
    let changed = wanted.iter().filter(|(key, value)| now.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| (key.clone(), Value::String(value.clone())));
    let gone = now.keys().filter(|key| ours.contains(*key) && !wanted.contains_key(*key));
    changed.chain(gone.map(|key| (key.clone(), Value::Null))).collect()
}

/// The keys of `labels` or `annotations` that `manager` wrote last.
pub fn keys(metadata: &ObjectMeta, manager: &str, map: &str) -> BTreeSet<String> {
    let entries = metadata.managed_fields.iter().flatten().filter(|entry| entry.manager.as_deref() == Some(manager));
    let maps = entries.filter_map(|entry| entry.fields_v1.as_ref()?.0.pointer(&format!("/f:metadata/f:{map}")));
    let fields = maps.filter_map(Value::as_object).flat_map(|fields| fields.keys());
    fields.filter_map(|field| field.strip_prefix("f:").map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_managers_own_keys_are_named_and_taken_away() {
        let labels = json!({"app": "web", "example.com/a": "1", "theirs": "x"});
        let metadata: ObjectMeta = serde_json::from_value(json!({"labels": labels, "managedFields": [
            {"manager": "us", "operation": "Update", "fieldsV1": {"f:metadata": {
                "f:labels": {".": {}, "f:app": {}, "f:example.com/a": {}}, "f:annotations": {"f:note": {}}}}},
            {"manager": "them", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:theirs": {}}}}},
            {"manager": "us", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
        ]}))
        .unwrap();
        assert_eq!(keys(&metadata, "us", "labels"), ["app", "example.com/a"].map(str::to_owned).into());
        assert_eq!(keys(&metadata, "us", "annotations"), ["note"].map(str::to_owned).into());
        assert!(keys(&metadata, "nobody", "labels").is_empty());
        let wanted = [("app", "shop"), ("new", "1")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let changes = changes(&metadata, &wanted, "us", "labels");
        assert_eq!(json!(changes), json!({"app": "shop", "new": "1", "example.com/a": null}));
    }
}
