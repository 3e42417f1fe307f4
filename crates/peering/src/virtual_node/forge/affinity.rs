//! A virtual-kubelet never runs on a virtual node: it would have to run for the node to run it.

use k8s_openapi::api::core::v1::{Affinity, NodeSelectorRequirement, NodeSelectorTerm};
use spillway_api::well_known::label;

/// What was asked for, and real nodes only. Terms are alternatives: each gets the requirement.
pub fn on_real_nodes(asked: Option<Affinity>) -> Affinity {
    let mut affinity = asked.unwrap_or_default();
    let node_affinity = affinity.node_affinity.get_or_insert_default();
    let required = node_affinity.required_during_scheduling_ignored_during_execution.get_or_insert_default();
    let terms = &mut required.node_selector_terms;
    // A term without requirements matches no node, and would match every real one with ours.
    terms.retain(|term| term.match_expressions.is_some() || term.match_fields.is_some());
    if terms.is_empty() {
        terms.push(NodeSelectorTerm::default());
    }
    for term in terms {
        term.match_expressions.get_or_insert_default().push(NodeSelectorRequirement {
            key: label::NODE_TYPE.to_owned(),
            operator: "NotIn".to_owned(),
            values: Some(vec![label::NODE_TYPE_VIRTUAL.to_owned()]),
        });
    }
    affinity
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_asked_for_stays_and_every_alternative_is_a_real_node() {
        let real = json!({"key": "liqo.io/type", "operator": "NotIn", "values": ["virtual-node"]});
        let terms = |affinity: Affinity| {
            json!(affinity)["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
                .clone()
        };
        assert_eq!(terms(on_real_nodes(None)), json!([{"matchExpressions": [real]}]));
        let asked = json!({
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
            ]}},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []},
        });
        let merged = on_real_nodes(serde_json::from_value(asked.clone()).unwrap());
        assert_eq!(json!(merged)["podAntiAffinity"], asked["podAntiAffinity"]);
        assert_eq!(
            terms(merged),
            json!([
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}, real]},
                {"matchExpressions": [real], "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
            ])
        );
    }
}
