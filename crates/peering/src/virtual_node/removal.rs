//! Takes a VirtualNode's Node, virtual-kubelet and rights back, in this order and only by intent: the Node is closed, its
//! pods are evicted and awaited (the virtual-kubelet still runs: it sees that the remote ones are gone), then the Node
//! goes, then the virtual-kubelet, then the rights, then the finalizer.
//!
//! The Node goes before the virtual-kubelet because a DaemonSet that tolerates everything puts pods on it for as long as
//! it is there, and nobody but the virtual-kubelet can take their remote twins away.

use std::time::Instant;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PropagationPolicy};
use spillway_api::node::NodeKind;
use spillway_api::offloading::{VirtualNode, VirtualNodeConditionStatus as Status, VirtualNodeConditionType as Type};
use spillway_api::well_known::finalizer;
use spillway_operator::ObjectKey;
use spillway_operator::error::{found, only, settled};
use spillway_operator::workers::Action;

use super::controller::{Controller, written_by_us};
use super::cordon;
use super::drain::{self, Drain, LOOK_AGAIN, Next};
use super::error::Error;
use super::forge::Names;
use super::observe::NodeSeen;
use super::status::{Progress, Stage};

impl Controller {
    /// The VirtualNode is being deleted.
    pub(super) async fn remove(&self, key: &ObjectKey, virtual_node: &VirtualNode) -> Result<Action, Error> {
        if !virtual_node.finalizers().iter().any(|name| name == finalizer::VIRTUAL_NODE) {
            return Ok(Action::Await);
        }
        let options = self.options_of(virtual_node);
        let report = |stage| self.report(key, virtual_node, options.as_deref(), stage);
        if let Cleared::NotYet { stage, action } = self.clear_node(key, virtual_node).await? {
            if let Some(stage) = stage {
                report(stage).await?;
            }
            return Ok(action);
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

    /// Takes the Node away that is not wanted any more, its pods first.
    pub(super) async fn clear_node(&self, key: &ObjectKey, virtual_node: &VirtualNode) -> Result<Cleared, Error> {
        let mut drain = self.drain_of(key);
        if let Some(left) = drain.rests(Instant::now()) {
            return Ok(Cleared::NotYet { stage: None, action: Action::LookAgain(left) });
        }
        let node = match self.living_node(key, virtual_node).await? {
            LivingNode::Foreign => return Ok(Cleared::Done),
            LivingNode::Absent => None,
            LivingNode::Ours(node) => Some(node),
        };
        if let Some(node) = &node {
            self.set_cordon(node, true).await?;
        }
        let pods = self.bound_pods(&key.name).await?;
        let interval = drain::interval(pods.len());
        let (stage, action) = match (drain::next(&pods, node.is_some()), node) {
            (Next::NodeMayGo { .. }, None) => {
                self.drains.lock().remove(key);
                return Ok(Cleared::Done);
            }
            // Without a Node, the local halves of those that come back are collected while nobody can take the remote ones
            // away: it stays until the remote cluster can be reached.
            (Next::NodeMayGo { pods: 0 }, Some(node)) => {
                self.end_node(&node, virtual_node, drain.progress(&pods)).await?
            }
            (Next::NodeMayGo { .. }, Some(node)) if NodeSeen::of(&node).ready => {
                self.end_node(&node, virtual_node, drain.progress(&pods)).await?
            }
            (next, node) => {
                match next {
                    Next::Evict(staying) => self.evict(&mut drain, staying).await?,
                    Next::Delete(staying) => self.delete_pods(staying).await?,
                    Next::NodeMayGo { .. } => {}
                }
                let progress = drain.progress(&pods);
                drain.rest(interval, Instant::now());
                self.drains.lock().insert(key.clone(), drain);
                let stage = if node.is_some() { Stage::Draining(progress) } else { Stage::EndingNode(progress) };
                (stage, Action::LookAgain(interval))
            }
        };
        Ok(Cleared::NotYet { stage: Some(stage), action })
    }

    /// The virtual-kubelet must have been told, or it would put the Node back; the event of having told it wakes this up.
    async fn end_node(
        &self,
        node: &Node,
        virtual_node: &VirtualNode,
        progress: Progress,
    ) -> Result<(Stage, Action), Error> {
        if !is_told_of_end(virtual_node) {
            return Ok((Stage::EndingNode(progress), Action::Await));
        }
        self.delete_node(node).await?;
        Ok((Stage::EndingNode(progress), Action::LookAgain(LOOK_AGAIN)))
    }

    /// Asked of the API server itself: what follows cannot be undone.
    async fn living_node(&self, key: &ObjectKey, virtual_node: &VirtualNode) -> Result<LivingNode, Error> {
        if self.older_namesake(key, virtual_node).is_some() {
            return Ok(LivingNode::Foreign);
        }
        let node = found(Api::<Node>::all(self.client.clone()).get(&key.name).await)
            .map_err(Error::request(format!("read the Node {}", key.name)))?;
        let cluster_id = virtual_node.spec.cluster_id.as_ref().map_or("", |id| id.as_str());
        Ok(match node {
            None => LivingNode::Absent,
            Some(node) if NodeKind::of(&node).leads_to(cluster_id) => LivingNode::Ours(Box::new(node)),
            Some(_) => LivingNode::Foreign,
        })
    }

    /// Opens a Node again that was closed to be taken away, and is wanted after all.
    pub(super) async fn reopen(&self, key: &ObjectKey) -> Result<(), Error> {
        self.drains.lock().remove(key);
        let name = &*key.name;
        let node = found(Api::<Node>::all(self.client.clone()).get(name).await)
            .map_err(Error::request(format!("read the Node {name}")))?;
        match node {
            Some(node) => self.set_cordon(&node, false).await,
            None => Ok(()),
        }
    }

    async fn set_cordon(&self, node: &Node, closed: bool) -> Result<(), Error> {
        let Some(patch) = cordon::patch(node, closed) else {
            return Ok(());
        };
        let (api, name) = (Api::<Node>::all(self.client.clone()), node.name_any());
        let patched = api.patch(&name, &written_by_us(), &Patch::Merge(patch)).await;
        found(patched).map_err(Error::request(format!("cordon the Node {name}")))?;
        Ok(())
    }

    async fn delete_node(&self, node: &Node) -> Result<(), Error> {
        let name = node.name_any();
        let params = DeleteParams { preconditions: node.uid().map(only), ..DeleteParams::default() };
        let deleted = Api::<Node>::all(self.client.clone()).delete(&name, &params).await;
        settled(deleted).map_err(Error::request(format!("delete the Node {name}")))
    }

    fn drain_of(&self, key: &ObjectKey) -> Drain {
        self.drains.lock().get(key).cloned().unwrap_or_default()
    }
}

/// How far a Node that is not wanted has been taken away.
pub(super) enum Cleared {
    /// Nothing is left of it, or the Node of this name is somebody else's, which is not even waited for.
    Done,
    /// The stage to report, if there is news.
    NotYet { stage: Option<Stage>, action: Action },
}

enum LivingNode {
    Absent,
    Ours(Box<Node>),
    Foreign,
}

/// Whether the VirtualNode says that its Node is being deleted.
fn is_told_of_end(virtual_node: &VirtualNode) -> bool {
    let conditions = virtual_node.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|one| one.type_ == Type::Node && one.status == Status::Deleting)
}
