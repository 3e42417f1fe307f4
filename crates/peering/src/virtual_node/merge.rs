//! The merge patch that turns one JSON value into another, where they differ and nowhere else.

use serde_json::{Map, Value};

/// `None` when nothing differs. What `wanted` lacks is removed; lists are replaced whole.
pub fn diff(live: &Value, wanted: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (live, wanted) else {
        return (live != wanted).then(|| wanted.clone());
    };
    let mut patch = Map::new();
    for (key, value) in after {
        match before.get(key) {
            Some(old) => patch.extend(diff(old, value).map(|patch| (key.clone(), patch))),
            None => patch.extend([(key.clone(), value.clone())]),
        }
    }
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    patch.extend(gone.map(|key| (key.clone(), Value::Null)));
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_values_need_no_patch() {
        let value = json!({"a": {"b": [1, 2]}, "c": null});
        assert_eq!(diff(&value, &value), None);
    }

    #[test]
    fn only_differences_are_written_and_what_is_gone_is_removed() {
        let live = json!({"keep": 1, "map": {"old": "x", "same": 2}, "list": [1]});
        let wanted = json!({"keep": 1, "map": {"same": 2, "new": {"deep": true}}, "list": [1, 2]});
        assert_eq!(diff(&live, &wanted), Some(json!({"map": {"old": null, "new": {"deep": true}}, "list": [1, 2]})));
    }
}
