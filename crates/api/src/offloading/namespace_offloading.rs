//! NamespaceOffloading: the user's wish that a namespace reach into other clusters.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    k8s::{NodeSelector, Time},
    schema,
};

/// How the namespace is offloaded: under which name, to which clusters, and where its pods may run.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "NamespaceOffloading",
    namespaced,
    status = "NamespaceOffloadingStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Extends the namespace that it lies in to remote clusters: each selected cluster gets a twin namespace, and pods may run there. A namespace has one, and its name is `offloading`. Deleting it brings the namespace back home.",
    shortname = "nso",
    shortname = "nsof",
    shortname = "nsoff",
    shortname = "nsoffloading",
    category = "liqo",
    printcolumn(name = "NamespaceMappingStrategy", type_ = "string", json_path = ".spec.namespaceMappingStrategy"),
    printcolumn(name = "PodOffloadingStrategy", type_ = "string", json_path = ".spec.podOffloadingStrategy"),
    printcolumn(name = "OffloadingPhase", type_ = "string", json_path = ".status.offloadingPhase"),
    printcolumn(name = "RemoteNamespaceName", type_ = "string", json_path = ".status.remoteNamespaceName", priority = 10),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name == 'offloading'")
        .message("a NamespaceOffloading must be named 'offloading': a namespace has only one")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.namespaceMappingStrategy != 'SelectedName' || (has(self.remoteNamespaceName) && self.remoteNamespaceName != '')")
        .message("namespaceMappingStrategy SelectedName needs remoteNamespaceName: the name of the twin namespace"),
    validation = Rule::new("(has(self.remoteNamespaceName) ? self.remoteNamespaceName : '') == (has(oldSelf.remoteNamespaceName) ? oldSelf.remoteNamespaceName : '')")
        .message("remoteNamespaceName is immutable: delete the NamespaceOffloading and create it anew")
)]
pub struct NamespaceOffloadingSpec {
    /// How the twin namespaces are named: `DefaultName` (this namespace's name, a dash and this cluster's ID, which
    /// never clashes), `EnforceSameName` (the same name, which may be taken there) or `SelectedName` (the name in
    /// `remoteNamespaceName`). It cannot be changed afterwards.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("namespaceMappingStrategy is immutable: delete the NamespaceOffloading and create it anew"))]
    pub namespace_mapping_strategy: NamespaceMappingStrategy,

    /// The name of the twin namespaces under the strategy `SelectedName`, where it is mandatory; ignored otherwise. It
    /// cannot be changed afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_namespace_name: Option<String>,

    /// Where new pods of this namespace may run: `LocalAndRemote` (anywhere), `Local` (on this cluster's own nodes only,
    /// though services, configuration and secrets are still shared) or `Remote` (on virtual nodes only). Pods that
    /// already run are left where they are.
    #[serde(default)]
    pub pod_offloading_strategy: PodOffloadingStrategy,

    /// Which remote clusters take part, chosen by the labels of their virtual nodes. A cluster is selected when any term
    /// matches; a term matches when all of its expressions do. Without terms every cluster is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_atomic::<NodeSelector>")]
    pub cluster_selector: Option<NodeSelector>,
}

/// How the twin namespaces are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NamespaceMappingStrategy {
    EnforceSameName,
    #[default]
    DefaultName,
    SelectedName,
}

/// Where the pods of an offloaded namespace may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PodOffloadingStrategy {
    Local,
    Remote,
    #[default]
    LocalAndRemote,
}

/// How far the offloading has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceOffloadingStatus {
    /// The name that the twin namespaces have, or will have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_namespace_name: Option<String>,

    /// The sum of all clusters: `Ready` (every selected cluster has its twin), `NoClusterSelected` (the selector matches
    /// none), `InProgress` (some twins are still to come), `SomeFailed` or `AllFailed` (they cannot be made; the
    /// conditions say why), `Terminating` (the twins are being removed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offloading_phase: Option<OffloadingPhase>,

    /// What is true of the twin in each remote cluster, by the cluster's ID.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remote_namespaces_conditions: BTreeMap<String, Vec<RemoteNamespaceCondition>>,

    /// The generation of this object that the status was computed from: when it is older than `metadata.generation`,
    /// the last change has not been acted upon yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// How far the offloading of a namespace has come, all clusters together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OffloadingPhase {
    Ready,
    NoClusterSelected,
    InProgress,
    SomeFailed,
    AllFailed,
    Terminating,
}

/// One thing that is true (or not) of the twin namespace in one cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteNamespaceCondition {
    /// What this condition speaks of: `OffloadingRequired` (the selector chose this cluster) or `Ready` (the twin is
    /// there and can be used).
    #[serde(rename = "type")]
    pub type_: RemoteNamespaceConditionType,
    /// Whether it is so: `True`, `False` or `Unknown`.
    pub status: ConditionStatus,
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

/// What a condition of a twin namespace speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RemoteNamespaceConditionType {
    OffloadingRequired,
    Ready,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}
