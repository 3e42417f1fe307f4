//! What the VirtualNode puts on its Node and takes away again. Pure.
//!
//! An annotation of the Node remembers which labels, annotations and taints are ours. What the VirtualNode no longer has
//! is taken away; what anybody else put there stays.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use spillway_api::k8s::{Node, Taint};
use spillway_api::offloading::VirtualNodeSpec;
use spillway_api::well_known::annotation;

use super::forge::{self, Facts};

type Map = BTreeMap<String, String>;
type Keys = BTreeSet<String>;

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Applied {
    labels: Keys,
    annotations: Keys,
    /// As `<key>:<effect>`.
    taints: Keys,
}

impl Applied {
    /// A note that cannot be read counts as none: then nothing is taken away.
    fn noted_on(node: &Node) -> Self {
        let note = node.metadata.annotations.as_ref().and_then(|all| all.get(annotation::NODE_APPLIED));
        note.and_then(|note| serde_json::from_str(note).ok()).unwrap_or_default()
    }
}

/// What a Node is to bear: its labels, its annotations, its taints and its provider ID.
#[derive(Debug, PartialEq)]
struct Whole {
    labels: Map,
    annotations: Map,
    taints: Vec<Taint>,
    provider_id: Option<String>,
}

impl Whole {
    fn of(node: &Node) -> Self {
        let spec = node.spec.clone().unwrap_or_default();
        Self {
            labels: node.metadata.labels.clone().unwrap_or_default(),
            annotations: node.metadata.annotations.clone().unwrap_or_default(),
            taints: spec.taints.unwrap_or_default(),
            provider_id: spec.provider_id.filter(|id| !id.is_empty()),
        }
    }

    fn wanted(node: &Node, virtual_node: &VirtualNodeSpec, facts: &Facts) -> Self {
        let (there, before) = (Self::of(node), Applied::noted_on(node));
        let (labels, annotations) = (forge::labels(virtual_node, facts), forge::annotations(virtual_node, facts));
        let taints = forge::taints(virtual_node);
        let now = Applied {
            labels: labels.keys().cloned().collect(),
            annotations: annotations.keys().cloned().collect(),
            taints: taints.iter().map(id).collect(),
        };
        let mut annotations = updated(there.annotations, annotations, &before.annotations);
        annotations.insert(annotation::NODE_APPLIED.to_owned(), json!(now).to_string());
        Self {
            labels: updated(there.labels, labels, &before.labels),
            annotations,
            taints: tainted(there.taints, taints, &before.taints),
            // The API server lets it be set once.
            provider_id: there.provider_id.or_else(|| virtual_node.provider_id.clone().filter(|id| !id.is_empty())),
        }
    }
}

/// Puts on a Node that is to be created what the VirtualNode wants there.
pub fn complete(node: &mut Node, virtual_node: &VirtualNodeSpec, facts: &Facts) {
    let Whole { labels, annotations, taints, provider_id } = Whole::wanted(node, virtual_node, facts);
    (node.metadata.labels, node.metadata.annotations) = (Some(labels), Some(annotations));
    let spec = node.spec.get_or_insert_default();
    (spec.taints, spec.provider_id) = (Some(taints), provider_id);
}

/// The merge patch that brings a Node there; `None` if it is.
pub fn patch(node: &Node, virtual_node: &VirtualNodeSpec, facts: &Facts) -> Option<Value> {
    let (there, wanted) = (Whole::of(node), Whole::wanted(node, virtual_node, facts));
    if there == wanted {
        return None;
    }
    // The list of taints is replaced whole: it must be the very one that was seen.
    let mut patch = json!({"metadata": {
        "uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version,
        "labels": changes(&there.labels, &wanted.labels),
        "annotations": changes(&there.annotations, &wanted.annotations),
    }});
    if there.taints != wanted.taints {
        patch["spec"]["taints"] = json!(wanted.taints);
    }
    if there.provider_id != wanted.provider_id {
        patch["spec"]["providerID"] = json!(wanted.provider_id);
    }
    Some(patch)
}

fn updated(mut there: Map, wanted: Map, before: &Keys) -> Map {
    there.retain(|key, _| !before.contains(key) || wanted.contains_key(key));
    there.extend(wanted);
    there
}

fn tainted(there: Vec<Taint>, wanted: Vec<Taint>, before: &Keys) -> Vec<Taint> {
    let known: Keys = there.iter().map(id).collect();
    let wanted_as = |taint: &Taint| wanted.iter().find(|wanted| id(wanted) == id(taint));
    let kept = there.into_iter().filter_map(|taint| match wanted_as(&taint) {
        Some(wanted) if wanted.value != taint.value => Some(wanted.clone()),
        Some(_) => Some(taint),
        None => (!before.contains(&id(&taint))).then_some(taint),
    });
    let kept: Vec<_> = kept.collect();
    kept.into_iter().chain(wanted.iter().filter(|taint| !known.contains(&id(taint))).cloned()).collect()
}

fn id(taint: &Taint) -> String {
    format!("{}:{}", taint.key, taint.effect)
}

fn changes(there: &Map, wanted: &Map) -> BTreeMap<String, Option<String>> {
    let changed = wanted.iter().filter(|(key, value)| there.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| (key.clone(), Some(value.clone())));
    let gone = there.keys().filter(|key| !wanted.contains_key(*key)).map(|key| (key.clone(), None));
    changed.chain(gone).collect()
}

#[cfg(test)]
mod tests;
