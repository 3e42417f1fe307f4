//! The Kubernetes types that Spillway uses, under one name, so that a version bump touches one file.

pub use k8s_openapi::ByteString;
pub use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
pub use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
pub use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
pub use k8s_openapi::api::core::v1::{
    ConfigMap, Container, ContainerImage, ContainerStatus, Event, LocalObjectReference, Namespace, Node, NodeAddress,
    NodeAffinity, NodeCondition, NodeDaemonEndpoints, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    NodeSpec, NodeStatus, NodeSystemInfo, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod, PodCondition,
    PodSpec, PodStatus, PodTemplateSpec, ResourceRequirements, Secret, Service, ServiceAccount, Taint, Toleration,
};
pub use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
pub use k8s_openapi::api::networking::v1::Ingress;
pub use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject};
pub use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
pub use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, ObjectMeta, OwnerReference, Time};
