//! Decides, per VirtualNode, what is next: make what is missing, take back what is no longer wanted, tell the user.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;
use spillway_api::core::ClusterId;
use spillway_api::offloading::{VirtualNode, VkOptionsTemplateSpec};
use spillway_api::well_known::{field_manager, finalizer};
use spillway_operator::error::found;
use spillway_operator::metrics::ControllerMetrics;
use spillway_operator::workers::{self, Action, Limits};
use spillway_operator::{Categorised, Category, Index, ObjectKey, Queue};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::children::Children;
use super::drain::Drain;
use super::error::Error;
use super::forge::{self, Inputs, Names};
use super::merge;
use super::observe::{KubeletPod, NodeSeen};
use super::removal::Cleared;
use super::status::{self, Observation, Stage};

pub struct Controller {
    pub(super) client: Client,
    pub(super) queue: Arc<Queue<ObjectKey>>,
    pub(super) home: watch::Receiver<Option<ClusterId>>,
    pub(super) default_options: ObjectKey,
    pub(super) virtual_nodes: Arc<Index<VirtualNode>>,
    pub(super) options: Arc<Index<VkOptionsTemplateSpec>>,
    pub(super) service_accounts: Children,
    pub(super) role_bindings: Children,
    pub(super) cluster_bindings: Children,
    pub(super) deployments: Children,
    pub(super) pods: Arc<Index<KubeletPod>>,
    pub(super) nodes: Arc<Index<NodeSeen>>,
    /// What is remembered of Nodes that are being drained, by VirtualNode.
    pub(super) drains: Mutex<HashMap<ObjectKey, Drain>>,
}

impl Controller {
    /// Without watches: somebody must feed its indexes.
    pub(super) fn new(client: Client, home: watch::Receiver<Option<ClusterId>>, default_options: ObjectKey) -> Self {
        Self {
            client,
            queue: Arc::default(),
            home,
            default_options,
            virtual_nodes: Arc::default(),
            options: Arc::default(),
            service_accounts: Children::default(),
            role_bindings: Children::default(),
            cluster_bindings: Children::default(),
            deployments: Children::default(),
            pods: Arc::default(),
            nodes: Arc::default(),
            drains: Mutex::default(),
        }
    }

    pub async fn run(self, metrics: ControllerMetrics, stop: CancellationToken) {
        let (queue, all, mut home) = (self.queue.clone(), self.enqueue_all(), self.home.clone());
        let controller = Arc::new(self);
        let work = workers::run(queue, Limits::default(), metrics, stop, move |key| {
            let controller = controller.clone();
            async move { controller.reconcile(&key).await }
        });
        let told_of_home = async {
            while home.changed().await.is_ok() {
                all(None);
            }
            // What is under way ends first.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = work => {}
            () = told_of_home => {}
        }
    }

    pub(super) async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let Some(virtual_node) = self.virtual_nodes.get(key) else {
            return Ok(Action::Await);
        };
        if virtual_node.meta().deletion_timestamp.is_some() {
            return self.remove(key, &virtual_node).await;
        }
        let options = self.options_of(&virtual_node);
        match self.establish(key, &virtual_node, options.as_deref()).await {
            Ok((stage, action)) => {
                if let Some(stage) = stage {
                    self.report(key, &virtual_node, options.as_deref(), stage).await?;
                }
                Ok(action)
            }
            Err(error) if error.category() == Category::Permanent => {
                let stage = Stage::Blocked { reason: error.reason(), message: error.to_string() };
                self.report(key, &virtual_node, options.as_deref(), stage).await?;
                match error {
                    // A watch tells when it is mended; only a foreign object in the way is not watched.
                    Error::Blocked { reason, .. } if reason != "NameTaken" => Ok(Action::Await),
                    error => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The stage to report, if there is news.
    async fn establish(
        &self,
        key: &ObjectKey,
        virtual_node: &VirtualNode,
        options: Option<&VkOptionsTemplateSpec>,
    ) -> Result<(Option<Stage>, Action), Error> {
        if let Some(other) = self.older_namesake(key, virtual_node) {
            return Err(Error::blocked(
                "NodeNameTaken",
                format!("the VirtualNode {other} has the same name and is older: a Node can stand for one only"),
            ));
        }
        if let Some(message) = self.foreign_node(virtual_node) {
            return Err(Error::blocked("NodeNameTaken", message));
        }
        let Some(options) = options else {
            return Err(Error::blocked(
                "VkOptionsTemplateNotFound",
                format!("there is no VkOptionsTemplate {}", self.options_key(virtual_node)),
            ));
        };
        let Some(home) = self.home.borrow().clone() else {
            return Err(Error::blocked("ClusterIDUnknown", "the ID of this cluster is not known yet"));
        };
        // A Node that is there is kept until its pods are gone, also if it is not wanted any more.
        let (wanted, node) = (forge::creates_node(virtual_node, options), self.node_of(virtual_node));
        let forged = forge::all(&Inputs { virtual_node, options, home: &home, create_node: wanted || node.is_some() })?;
        self.set_finalizer(virtual_node, true).await?;
        // Rights come first, so that the virtual-kubelet never starts without them.
        let client = &self.client;
        self.service_accounts.apply(client, &forged.service_account).await?;
        self.cluster_bindings.apply(client, &forged.cluster_binding).await?;
        self.role_bindings.apply(client, &forged.tenant_binding).await?;
        self.role_bindings.apply(client, &forged.node_lease_binding).await?;
        self.deployments.apply(client, &forged.deployment).await?;
        if !wanted {
            return Ok(match self.clear_node(key, virtual_node).await? {
                Cleared::Done => (Some(Stage::Made), Action::Await),
                Cleared::NotYet { stage, action } => (stage, action),
            });
        }
        if node.is_some_and(|node| node.draining) {
            self.reopen(key).await?;
        }
        Ok((Some(Stage::Made), Action::Await))
    }

    fn options_key(&self, virtual_node: &VirtualNode) -> ObjectKey {
        let reference = virtual_node.spec.vk_options_template_ref.as_ref();
        let named = reference.and_then(|reference| {
            let name = reference.name.as_deref().filter(|name| !name.is_empty())?;
            let namespace = reference.namespace.clone().or_else(|| virtual_node.namespace());
            Some(ObjectKey::new(namespace.unwrap_or_default(), name))
        });
        named.unwrap_or_else(|| self.default_options.clone())
    }

    pub(super) fn options_of(&self, virtual_node: &VirtualNode) -> Option<Arc<VkOptionsTemplateSpec>> {
        self.options.get(&self.options_key(virtual_node))
    }

    /// Sets or releases the finalizer, on the very version of the list that was seen.
    pub(super) async fn set_finalizer(&self, virtual_node: &VirtualNode, present: bool) -> Result<(), Error> {
        let finalizers = virtual_node.finalizers();
        if finalizers.iter().any(|name| name == finalizer::VIRTUAL_NODE) == present {
            return Ok(());
        }
        let mut wanted: Vec<_> = finalizers.iter().filter(|name| *name != finalizer::VIRTUAL_NODE).cloned().collect();
        if present {
            wanted.push(finalizer::VIRTUAL_NODE.to_owned());
        }
        let patch = json!({"metadata": {
            "uid": virtual_node.uid(), "resourceVersion": virtual_node.resource_version(), "finalizers": wanted,
        }});
        let api = self.api(virtual_node);
        let written = api.patch(&virtual_node.name_any(), &written_by_us(), &Patch::Merge(patch)).await;
        found(written).map_err(Error::request("change the finalizer of the VirtualNode"))?;
        Ok(())
    }

    pub(super) async fn report(
        &self,
        key: &ObjectKey,
        virtual_node: &VirtualNode,
        options: Option<&VkOptionsTemplateSpec>,
        stage: Stage,
    ) -> Result<(), Error> {
        let deployment = self.deployments.index.get(&Names::of(key).in_tenant);
        let pods = self.pods_of(key);
        let node = self.node_of(virtual_node);
        let observation = Observation {
            virtual_node,
            options,
            rollout: deployment.as_ref().and_then(|child| child.rollout.as_ref()),
            pods: &pods,
            node: node.as_deref(),
            stage,
        };
        let wanted = status::forge(&observation, Time(jiff::Timestamp::now()));
        let live = json!(virtual_node.status.clone().unwrap_or_default());
        let Some(patch) = merge::diff(&live, &json!(wanted)) else {
            return Ok(());
        };
        let (api, name) = (self.api(virtual_node), virtual_node.name_any());
        let patch = Patch::Merge(json!({"status": patch}));
        let written = api.patch_status(&name, &written_by_us(), &patch).await;
        found(written).map_err(Error::request("write the status of the VirtualNode"))?;
        Ok(())
    }

    pub(super) fn pods_of(&self, virtual_node: &ObjectKey) -> Vec<KubeletPod> {
        let pods = self.pods.keys().into_iter().filter_map(|key| self.pods.get(&key));
        pods.filter(|pod| pod.virtual_node == *virtual_node).map(|pod| (*pod).clone()).collect()
    }

    fn api(&self, virtual_node: &VirtualNode) -> Api<VirtualNode> {
        Api::namespaced(self.client.clone(), &virtual_node.namespace().unwrap_or_default())
    }
}

pub(super) fn written_by_us() -> PatchParams {
    PatchParams { field_manager: Some(field_manager::PEERING.to_owned()), ..PatchParams::default() }
}
