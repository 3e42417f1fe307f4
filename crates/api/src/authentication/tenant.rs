//! Tenant: a consumer, as its provider knows it.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AuthParams;
use crate::{core::ClusterId, k8s::ByteString, schema};

/// Who the consumer is, and what it may do.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "authentication.liqo.io",
    version = "v1beta1",
    kind = "Tenant",
    namespaced,
    status = "TenantStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A consumer of this cluster's resources: who it is, how it proved it, and whether it may go on. It lies at the provider, in the tenant namespace of that consumer.",
    shortname = "tn",
    category = "liqo",
    printcolumn(name = "Condition", type_ = "string", json_path = ".spec.tenantCondition"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct TenantSpec {
    /// The ID of the consumer's cluster. It cannot be changed afterwards.
    #[serde(rename = "clusterID", skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("clusterID is immutable: delete the Tenant and create another one"))]
    pub cluster_id: Option<ClusterId>,
    /// What a ResourceSlice of this consumer must rest on: `KeysExchange` (the consumer has proved that it holds its
    /// key) or `TolerateNoHandshake` (nothing; the provider trusts whoever may write here).
    #[serde(default)]
    pub authz_policy: AuthzPolicy,
    /// The public key of the consumer's cluster, as PEM in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes")]
    pub public_key: Option<ByteString>,
    /// The certificate signing request of the consumer's control plane, as PEM in base64. Its common name must be the
    /// consumer's ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes")]
    pub csr: Option<ByteString>,
    /// The provider's nonce, signed with the consumer's key, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes")]
    pub signature: Option<ByteString>,
    /// The proxy through which the consumer reaches this cluster's API server, if there is one.
    #[serde(rename = "proxyURL", skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,
    /// Whether the consumer may go on: `Active` (it may), `Cordoned` (what runs goes on, nothing new is admitted) or
    /// `Drained` (everything of it is removed).
    #[serde(default)]
    pub tenant_condition: TenantCondition,
}

/// What a ResourceSlice of a consumer must rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuthzPolicy {
    #[default]
    KeysExchange,
    TolerateNoHandshake,
}

/// Whether a consumer may go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TenantCondition {
    #[default]
    Active,
    Cordoned,
    Drained,
}

/// What the provider made for the consumer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantStatus {
    /// The namespace at the provider in which the consumer may write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_namespace: Option<String>,
    /// The identity of the consumer's control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_params: Option<AuthParams>,
}
