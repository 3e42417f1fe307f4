//! `offloading.liqo.io/v1beta1`: namespaces and pods that reach into other clusters, and the nodes that stand for them.

mod namespace_map;
mod namespace_offloading;
mod quota;
mod shadow_endpoint_slice;
mod shadow_pod;
mod virtual_node;
mod vk_options_template;

pub use namespace_map::{MappingPhase, NamespaceMap, NamespaceMapSpec, NamespaceMapStatus, RemoteNamespaceStatus};
pub use namespace_offloading::{
    ConditionStatus, NamespaceMappingStrategy, NamespaceOffloading, NamespaceOffloadingSpec, NamespaceOffloadingStatus,
    OffloadingPhase, PodOffloadingStrategy, RemoteNamespaceCondition, RemoteNamespaceConditionType,
};
pub use quota::{LimitsEnforcement, Quota, QuotaSpec};
pub use shadow_endpoint_slice::{EndpointSliceTemplate, ShadowEndpointSlice, ShadowEndpointSliceSpec};
pub use shadow_pod::{ShadowPod, ShadowPodPhase, ShadowPodSpec, ShadowPodStatus};
pub use virtual_node::{
    DeploymentTemplate, OffloadingAffinity, OffloadingPatch, ResourceQuota, VirtualNode, VirtualNodeCondition,
    VirtualNodeConditionStatus, VirtualNodeConditionType, VirtualNodeSpec, VirtualNodeStatus,
};
pub use vk_options_template::{
    CustomResourceReflectorConfig, PullPolicy, ReflectionType, ReflectorConfig, Resources, VkOptionsTemplate,
    VkOptionsTemplateSpec,
};

/// The API group of this module.
pub const GROUP: &str = "offloading.liqo.io";
