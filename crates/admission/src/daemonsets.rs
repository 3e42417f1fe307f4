//! Keeps DaemonSets off virtual nodes.
//!
//! It is the DaemonSet that is changed and never its pods: the controller judges by the template which nodes get a pod, and
//! then pins each pod to its node by name in place of the template's terms. A pod changed on its own could never be
//! scheduled, and would be made again and again.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation};
use serde_json::{Map, Value, json};
use spillway_api::well_known::label;

use crate::review::{Handler, Request};

pub const PATH: &str = "/mutate/daemonsets";

pub struct KeepOffVirtualNodes;

impl Handler for KeepOffVirtualNodes {
    fn path(&self) -> &'static str {
        PATH
    }

    fn review(&self, request: &Request) -> Vec<PatchOperation> {
        match &request.object {
            Some(object) if object.metadata.deletion_timestamp.is_none() => {
                mutate(&object.data, request.old_object.as_ref().map(|before| &before.data))
            }
            _ => Vec::new(),
        }
    }
}

/// Every virtual node has these and no real one does: whoever names one of them has decided about virtual nodes.
const NODE_LABELS: [&str; 2] = [label::NODE_TYPE, label::REMOTE_CLUSTER_ID];
const POD: [&str; 3] = ["spec", "template", "spec"];
const REQUIRED: [&str; 3] = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];

/// The operations that add "not on virtual nodes" to whatever the template requires of its nodes. Terms are alternatives, so
/// each gets it, unless it speaks of virtual nodes itself.
///
/// `before` is the DaemonSet that is updated. An update that leaves the template as it was gets no change, because it would
/// restart every pod of a DaemonSet of which only a label was touched.
pub fn mutate(daemonset: &Value, before: Option<&Value>) -> Vec<PatchOperation> {
    if before.is_some_and(|before| template(before) == template(daemonset)) {
        return Vec::new();
    }
    let (mut path, mut parent) = (Vec::new(), Some(daemonset));
    for field in POD {
        path.push(field.to_owned());
        parent = parent.and_then(|parent| parent.get(field));
    }
    let Some(mut parent) = parent.and_then(Value::as_object) else {
        return Vec::new();
    };
    let selector = parent.get("nodeSelector").and_then(Value::as_object);
    if selector.is_some_and(|selector| NODE_LABELS.iter().any(|label| selector.contains_key(*label))) {
        return Vec::new();
    }
    for (depth, field) in REQUIRED.iter().enumerate() {
        path.push((*field).to_owned());
        match parent.get(*field) {
            Some(Value::Object(found)) => parent = found,
            None | Some(Value::Null) => {
                let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [requirement()]}]});
                let missing = REQUIRED[depth + 1..].iter().rev();
                return vec![add(path, missing.fold(terms, |inner, field| json!({*field: inner})))];
            }
            Some(_) => return Vec::new(),
        }
    }
    path.push("nodeSelectorTerms".to_owned());
    let terms = parent.get("nodeSelectorTerms").and_then(Value::as_array);
    let terms = terms.into_iter().flatten().enumerate();
    terms.filter_map(|(at, term)| narrow(term.as_object()?, [&*path, &[at.to_string()]].concat())).collect()
}

fn template(daemonset: &Value) -> Option<&Value> {
    daemonset.pointer("/spec/template")
}

/// The operation that adds the requirement to one term. An empty term matches no node, and must not begin to.
fn narrow(term: &Map<String, Value>, mut path: Vec<String>) -> Option<PatchOperation> {
    path.push("matchExpressions".to_owned());
    let fields = term.get("matchFields").and_then(Value::as_array);
    match term.get("matchExpressions") {
        Some(Value::Array(expressions)) if !expressions.is_empty() => {
            let keys = expressions.iter().filter_map(|expression| expression.get("key")?.as_str());
            if keys.into_iter().any(|key| NODE_LABELS.contains(&key)) {
                return None;
            }
            path.push("-".to_owned());
            Some(add(path, requirement()))
        }
        None | Some(Value::Null | Value::Array(_)) if fields.is_some_and(|fields| !fields.is_empty()) => {
            Some(add(path, json!([requirement()])))
        }
        _ => None,
    }
}

fn requirement() -> Value {
    json!({"key": label::NODE_TYPE, "operator": "NotIn", "values": [label::NODE_TYPE_VIRTUAL]})
}

fn add(path: Vec<String>, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path), value })
}

#[cfg(test)]
mod tests;
