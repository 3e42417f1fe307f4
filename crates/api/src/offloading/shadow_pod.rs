//! ShadowPod: the consumer's order to the provider to keep one pod running.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RawObject, is_zero, k8s::PodSpec, schema};

/// The pod that is to run.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "ShadowPod",
    namespaced,
    status = "ShadowPodStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A pod of a consumer that this provider runs. It lies in the twin namespace under the pod's own name; as long as it exists the pod is kept alive, whether or not the consumer can be reached.",
    shortname = "shp",
    shortname = "shpod",
    category = "liqo",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ShadowPodSpec {
    /// The spec of the pod (see `kubectl explain pod.spec`), already adapted to the provider. Fields that are newer than
    /// this version of Spillway are kept.
    #[serde(default, skip_serializing_if = "RawObject::is_empty")]
    #[schemars(schema_with = "schema::open_whole")]
    pub pod: RawObject,
}

impl ShadowPodSpec {
    /// The pod spec in typed form, to read from. It lacks the fields that this build does not know, so what is passed on
    /// is always [`Self::pod`] itself.
    pub fn typed_pod(&self) -> Result<PodSpec, serde_json::Error> {
        PodSpec::deserialize(&self.pod)
    }
}

/// What became of the pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShadowPodStatus {
    /// The phase of the pod: `Pending`, `Running`, `Succeeded`, `Failed`, or `Unknown` as long as nothing is known.
    /// `Succeeded` and `Failed` are final: the pod never runs again.
    #[serde(default)]
    pub phase: ShadowPodPhase,

    /// The UID of the pod that now runs (or ran last) for this ShadowPod.
    #[serde(rename = "podUID", skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,

    /// How many times the pod was made anew because it was lost here: deleted, evicted, preempted, or gone with its node.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub recreations: i64,

    /// How often containers restarted in pods that were lost here, by the container's name. (One more is to be counted for
    /// each of the recreations.)
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub former_restarts: BTreeMap<String, i64>,

    /// Why the pod is not running as it should, in one word for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,

    /// Why the pod is not running as it should, in a sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// The generation of this object that the status was computed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The status of the pod at its end (see `kubectl explain pod.status`), recorded before the pod object may
    /// disappear. Once it is here, the pod has finished for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_whole")]
    pub outcome: Option<RawObject>,
}

/// The phase of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ShadowPodPhase {
    Pending,
    Running,
    Succeeded,
    Failed,
    #[default]
    Unknown,
}

impl ShadowPodPhase {
    /// Whether the pod has finished for good.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}
