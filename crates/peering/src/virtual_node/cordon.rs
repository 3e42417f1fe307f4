//! Keeps new pods off a Node that is to go: the scheduler's by a cordon, those of DaemonSets by a taint. Pure.

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use serde_json::{Value, json};
use spillway_api::well_known::taint;

pub fn is_draining(node: &Node) -> bool {
    taints(node).iter().any(is_ours)
}

/// The merge patch that closes the Node to new pods, or opens it again; `None` if it is so already. On the very version
/// that was seen, because the list of taints is replaced whole.
pub fn patch(node: &Node, closed: bool) -> Option<Value> {
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
    if (cordoned, is_draining(node)) == (closed, closed) {
        return None;
    }
    let mut taints: Vec<_> = taints(node).iter().filter(|taint| !is_ours(taint)).cloned().collect();
    if closed {
        taints.push(draining());
    }
    Some(json!({
        "metadata": {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version},
        "spec": {"unschedulable": closed, "taints": taints},
    }))
}

/// Whether a DaemonSet would put a pod like this one back on the Node.
pub fn defies(pod: &Pod) -> bool {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
    tolerations.into_iter().flatten().any(tolerates)
}

fn tolerates(toleration: &Toleration) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let exists = toleration.operator.as_deref() == Some("Exists");
    let value = toleration.value.as_deref().unwrap_or_default();
    (effect.is_empty() || effect == taint::DRAINING_EFFECT)
        && ((key.is_empty() && exists) || (key == taint::DRAINING && (exists || value.is_empty())))
}

fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

fn is_ours(taint: &Taint) -> bool {
    (taint.key.as_str(), taint.effect.as_str()) == (taint::DRAINING, taint::DRAINING_EFFECT)
}

fn draining() -> Taint {
    Taint { key: taint::DRAINING.to_owned(), effect: taint::DRAINING_EFFECT.to_owned(), ..Taint::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn a_node_is_closed_once_and_opened_again_without_touching_other_taints() {
        let theirs = json!({"key": "theirs", "effect": "NoExecute"});
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "away", "uid": "u", "resourceVersion": "7"}, "spec": {"taints": [theirs]},
        }))
        .unwrap();
        assert_eq!(patch(&node, false), None);
        let closing = patch(&node, true).unwrap();
        assert_eq!(closing["metadata"], json!({"uid": "u", "resourceVersion": "7"}));
        let closed: Node = serde_json::from_value(json!({"metadata": {}, "spec": closing["spec"]})).unwrap();
        assert!(is_draining(&closed));
        assert_eq!(patch(&closed, true), None);
        let opening = patch(&closed, false).unwrap();
        assert_eq!(opening["spec"], json!({"unschedulable": false, "taints": [theirs]}));
    }

    #[rstest]
    #[case(json!([]), false)]
    #[case(json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]), false)]
    #[case(json!([{"operator": "Exists"}]), true)]
    #[case(json!([{"operator": "Exists", "effect": "NoSchedule"}]), true)]
    #[case(json!([{"operator": "Exists", "effect": "NoExecute"}]), false)]
    #[case(json!([{"key": "offloading.spillway.dev/draining", "operator": "Exists"}]), true)]
    #[case(json!([{"key": "offloading.spillway.dev/draining", "operator": "Equal", "value": "x"}]), false)]
    fn only_a_pod_that_tolerates_the_taint_comes_back(#[case] tolerations: Value, #[case] defies: bool) {
        let pod = json!({"metadata": {}, "spec": {"containers": [], "tolerations": tolerations}});
        assert_eq!(super::defies(&serde_json::from_value(pod).unwrap()), defies);
    }
}
