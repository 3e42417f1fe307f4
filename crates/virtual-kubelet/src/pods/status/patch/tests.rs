use super::*;

fn object(value: Value) -> RawObject {
    value.as_object().cloned().expect("an object")
}

#[test]
fn a_second_address_that_changes_does_not_become_the_first() {
    let now = object(json!({"podIPs": [{"ip": "10.0.0.3"}, {"ip": "fd00::3"}]}));
    let wanted = object(json!({"podIPs": [{"ip": "10.0.0.3"}, {"ip": "fd00::4"}]}));
    let all = json!([{"ip": "10.0.0.3"}, {"ip": "fd00::4"}, {"$patch": "delete", "ip": "fd00::3"}]);
    assert_eq!(patch(&now, &wanted).unwrap()["podIPs"], all);
}

#[test]
fn equal_statuses_need_no_patch_and_what_is_not_ours_is_no_difference() {
    let wanted = object(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}));
    assert_eq!(patch(&wanted, &wanted), None);
    let mut now = wanted.clone();
    now.insert("qosClass".into(), json!("Guaranteed"));
    now.insert(
        "conditions".into(),
        json!([{"type": "Ready", "status": "True"}, {"type": "example.com/gate", "status": "True"}]),
    );
    assert_eq!(patch(&now, &wanted), None, "a condition of somebody else stays without a word");
}

#[test]
fn a_new_address_replaces_the_old_one() {
    let now = object(json!({"podIP": "10.0.0.3", "podIPs": [{"ip": "10.0.0.3"}]}));
    let wanted = object(json!({"podIP": "10.0.0.4", "podIPs": [{"ip": "10.0.0.4"}]}));
    assert_eq!(
        Value::Object(patch(&now, &wanted).unwrap()),
        json!({
            "podIP": "10.0.0.4", "podIPs": [{"ip": "10.0.0.4"}, {"$patch": "delete", "ip": "10.0.0.3"}],
        })
    );
}

#[test]
fn a_condition_of_ours_that_is_gone_is_deleted_and_a_field_that_is_gone_is_erased() {
    let now = object(json!({
        "reason": "PodRefused", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"},
            {"type": "PodResizePending", "status": "True"},
        ],
    }));
    let wanted = object(json!({"conditions": [{"type": "PodScheduled", "status": "True"}]}));
    assert_eq!(
        Value::Object(patch(&now, &wanted).unwrap()),
        json!({
            "reason": null, "conditions": [
                {"type": "PodScheduled", "status": "True", "reason": null, "message": null},
                {"$patch": "delete", "type": "PodResizePending"},
            ],
        })
    );
}

#[test]
fn lists_without_a_key_are_replaced_whole() {
    let now = object(json!({"containerStatuses": [{"name": "a", "ready": false}, {"name": "b"}]}));
    let wanted = object(json!({"containerStatuses": [{"name": "a", "ready": true}]}));
    assert_eq!(
        Value::Object(patch(&now, &wanted).unwrap()),
        json!({"containerStatuses": [{"name": "a", "ready": true}]})
    );
}

/// What an API server makes of a strategic merge patch of a pod status.
fn applied(now: &RawObject, patch: &RawObject) -> RawObject {
    let mut result = now.clone();
    for (field, change) in patch {
        match (merge_key(field), change) {
            (_, Value::Null) => drop(result.remove(field)),
            (Some(key), Value::Array(changes)) => {
                let mut items = result.remove(field).and_then(|items| items.as_array().cloned()).unwrap_or_default();
                for change in changes {
                    let at = items.iter().position(|item| item.get(key) == change.get(key));
                    match (change.get("$patch"), at) {
                        (Some(_), Some(at)) => drop(items.remove(at)),
                        (Some(_), None) => {}
                        (None, Some(at)) => merge(&mut items[at], change),
                        (None, None) => items.push(change.clone()),
                    }
                }
                if !items.is_empty() {
                    result.insert(field.clone(), Value::Array(items));
                }
            }
            _ => drop(result.insert(field.clone(), change.clone())),
        }
    }
    result
}

fn merge(item: &mut Value, change: &Value) {
    let (Some(item), Some(change)) = (item.as_object_mut(), change.as_object()) else { return };
    for (field, value) in change {
        match value {
            Value::Null => drop(item.remove(field)),
            value => drop(item.insert(field.clone(), value.clone())),
        }
    }
}

/// Lists with a key have no order that matters here.
fn sorted(mut status: RawObject) -> RawObject {
    for (field, key) in MERGED_LISTS {
        if let Some(Value::Array(items)) = status.get_mut(*field) {
            items.sort_by_key(|item| item.get(*key).and_then(Value::as_str).map(str::to_owned));
            if items.is_empty() {
                status.remove(*field);
            }
        }
    }
    status
}

mod properties {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    fn conditions() -> impl Strategy<Value = Value> {
        let kinds = vec!["PodScheduled", "Initialized", "ContainersReady", "Ready", "PodResizePending"];
        (subsequence(kinds, 0..=5), any::<[Option<bool>; 5]>()).prop_map(|(kinds, facts)| {
            let condition = |(kind, fact): (&str, Option<bool>)| match fact {
                Some(true) => json!({"type": kind, "status": "True"}),
                Some(false) => json!({"type": kind, "status": "False", "reason": "Because"}),
                None => json!({"type": kind, "status": "Unknown", "message": "who knows"}),
            };
            kinds.into_iter().zip(facts).map(condition).collect()
        })
    }

    fn addresses() -> impl Strategy<Value = Value> {
        subsequence(vec!["10.0.0.1", "10.0.0.2", "fd00::1"], 0..=3)
            .prop_map(|ips| ips.into_iter().map(|ip| json!({"ip": ip})).collect())
    }

    prop_compose! {
        fn status()(
            phase in prop_oneof!["Pending", "Running"], reason in any::<Option<bool>>(), conditions in conditions(),
            pod_ips in addresses(), restarts in proptest::option::of(0..3),
        ) -> RawObject {
            let mut status = object(json!({"phase": phase, "conditions": conditions, "podIPs": pod_ips}));
            if let Some(reason) = reason {
                status.insert("reason".to_owned(), json!(if reason { "A" } else { "B" }));
            }
            if let Some(restarts) = restarts {
                status.insert("containerStatuses".to_owned(), json!([{"name": "c", "restartCount": restarts}]));
            }
            sorted(status)
        }
    }

    proptest! {
        #[test]
        fn the_patch_leads_exactly_to_what_is_wanted(now in status(), wanted in status()) {
            let result = match patch(&now, &wanted) {
                Some(patch) => sorted(applied(&now, &patch)),
                None => now.clone(),
            };
            prop_assert_eq!(&result, &wanted);
            prop_assert_eq!(patch(&result, &wanted), None, "and then there is nothing left to do");
        }
    }
}
