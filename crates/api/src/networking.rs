//! `networking.liqo.io/v1beta1`: how each side of a peering sees the addresses of the other.
//!
//! Spillway builds no network of its own. It reads [`Configuration`], so that pod addresses mean the same on both sides;
//! the gateways exist so that existing clients can list them and their manifests are kept as they are.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RawObject, k8s::Condition, schema};

/// The API group of this module.
pub const GROUP: &str = "networking.liqo.io";

/// The address ranges of the two clusters, each as its own cluster knows them.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.liqo.io",
    version = "v1beta1",
    kind = "Configuration",
    namespaced,
    status = "ConfigurationStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "The address ranges of a peer, and the ranges under which this cluster reaches them. One per peer, in its tenant namespace.",
    shortname = "conf",
    category = "liqo",
    printcolumn(name = "Desired Pod CIDR ", type_ = "string", json_path = ".spec.remote.cidr.pod"),
    printcolumn(name = "Remapped Pod CIDR", type_ = "string", json_path = ".status.remote.cidr.pod"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Desired External CIDR",
        type_ = "string",
        json_path = ".spec.remote.cidr.external",
        priority = 1
    ),
    printcolumn(
        name = "Remapped External CIDR",
        type_ = "string",
        json_path = ".status.remote.cidr.external",
        priority = 1
    ),
    printcolumn(
        name = "ClusterID",
        type_ = "string",
        json_path = r".metadata.labels.liqo\.io/remote-cluster-id",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ConfigurationSpec {
    /// The ranges of the cluster that holds this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<ClusterConfig>,
    /// The ranges of the other cluster, as it knows them itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<ClusterConfig>,
}

/// The ranges as this cluster sees them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ConfigurationStatus {
    /// The ranges under which this cluster reaches the other one. They differ from `spec.remote` where the two clusters'
    /// own ranges overlap: the n-th range here stands for the n-th range there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<ClusterConfig>,
    /// What is true of this configuration; `NetworkCIDRsConfigured` says that `status.remote` can be relied on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list::<Condition>")]
    pub conditions: Vec<Condition>,
}

/// The address ranges of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterConfig {
    /// The ranges, by what they are used for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr: Option<ClusterConfigCidr>,
}

/// The address ranges of one cluster, by what they are used for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterConfigCidr {
    /// The ranges that pods get their addresses from, such as `10.244.0.0/16`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::cidrs")]
    pub pod: Vec<String>,
    /// The ranges under which everything that is not a pod (a node, a host outside the cluster) is reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::cidrs")]
    pub external: Vec<String>,
}

/// The gateway's settings, kept as they were written.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.liqo.io",
    version = "v1beta1",
    kind = "GatewayServer",
    namespaced,
    status = "GatewayServerStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "The end of a tunnel that listens. Kept for clients and manifests made for Liqo; Spillway itself does nothing with it.",
    shortname = "gws",
    shortname = "gwserver",
    category = "liqo",
    printcolumn(name = "Template Kind", type_ = "string", json_path = ".spec.serverTemplateRef.kind", priority = 1),
    printcolumn(name = "Template Name", type_ = "string", json_path = ".spec.serverTemplateRef.name"),
    printcolumn(
        name = "Template Namespace",
        type_ = "string",
        json_path = ".spec.serverTemplateRef.namespace",
        priority = 1
    ),
    printcolumn(name = "IP", type_ = "string", json_path = ".status.endpoint.addresses[*]"),
    printcolumn(name = "Port", type_ = "string", json_path = ".status.endpoint.port"),
    printcolumn(name = "Protocol", type_ = "string", json_path = ".status.endpoint.protocol", priority = 1),
    printcolumn(name = "MTU", type_ = "integer", json_path = ".spec.mtu", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(transparent)]
pub struct GatewayServerSpec {
    /// Every field that the manifest has.
    #[schemars(schema_with = "schema::open_object")]
    pub fields: RawObject,
}

/// The gateway's state, kept as it was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GatewayServerStatus {
    /// Every field that was written.
    #[schemars(schema_with = "schema::open_object")]
    pub fields: RawObject,
}

/// The gateway's settings, kept as they were written.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.liqo.io",
    version = "v1beta1",
    kind = "GatewayClient",
    namespaced,
    status = "GatewayClientStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "The end of a tunnel that calls. Kept for clients and manifests made for Liqo; Spillway itself does nothing with it.",
    shortname = "gwc",
    shortname = "gwclient",
    category = "liqo",
    printcolumn(name = "Template Kind", type_ = "string", json_path = ".spec.clientTemplateRef.kind", priority = 1),
    printcolumn(name = "Template Name", type_ = "string", json_path = ".spec.clientTemplateRef.name"),
    printcolumn(
        name = "Template Namespace",
        type_ = "string",
        json_path = ".spec.clientTemplateRef.namespace",
        priority = 1
    ),
    printcolumn(name = "IP", type_ = "string", json_path = ".spec.endpoint.addresses[*]"),
    printcolumn(name = "Port", type_ = "string", json_path = ".spec.endpoint.port"),
    printcolumn(name = "Protocol", type_ = "string", json_path = ".spec.endpoint.protocol", priority = 1),
    printcolumn(name = "MTU", type_ = "integer", json_path = ".spec.mtu", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(transparent)]
pub struct GatewayClientSpec {
    /// Every field that the manifest has.
    #[schemars(schema_with = "schema::open_object")]
    pub fields: RawObject,
}

/// The gateway's state, kept as it was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GatewayClientStatus {
    /// Every field that was written.
    #[schemars(schema_with = "schema::open_object")]
    pub fields: RawObject,
}
