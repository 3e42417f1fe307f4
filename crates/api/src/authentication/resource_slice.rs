//! ResourceSlice: a share of a provider, asked for by the consumer and granted by the provider.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AuthParams;
use crate::{
    ResourceList,
    core::{ClusterId, IngressType, LoadBalancerType, StorageType},
    k8s::{ByteString, Time},
    schema,
};

/// What the consumer asks for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "authentication.liqo.io",
    version = "v1beta1",
    kind = "ResourceSlice",
    namespaced,
    status = "ResourceSliceStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A share of a provider's resources. The consumer creates it in the tenant namespace of that provider; the provider answers in the status with what it grants and with an identity to use it.",
    shortname = "rslice",
    category = "liqo",
    printcolumn(
        name = "Authentication",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Authentication")].status"#
    ),
    printcolumn(
        name = "Resources",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Resources")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSliceSpec {
    /// The ID of the cluster that asks. Filled in when left out.
    #[serde(rename = "consumerClusterID", skip_serializing_if = "Option::is_none")]
    pub consumer_cluster_id: Option<ClusterId>,
    /// The ID of the cluster that is asked.
    #[serde(rename = "providerClusterID", skip_serializing_if = "Option::is_none")]
    pub provider_cluster_id: Option<ClusterId>,
    /// How much is asked for, such as `cpu: 20` or `memory: 64Gi`. What is left out is for the provider to choose.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
    /// Who decides at the provider: `default` (or nothing) is Spillway itself; any other name is left to a controller
    /// that the provider has installed for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The certificate signing request of the identity that will use this slice, as PEM in base64. Filled in when left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes")]
    pub csr: Option<ByteString>,
}

/// What the provider grants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSliceStatus {
    /// What was decided, about the identity and about the resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ResourceSliceCondition>,
    /// The class that the provider chose, where the consumer named none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// How much is granted.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
    /// The identity with which the consumer uses this slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_params: Option<AuthParams>,
    /// The storage classes that the provider offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storage_classes: Vec<StorageType>,
    /// The ingress classes that the provider offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ingress_classes: Vec<IngressType>,
    /// The load balancer classes that the provider offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancer_classes: Vec<LoadBalancerType>,
    /// The labels that the provider's cluster bears, which its virtual nodes get.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// The node selector that pods of this slice must carry at the provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
}

/// One decision about a ResourceSlice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSliceCondition {
    /// What was decided about: `Authentication` (the identity) or `Resources` (the amounts).
    #[serde(rename = "type")]
    pub type_: ResourceSliceConditionType,
    /// The decision: `Accepted` or `Denied`.
    pub status: ResourceSliceConditionStatus,
    /// When the decision last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why, in one word for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What a provider decides about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ResourceSliceConditionType {
    Authentication,
    Resources,
}

/// What a provider decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ResourceSliceConditionStatus {
    Accepted,
    Denied,
}
