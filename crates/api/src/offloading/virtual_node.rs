//! VirtualNode: a node of the consumer that stands for a share of a provider.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    RawObject, ResourceList,
    core::{ClusterId, IngressType, LoadBalancerType, StorageType},
    k8s::{ContainerImage, LocalObjectReference, NodeAffinity, ObjectReference, Taint, Time, Toleration},
    schema,
};

/// The provider behind the node, and what the node looks like.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "VirtualNode",
    namespaced,
    status = "VirtualNodeStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A share of a remote cluster that appears here as a Node of the same name. Each VirtualNode has a virtual-kubelet of its own, which runs the pods bound to that Node in the remote cluster.",
    shortname = "vn",
    shortname = "vnode",
    shortname = "virno",
    shortname = "vno",
    category = "liqo",
    printcolumn(name = "ClusterID", type_ = "string", json_path = ".spec.clusterID"),
    printcolumn(name = "Create Node", type_ = "boolean", json_path = ".spec.createNode"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Node",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Node")].status"#,
        priority = 1
    ),
    printcolumn(
        name = "VirtualKubelet",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="VirtualKubelet")].status"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualNodeSpec {
    /// The ID of the remote cluster that the pods of this node run in.
    #[serde(rename = "clusterID", skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,

    /// The provider ID that the Node gets, as `<provider>://<id>`. It cannot be changed once it is set.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf || oldSelf == ''").message("providerID is immutable once it is set"))]
    pub provider_id: Option<String>,

    /// The Deployment that runs the virtual-kubelet. Normally left out: it is rendered from the VkOptionsTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<DeploymentTemplate>,

    /// What is changed on every pod and object that goes to the remote cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offloading_patch: Option<OffloadingPatch>,

    /// Whether a Node is made at all. When false, the namespace's other objects are still reflected, but no pod can be
    /// scheduled to the remote cluster. Without a value, the VkOptionsTemplate decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_node: Option<bool>,

    /// Whether the Node is Ready without regard to the network between the clusters. Without a value, the
    /// VkOptionsTemplate decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_network_check: Option<bool>,

    /// The Secret in this namespace whose key `kubeconfig` opens the remote cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::local_reference")]
    pub kubeconfig_secret_ref: Option<LocalObjectReference>,

    /// Container images that the remote cluster already has, so that the scheduler can prefer it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list::<ContainerImage>")]
    pub images: Vec<ContainerImage>,

    /// How much the node has to give: `hard` becomes its capacity and its allocatable resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_quota: Option<ResourceQuota>,

    /// Labels that the Node gets, besides those that mark it as virtual.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,

    /// Annotations that the Node gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// Taints that the Node gets, besides the one that keeps pods of other namespaces away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list::<Taint>")]
    pub taints: Vec<Taint>,

    /// The storage classes that the remote cluster offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storage_classes: Vec<StorageType>,

    /// The ingress classes that the remote cluster offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ingress_classes: Vec<IngressType>,

    /// The load balancer classes that the remote cluster offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancer_classes: Vec<LoadBalancerType>,

    /// The VkOptionsTemplate (name and namespace) that the virtual-kubelet is configured from. Without it, the one that
    /// was installed with Spillway is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_atomic::<ObjectReference>")]
    pub vk_options_template_ref: Option<ObjectReference>,
}

/// A Deployment, kept as it was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentTemplate {
    /// The metadata of the Deployment (see `kubectl explain deployment.metadata`).
    #[serde(default, skip_serializing_if = "RawObject::is_empty")]
    #[schemars(schema_with = "schema::open_object")]
    pub metadata: RawObject,
    /// The spec of the Deployment (see `kubectl explain deployment.spec`).
    #[serde(default, skip_serializing_if = "RawObject::is_empty")]
    #[schemars(schema_with = "schema::open_object")]
    pub spec: RawObject,
}

/// What is changed on the way to the remote cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OffloadingPatch {
    /// Annotations (by key) that stay at home.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations_not_reflected: Vec<String>,
    /// Labels (by key) that stay at home.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels_not_reflected: Vec<String>,
    /// The node selector that the remote pods get.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations that the remote pods get, besides their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list::<Toleration>")]
    pub tolerations: Vec<Toleration>,
    /// The affinity that the remote pods get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<OffloadingAffinity>,
    /// The runtime class that the remote pods get, unless the pod names one itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
}

/// The affinity that remote pods get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OffloadingAffinity {
    /// Which nodes of the remote cluster the pods may run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open::<NodeAffinity>")]
    pub node_affinity: Option<NodeAffinity>,
}

/// How much a node has to give.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ResourceQuota {
    /// The amount of each resource, such as `cpu: "4"` or `memory: 8Gi`.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub hard: ResourceList,
    /// Kept for compatibility; has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Kept for compatibility; has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub scope_selector: Option<RawObject>,
}

/// What became of the virtual node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualNodeStatus {
    /// How the virtual-kubelet and the Node are doing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<VirtualNodeCondition>,
    /// The offloading patch in force: that of the spec, with what the VkOptionsTemplate adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_offloading_patch: Option<OffloadingPatch>,
    /// Whether a Node is made, after the VkOptionsTemplate has had its say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_create_node: Option<bool>,
    /// Whether the network is left out of account, after the VkOptionsTemplate has had its say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_disable_network_check: Option<bool>,
}

/// How one part of a virtual node is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualNodeCondition {
    /// The part: `VirtualKubelet` or `Node`.
    #[serde(rename = "type")]
    pub type_: VirtualNodeConditionType,
    /// How it is doing: `Creating`, `Running`, `Draining` (its pods are being moved away), `Deleting`, or `None` when it
    /// does not exist.
    #[serde(default)]
    pub status: VirtualNodeConditionStatus,
    /// When the status last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why it changed, in one word for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it changed, in a sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The parts of a virtual node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VirtualNodeConditionType {
    VirtualKubelet,
    Node,
}

/// How a part of a virtual node is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VirtualNodeConditionStatus {
    #[default]
    None,
    Running,
    Creating,
    Draining,
    Deleting,
}
