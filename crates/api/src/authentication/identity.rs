//! Identity: what a consumer holds to speak to one provider.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AuthParams;
use crate::{core::ClusterId, k8s::LocalObjectReference, schema};

/// The identity, and the provider that gave it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "authentication.liqo.io",
    version = "v1beta1",
    kind = "Identity",
    plural = "identities",
    namespaced,
    status = "IdentityStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "What this cluster holds to act at a provider, turned into a kubeconfig Secret. One for the control plane, and one per ResourceSlice.",
    shortname = "id",
    category = "liqo",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(
        name = "KubeconfigSecret",
        type_ = "string",
        json_path = ".status.kubeconfigSecretRef.name",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct IdentitySpec {
    /// The ID of the provider's cluster.
    #[serde(rename = "clusterID", skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// What it is for: `ControlPlane` (to ask for slices and namespaces) or `ResourceSlice` (to run pods in one slice).
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<IdentityType>,
    /// What the provider gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_params: Option<AuthParams>,
    /// The namespace at the provider in which the identity is used by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What an identity is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IdentityType {
    ControlPlane,
    ResourceSlice,
}

/// What was made of the identity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityStatus {
    /// The Secret in this namespace whose key `kubeconfig` opens the provider's cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::local_reference")]
    pub kubeconfig_secret_ref: Option<LocalObjectReference>,
}
