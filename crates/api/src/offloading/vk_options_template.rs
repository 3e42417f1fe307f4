//! VkOptionsTemplate: how virtual-kubelets are deployed.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    RawObject, ResourceList,
    k8s::{LocalObjectReference, Toleration},
    schema,
};

/// The settings of the virtual-kubelets that are deployed from this template.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "VkOptionsTemplate",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "How the virtual-kubelets of VirtualNodes are deployed. One comes with the installation; a VirtualNode may point to another one.",
    shortname = "vkot",
    shortname = "vkopt",
    category = "liqo",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct VkOptionsTemplateSpec {
    /// Whether virtual nodes appear as Nodes, where the VirtualNode does not say.
    pub create_node: bool,
    /// Whether Nodes are Ready without regard to the network between the clusters, where the VirtualNode does not say.
    pub disable_network_check: bool,
    /// The image of the virtual-kubelet.
    pub container_image: String,
    /// Whether the virtual-kubelet serves metrics.
    pub metrics_enabled: bool,
    /// The address that metrics are served on, such as `:8080`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_address: Option<String>,
    /// Labels (by key) that are never passed on to a remote cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels_not_reflected: Vec<String>,
    /// Annotations (by key) that are never passed on to a remote cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations_not_reflected: Vec<String>,
    /// How each kind is reflected, by its name: `pod`, `service`, `endpointslice`, `ingress`, `configmap`, `secret`,
    /// `serviceaccount`, `persistentvolumeclaim`, `event`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reflectors_config: BTreeMap<String, ReflectorConfig>,
    /// Custom resources that are reflected as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom_resources: Vec<CustomResourceReflectorConfig>,
    /// The compute resources of the virtual-kubelet's container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Further arguments of the virtual-kubelet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_args: Vec<String>,
    /// Annotations that the virtual-kubelet's Deployment and pods get.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_annotations: BTreeMap<String, String>,
    /// Labels that the virtual-kubelet's Deployment and pods get.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_labels: BTreeMap<String, String>,
    /// Annotations that the Nodes get.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_extra_annotations: BTreeMap<String, String>,
    /// Labels that the Nodes get.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_extra_labels: BTreeMap<String, String>,
    /// How many virtual-kubelets stand ready for one node; one of them is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The Secrets with which the image is pulled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::local_references")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// When the image is pulled: `Always`, `IfNotPresent` or `Never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_policy: Option<PullPolicy>,
    /// The tolerations of the virtual-kubelet's pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list::<Toleration>")]
    pub tolerations: Vec<Toleration>,
}

/// How one kind is reflected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReflectorConfig {
    /// How many objects are worked on at the same time. Zero turns the reflection of this kind off.
    #[serde(rename = "workers")]
    #[schemars(range(min = 0))]
    pub workers: i64,
    /// Which objects are reflected: `DenyList` (all but those annotated `liqo.io/skip-reflection`), `AllowList` (only
    /// those annotated `liqo.io/allow-reflection`) or `CustomLiqo` (the kind has rules of its own).
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ReflectionType>,
}

/// How one custom resource is reflected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomResourceReflectorConfig {
    /// The API group, such as `example.io`.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The resource in the plural, such as `widgets`.
    pub resource: String,
    /// How many objects are worked on at the same time. Zero turns the reflection of this resource off.
    #[schemars(range(min = 0))]
    pub workers: i64,
    /// Which objects are reflected: `DenyList` (all but those annotated `liqo.io/skip-reflection`) or `AllowList` (only
    /// those annotated `liqo.io/allow-reflection`).
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ReflectionType>,
}

/// Which objects of a kind are reflected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReflectionType {
    AllowList,
    DenyList,
    CustomLiqo,
    /// Written as an empty string, as charts do for a value that was not set: the kind's own default.
    #[serde(rename = "")]
    Unset,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    Always,
    IfNotPresent,
    Never,
    /// Written as an empty string, as charts do for a value that was not set: the default of Kubernetes.
    #[serde(rename = "")]
    Unset,
}

/// The compute resources of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Resources {
    /// The most that the container may use.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub limits: ResourceList,
    /// What is set aside for the container.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub requests: ResourceList,
    /// The resource claims that the container uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_objects")]
    pub claims: Vec<RawObject>,
}
