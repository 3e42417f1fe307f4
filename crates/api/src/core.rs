//! `core.liqo.io/v1beta1`: the peer clusters, and the small types that several groups share.

use std::fmt;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{is_false, k8s::Time};

/// The API group of this module.
pub const GROUP: &str = "core.liqo.io";

/// The name by which a cluster is known to its peers: a DNS label, unique among all clusters that peer with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterId(String);

impl ClusterId {
    /// Wraps a name; whether it is a DNS label is for the API server to say.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl AsRef<str> for ClusterId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ClusterId {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl JsonSchema for ClusterId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ClusterId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" })
    }
}

/// Which remote cluster this object stands for.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "core.liqo.io",
    version = "v1beta1",
    kind = "ForeignCluster",
    status = "ForeignClusterStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A cluster that this one is peered with, and how that peering is doing. Made by the peering operator: read it, do not write it.",
    shortname = "fc",
    category = "liqo",
    printcolumn(name = "Role", type_ = "string", json_path = ".status.role"),
    printcolumn(name = "ClusterID", type_ = "string", json_path = ".spec.clusterID", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ForeignClusterSpec {
    /// The ID of the remote cluster: lower-case letters, digits and dashes. It cannot be changed afterwards.
    #[serde(rename = "clusterID")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("clusterID is immutable: delete the ForeignCluster and create another one"))]
    pub cluster_id: ClusterId,
}

/// What is known of the remote cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForeignClusterStatus {
    /// What the remote cluster is to this one: `Provider` (it runs our pods), `Consumer` (we run its pods),
    /// `ConsumerAndProvider`, or `Unknown` until the peering has said.
    #[serde(default)]
    pub role: Role,

    /// The parts of the peering, and how each of them is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modules: Option<Modules>,

    /// The address of the remote cluster's API server.
    #[serde(rename = "apiServerUrl", skip_serializing_if = "Option::is_none")]
    pub api_server_url: Option<String>,

    /// The proxy through which the remote API server is reached, if there is one.
    #[serde(rename = "foreignProxyUrl", skip_serializing_if = "Option::is_none")]
    pub foreign_proxy_url: Option<String>,

    /// The namespaces that hold the objects of this peering, on either side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_namespace: Option<TenantNamespaces>,

    /// What is true of the remote cluster as a whole, such as whether its API server answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ForeignClusterCondition>,

    /// The generation of this object that the status was computed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What a remote cluster is to this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Role {
    Consumer,
    Provider,
    ConsumerAndProvider,
    #[default]
    Unknown,
}

/// The parts of a peering.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Modules {
    /// The network between the clusters, by which pods reach each other.
    pub networking: Module,
    /// The identities by which the clusters know each other.
    pub authentication: Module,
    /// The virtual nodes and the pods on them.
    pub offloading: Module,
}

/// One part of a peering.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Module {
    /// Whether this part is in use towards the remote cluster.
    pub enabled: bool,
    /// What is true of this part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ForeignClusterCondition>,
}

/// One thing that is true (or not) of a peering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForeignClusterCondition {
    /// What this condition speaks of.
    #[serde(rename = "type")]
    pub type_: ForeignClusterConditionType,
    /// How it is doing: `Established` or `Ready` is good, `Error`, `NotReady` or `SomeNotReady` is not, `Pending` is on
    /// its way, `None` means that nothing is known.
    #[serde(default)]
    pub status: ForeignClusterConditionStatus,
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

/// What a condition of a ForeignCluster speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ForeignClusterConditionType {
    #[serde(rename = "APIServerStatus")]
    ApiServerStatus,
    NetworkConnectionStatus,
    NetworkGatewayServerStatus,
    NetworkGatewayClientStatus,
    NetworkGatewayPresence,
    NetworkConfigurationStatus,
    AuthIdentityControlPlaneStatus,
    AuthTenantStatus,
    OffloadingVirtualNodeStatus,
    OffloadingNodeStatus,
}

/// How the thing that a condition speaks of is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ForeignClusterConditionStatus {
    #[default]
    None,
    Pending,
    Established,
    Error,
    Ready,
    NotReady,
    SomeNotReady,
}

/// The namespaces that hold the objects of one peering.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantNamespaces {
    /// The one in this cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// The one in the remote cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
}

/// A storage class that the provider offers to offloaded volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageType {
    /// The name of the StorageClass in the provider's cluster.
    pub storage_class_name: String,
    /// Whether claims that name no class get this one. Without any such mark the first of the list is taken.
    #[serde(default, skip_serializing_if = "is_false")]
    pub default: bool,
}

/// An ingress class that the provider offers to reflected ingresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressType {
    /// The name of the IngressClass in the provider's cluster.
    pub ingress_class_name: String,
    /// Whether reflected ingresses get this one. Without any such mark the first of the list is taken.
    #[serde(default, skip_serializing_if = "is_false")]
    pub default: bool,
}

/// A load balancer class that the provider offers to reflected services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerType {
    /// The load balancer class in the provider's cluster.
    pub load_balancer_class_name: String,
    /// Whether reflected services get this one. Without any such mark the first of the list is taken.
    #[serde(default, skip_serializing_if = "is_false")]
    pub default: bool,
}
