//! NamespaceMap: which twin namespaces a consumer wants at one provider, and what became of them.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The twin namespaces that the consumer wants.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "NamespaceMap",
    namespaced,
    status = "NamespaceMapStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Which namespaces of a consumer have a twin at one provider. The consumer keeps one per provider, named after it, in the tenant namespace; the provider gets a copy, makes the twins and reports back.",
    shortname = "nm",
    shortname = "nsmap",
    category = "liqo",
    printcolumn(name = "Local", type_ = "string", json_path = r".metadata.labels.liqo\.io/replication"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceMapSpec {
    /// The twins that are wanted: a namespace of the consumer to the name of its twin at the provider. Taking an entry
    /// away deletes the twin with everything in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub desired_mapping: BTreeMap<String, String>,
}

/// The twin namespaces that there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceMapStatus {
    /// What became of each twin, by the namespace of the consumer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub current_mapping: BTreeMap<String, RemoteNamespaceStatus>,
}

/// What became of one twin namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteNamespaceStatus {
    /// The name of the twin at the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_namespace: Option<String>,
    /// `Accepted` (it is there and can be used), `CreationLoopBackOff` (it cannot be made, for instance because the
    /// provider has a namespace of that name that is none of ours; it is tried again) or `Terminating` (it is being
    /// removed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MappingPhase>,
}

/// What became of one twin namespace, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MappingPhase {
    Accepted,
    CreationLoopBackOff,
    Terminating,
}
