//! Takes a VirtualNode's Node, virtual-kubelet and rights back, in this order and only by intent: pods first (their
//! users move them), then the virtual-kubelet, then the Node, then the rights, then the finalizer.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PartialObjectMeta, PropagationPolicy};
use spillway_api::offloading::VirtualNode;
use spillway_api::well_known::finalizer;
use spillway_operator::ObjectKey;
use spillway_operator::error::{found, only};
use spillway_operator::workers::Action;

use super::controller::Controller;
use super::error::Error;
use super::forge::Names;
use super::observe::NodeSeen;
use super::status::Stage;

/// Pods of other namespaces are not watched here: while some are in the way, they are counted again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
const PAGE: u32 = 500;

impl Controller {
    /// The VirtualNode is being deleted.
    pub(super) async fn remove(&self, key: &ObjectKey, virtual_node: &VirtualNode) -> Result<Action, Error> {
        if !virtual_node.finalizers().iter().any(|name| name == finalizer::VIRTUAL_NODE) {
            return Ok(Action::Await);
        }
        let options = self.options_of(virtual_node);
        let report = |stage| self.report(key, virtual_node, options.as_deref(), stage);
        let node = self.living_node(key, virtual_node).await?;
        if node != LivingNode::Foreign {
            let pods = self.bound_pods(&key.name).await?;
            if pods > 0 {
                report(Stage::Draining { pods }).await?;
                return Ok(Action::LookAgain(LOOK_AGAIN));
            }
        }
        let names = Names::of(key);
        // Foreground: the Deployment goes when its pods are gone, and no pod is made after it.
        let ended = self
            .deployments
            .delete::<Deployment>(&self.client, &names.in_tenant, PropagationPolicy::Foreground)
            .await?;
        if !ended || !self.pods_of(key).is_empty() {
            report(Stage::EndingKubelet).await?;
            return Ok(Action::LookAgain(LOOK_AGAIN));
        }
        if let LivingNode::Ours { uid } = node {
            report(Stage::EndingNode).await?;
            self.delete_node(&key.name, uid).await?;
            return Ok(Action::LookAgain(LOOK_AGAIN));
        }
        let (client, background) = (&self.client, || PropagationPolicy::Background);
        let (bindings, cluster) = (&self.role_bindings, &self.cluster_bindings);
        let gone = [
            cluster.delete::<ClusterRoleBinding>(client, &names.cluster_binding, background()).await?,
            bindings.delete::<RoleBinding>(client, &names.node_lease_binding, background()).await?,
            bindings.delete::<RoleBinding>(client, &names.in_tenant, background()).await?,
            self.service_accounts.delete::<ServiceAccount>(client, &names.in_tenant, background()).await?,
        ];
        if gone.contains(&false) {
            return Ok(Action::LookAgain(LOOK_AGAIN));
        }
        self.set_finalizer(virtual_node, false).await?;
        tracing::info!(virtual_node = %key, "removed");
        Ok(Action::Await)
    }

    /// The VirtualNode stays, but its Node is not wanted (`createNode: false`).
    pub(super) async fn unmake_node(
        &self,
        key: &ObjectKey,
        virtual_node: &VirtualNode,
    ) -> Result<(Stage, Action), Error> {
        let Some(node) = self.node_of(virtual_node) else {
            return Ok((Stage::Made, Action::Await));
        };
        let pods = self.bound_pods(&key.name).await?;
        if pods > 0 {
            return Ok((Stage::Draining { pods }, Action::LookAgain(LOOK_AGAIN)));
        }
        self.delete_node(&key.name, node.uid.clone()).await?;
        Ok((Stage::EndingNode, Action::LookAgain(LOOK_AGAIN)))
    }

    /// Asked of the API server itself: a Node that somebody else owns is not even waited for.
    async fn living_node(&self, key: &ObjectKey, virtual_node: &VirtualNode) -> Result<LivingNode, Error> {
        if self.older_namesake(key, virtual_node).is_some() {
            return Ok(LivingNode::Foreign);
        }
        let node = found(Api::<Node>::all(self.client.clone()).get(&key.name).await)
            .map_err(Error::request(format!("read the Node {}", key.name)))?;
        let cluster_id = virtual_node.spec.cluster_id.as_ref().map(|id| id.as_str());
        Ok(match node.map(|node| NodeSeen::of(&node)) {
            None => LivingNode::Absent,
            Some(Some(seen)) if seen.cluster_id.as_deref() == cluster_id => LivingNode::Ours { uid: seen.uid },
            Some(_) => LivingNode::Foreign,
        })
    }

    async fn delete_node(&self, name: &str, uid: String) -> Result<(), Error> {
        let params = DeleteParams { preconditions: Some(only(uid)), ..DeleteParams::default() };
        let deleted = Api::<Node>::all(self.client.clone()).delete(name, &params).await;
        found(deleted).map_err(Error::request(format!("delete the Node {name}")))?;
        Ok(())
    }

    async fn bound_pods(&self, node: &str) -> Result<usize, Error> {
        let api = Api::<Pod>::all(self.client.clone());
        let mut params = ListParams::default().fields(&format!("spec.nodeName={node}")).limit(PAGE);
        let mut bound = 0;
        loop {
            let page = api
                .list_metadata(&params)
                .await
                .map_err(Error::request(format!("list the pods of the Node {node}")))?;
            bound += page.items.iter().filter(|pod| is_moved_by_hand(pod)).count();
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(bound),
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum LivingNode {
    Absent,
    Ours { uid: String },
    Foreign,
}

/// Pods of a DaemonSet and mirrors of static pods belong to the node and go with it.
fn is_moved_by_hand(pod: &PartialObjectMeta<Pod>) -> bool {
    let ObjectMeta { annotations, owner_references, .. } = &pod.metadata;
    let mirror =
        annotations.as_ref().is_some_and(|annotations| annotations.contains_key("kubernetes.io/config.mirror"));
    let of_daemon_set =
        owner_references.iter().flatten().any(|owner| owner.kind == "DaemonSet" && owner.controller == Some(true));
    !mirror && !of_daemon_set
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(metadata: Value) -> PartialObjectMeta<Pod> {
        serde_json::from_value(
            json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata}),
        )
        .expect("metadata")
    }

    #[test]
    fn pods_that_belong_to_the_node_are_not_waited_for() {
        let owned = |kind: &str| {
            json!({"name": "p", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": true}]})
        };
        assert!(is_moved_by_hand(&pod(json!({"name": "p"}))));
        assert!(is_moved_by_hand(&pod(owned("ReplicaSet"))));
        assert!(!is_moved_by_hand(&pod(owned("DaemonSet"))));
        let mirror = json!({"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}});
        assert!(!is_moved_by_hand(&pod(mirror)));
    }
}
