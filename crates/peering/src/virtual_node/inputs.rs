//! The watches that a VirtualNode depends on, and which VirtualNode each event is about.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::api::Api;
use kube::runtime::watcher;
use kube::{Client, Resource};
use spillway_api::core::ClusterId;
use spillway_api::offloading::VkOptionsTemplate;
use spillway_api::well_known::label;
use spillway_operator::{Guarded, ObjectKey};
use tokio::sync::watch;

use super::children::{Child, ChildKind, Children, MadeFor};
use super::controller::Controller;
use super::observe::{KubeletPod, NodeSeen};
use crate::watches::{Selection, Watching};

impl Controller {
    pub fn watch(
        client: Client,
        home: watch::Receiver<Option<ClusterId>>,
        default_options: ObjectKey,
        watching: &mut Watching<'_>,
    ) -> anyhow::Result<Self> {
        let controller = Self::new(client, home, default_options);
        let (queue, namesakes) = (controller.queue.clone(), controller.enqueue_all());
        watching.open(everywhere("virtualnodes", ""), &controller.virtual_nodes, Some, move |key| {
            // One that goes may free its name for another.
            namesakes(Some(key.clone()));
            queue.add(key);
        })?;
        let all = controller.enqueue_all();
        watching.open(
            everywhere("vkoptionstemplates", ""),
            &controller.options,
            |template: VkOptionsTemplate| Some(template.spec),
            move |_| all(None),
        )?;
        let all = controller.enqueue_all();
        // All of them: a real one may have the name that a VirtualNode wants.
        watching.open(
            everywhere("nodes", ""),
            &controller.nodes,
            |node: Node| Some(NodeSeen::of(&node)),
            move |key| all(Some(key)),
        )?;
        controller.open::<ServiceAccount>(watching, "serviceaccounts", &controller.service_accounts)?;
        controller.open::<RoleBinding>(watching, "rolebindings", &controller.role_bindings)?;
        controller.open::<ClusterRoleBinding>(watching, "clusterrolebindings", &controller.cluster_bindings)?;
        controller.open::<Deployment>(watching, "deployments", &controller.deployments)?;
        let (pods, queue, made_for) = (controller.pods.clone(), controller.queue.clone(), MadeFor::default());
        let noted = made_for.clone();
        watching.open(
            everywhere("pods", &component()),
            &controller.pods,
            move |pod: Pod| Some(KubeletPod::of(&pod, noted.note(&pod)?)),
            move |key| {
                let virtual_node = made_for.of(&key, pods.get(&key).is_some());
                virtual_node.into_iter().for_each(|key| queue.add(key));
            },
        )?;
        Ok(controller)
    }

    fn open<K: ChildKind>(
        &self,
        watching: &mut Watching<'_>,
        resource: &'static str,
        children: &Children,
    ) -> anyhow::Result<()> {
        let (index, queue, made_for) = (children.index.clone(), self.queue.clone(), MadeFor::default());
        let noted = made_for.clone();
        watching.open(
            everywhere(resource, &component()),
            &children.index,
            move |object: K| {
                noted.note(&object)?;
                Some(Child::of(&object))
            },
            move |key| {
                let virtual_node = made_for.of(&key, index.get(&key).is_some());
                virtual_node.into_iter().for_each(|key| queue.add(key));
            },
        )
    }

    /// Asks for every VirtualNode to be looked at, or for those of one Node's name.
    pub(super) fn enqueue_all(&self) -> impl Fn(Option<ObjectKey>) + Send + Sync + 'static {
        let (queue, virtual_nodes) = (self.queue.clone(), self.virtual_nodes.clone());
        move |node| {
            for key in virtual_nodes.keys() {
                if node.as_ref().is_none_or(|node| node.name == key.name) {
                    queue.add(key);
                }
            }
        }
    }
}

fn everywhere<K>(resource: &'static str, labels: &str) -> Selection<impl FnOnce(Client) -> Api<Guarded<K>>>
where
    K: Resource<DynamicType = ()>,
{
    Selection { resource, config: watcher::Config::default().labels(labels), api: Api::all }
}

fn component() -> String {
    format!("{}={}", label::COMPONENT, label::COMPONENT_VIRTUAL_KUBELET)
}
