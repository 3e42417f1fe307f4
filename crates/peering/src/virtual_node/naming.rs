//! Whose Node a name stands for.

use std::sync::Arc;

use kube::ResourceExt;
use spillway_api::node::NodeKind;
use spillway_api::offloading::VirtualNode;
use spillway_operator::ObjectKey;

use super::controller::Controller;
use super::observe::NodeSeen;

impl Controller {
    /// The Node of this VirtualNode: of its name, virtual, and leading to the same remote cluster.
    pub(super) fn node_of(&self, virtual_node: &VirtualNode) -> Option<Arc<NodeSeen>> {
        let node = self.nodes.get(&ObjectKey::new("", virtual_node.name_any()))?;
        let cluster_id = virtual_node.spec.cluster_id.as_ref()?;
        node.kind.leads_to(cluster_id.as_str()).then_some(node)
    }

    /// Why the Node of this name cannot be the VirtualNode's, if there is one and it cannot.
    pub(super) fn foreign_node(&self, virtual_node: &VirtualNode) -> Option<String> {
        let name = virtual_node.name_any();
        let node = self.nodes.get(&ObjectKey::new("", name.as_str()))?;
        let cluster_id = virtual_node.spec.cluster_id.as_ref()?.as_str();
        if node.kind.leads_to(cluster_id) {
            return None;
        }
        let what = match &node.kind {
            NodeKind::Real => "is no virtual node".to_owned(),
            NodeKind::Virtual { cluster_id: other } => {
                format!("leads to another cluster, {}", other.as_deref().unwrap_or_default())
            }
        };
        Some(format!(
            "the Node {name} exists and {what}: neither it nor its pods are touched; delete this VirtualNode and make one \
             with another name, or delete that Node"
        ))
    }

    /// Two VirtualNodes of one name would be one Node: the older one has it.
    pub(super) fn older_namesake(&self, key: &ObjectKey, virtual_node: &VirtualNode) -> Option<ObjectKey> {
        let age = |key: &ObjectKey, virtual_node: &VirtualNode| {
            let created = virtual_node.creation_timestamp().map(|time| time.0);
            (created, key.clone())
        };
        let own = age(key, virtual_node);
        let namesakes = self.virtual_nodes.keys().into_iter();
        namesakes
            .filter(|other| other.name == key.name && other != key)
            .find(|other| self.virtual_nodes.get(other).is_some_and(|node| age(other, &node) < own))
    }
}
