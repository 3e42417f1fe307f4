//! Renew: a consumer's request for a fresh certificate, before the old one ends.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AuthParams, IdentityType};
use crate::{
    core::ClusterId,
    k8s::{ByteString, LocalObjectReference},
    schema,
};

/// Whose certificate is to be renewed.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "authentication.liqo.io",
    version = "v1beta1",
    kind = "Renew",
    plural = "renews",
    namespaced,
    status = "RenewStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A consumer's request for a fresh certificate of an identity that it already holds. The provider answers in the status.",
    category = "liqo",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct RenewSpec {
    /// The ID of the consumer's cluster.
    #[serde(rename = "consumerClusterID", skip_serializing_if = "Option::is_none")]
    pub consumer_cluster_id: Option<ClusterId>,
    /// The public key of the consumer's cluster, as PEM in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes")]
    pub public_key: Option<ByteString>,
    /// The certificate signing request, as PEM in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes")]
    pub csr: Option<ByteString>,
    /// What the identity is for: `ControlPlane` or `ResourceSlice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_type: Option<IdentityType>,
    /// The ResourceSlice that the identity belongs to, where it is for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::local_reference")]
    pub resource_slice_ref: Option<LocalObjectReference>,
}

/// The provider's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewStatus {
    /// The identity with its fresh certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_params: Option<AuthParams>,
}
