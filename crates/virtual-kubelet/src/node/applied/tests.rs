use super::*;
use crate::node::forge::tests::{facts, made, virtual_node};
use proptest::prelude::*;
use spillway_api::well_known::taint;

/// What the API server makes of a merge patch.
fn apply(node: &Node, patch: &Value) -> Node {
    fn merge(object: &mut Value, patch: &Value) {
        match (object.as_object_mut(), patch.as_object()) {
            (Some(fields), Some(patch)) => {
                for (key, value) in patch {
                    if value.is_null() {
                        fields.remove(key);
                    } else {
                        merge(fields.entry(key).or_insert(json!({})), value);
                    }
                }
            }
            _ => *object = patch.clone(),
        }
    }
    let mut object = json!(node);
    merge(&mut object, patch);
    serde_json::from_value(object).unwrap()
}

fn taint_keys(node: &Node) -> Vec<&str> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().map(|taint| taint.key.as_str()).collect()
}

#[test]
fn a_node_as_it_was_made_needs_nothing() {
    assert_eq!(patch(&made(), &virtual_node(), &facts()), None);
}

#[test]
fn what_the_virtual_node_drops_goes_and_what_others_added_stays() {
    let mut node = made();
    node.metadata.labels.get_or_insert_default().insert("theirs".into(), "1".into());
    node.metadata.annotations.get_or_insert_default().insert("theirs".into(), "1".into());
    let theirs = Taint { key: "theirs".into(), effect: "NoSchedule".into(), ..Taint::default() };
    node.spec.as_mut().unwrap().taints.as_mut().unwrap().push(theirs);
    let mut changed = virtual_node();
    (changed.labels, changed.annotations) = (Map::new(), [("new".to_owned(), "2".to_owned())].into());
    changed.taints = vec![Taint { key: "fresh".into(), effect: "NoExecute".into(), ..Taint::default() }];
    let after = apply(&node, &patch(&node, &changed, &facts()).unwrap());
    let (labels, annotations) = (after.metadata.labels.as_ref().unwrap(), after.metadata.annotations.as_ref().unwrap());
    assert_eq!((labels.get("zone"), labels.get("theirs").map(String::as_str)), (None, Some("1")));
    assert_eq!(labels["kubernetes.io/arch"], "amd64", "back to the default");
    assert_eq!((annotations.get("a"), annotations["new"].as_str()), (None, "2"));
    assert_eq!(annotations["theirs"], "1");
    assert_eq!(taint_keys(&after), [taint::NOT_ALLOWED, "theirs", "fresh"]);
    assert_eq!(patch(&after, &changed, &facts()), None, "once is enough");
}

#[test]
fn the_taint_that_keeps_pods_away_stays_away_once_it_was_taken_away() {
    let mut node = made();
    node.spec.as_mut().unwrap().taints.as_mut().unwrap().retain(|taint| taint.key != taint::NOT_ALLOWED);
    assert_eq!(patch(&node, &virtual_node(), &facts()), None);
    let mut insisting = virtual_node();
    insisting.taints.push(Taint { key: taint::NOT_ALLOWED.into(), effect: "NoExecute".into(), ..Taint::default() });
    assert_eq!(patch(&node, &insisting, &facts()), None);
}

#[test]
fn reserved_labels_are_restored() {
    let mut node = made();
    let labels = node.metadata.labels.as_mut().unwrap();
    labels.remove("liqo.io/type");
    labels.insert("liqo.io/remote-cluster-id".into(), "stolen".into());
    let after = apply(&node, &patch(&node, &virtual_node(), &facts()).unwrap());
    assert_eq!(after.metadata.labels, made().metadata.labels);
}

#[test]
fn a_list_of_taints_is_replaced_only_if_it_is_still_the_one_seen() {
    let mut node = made();
    node.metadata.resource_version = Some("7".into());
    let mut changed = virtual_node();
    changed.taints[0].value = Some("v100".into());
    let patch = patch(&node, &changed, &facts()).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["spec"]["taints"][1], json!({"key": "gpu", "value": "v100", "effect": "NoSchedule"}));
}

#[test]
fn a_note_that_cannot_be_read_takes_nothing_away() {
    let mut node = made();
    node.metadata.annotations.as_mut().unwrap().insert(annotation::NODE_APPLIED.into(), "{".into());
    let mut changed = virtual_node();
    changed.labels.clear();
    let after = apply(&node, &patch(&node, &changed, &facts()).unwrap());
    assert_eq!(after.metadata.labels.unwrap()["zone"], "z");
}

fn maps() -> impl Strategy<Value = Map> {
    proptest::collection::btree_map("[a-d]", "[12]", 0..4)
}

fn some_taints() -> impl Strategy<Value = Vec<Taint>> {
    let taint = ("[a-c]", "[12]", prop_oneof![Just("NoSchedule"), Just("NoExecute")]);
    let taint = taint.prop_map(|(key, value, effect)| Taint {
        key,
        value: Some(value),
        effect: effect.to_owned(),
        time_added: None,
    });
    proptest::collection::vec(taint, 0..4)
}

proptest! {
    #[test]
    fn any_change_settles_at_once_and_touches_nothing_of_others(
        first in (maps(), maps(), some_taints()), second in (maps(), maps(), some_taints()), theirs in maps(),
    ) {
        let spec = |(labels, annotations, taints): (Map, Map, Vec<Taint>)| VirtualNodeSpec {
            labels, annotations, taints, ..VirtualNodeSpec::default()
        };
        let (first, second) = (spec(first), spec(second));
        let mut node = Node::default();
        complete(&mut node, &first, &facts());
        let theirs: Map = theirs.into_iter().map(|(key, value)| (format!("theirs-{key}"), value)).collect();
        node.metadata.labels.get_or_insert_default().extend(theirs.clone());
        let after = match patch(&node, &second, &facts()) {
            Some(patch) => apply(&node, &patch),
            None => node.clone(),
        };
        prop_assert_eq!(patch(&after, &second, &facts()), None);
        let mut wanted = forge::labels(&second, &facts());
        wanted.extend(theirs);
        prop_assert_eq!(after.metadata.labels, Some(wanted));
        let mut taints = after.spec.unwrap_or_default().taints.unwrap_or_default();
        let mut wanted = forge::taints(&second);
        taints.sort_by_key(id);
        wanted.sort_by_key(id);
        prop_assert_eq!(taints, wanted);
    }
}
