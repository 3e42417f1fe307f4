//! Quota: how much one consumer identity may run at this provider.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ResourceList;

/// Who may use how much.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "Quota",
    plural = "quotas",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "How much the pods of one consumer identity may use at this provider, all together. Made from the ResourceSlice that was granted.",
    shortname = "qt",
    category = "liqo",
    printcolumn(name = "Enforcement", type_ = "string", json_path = ".spec.limitsEnforcement"),
    printcolumn(name = "Cordoned", type_ = "boolean", json_path = ".spec.cordoned"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "User", type_ = "string", json_path = ".spec.user", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct QuotaSpec {
    /// The user name of the identity whose ShadowPods count against this quota.
    #[schemars(length(min = 1))]
    pub user: String,

    /// What every container must state about itself: `Hard` (requests equal to limits), `Soft` (requests for CPU and
    /// memory) or `None` (nothing; what is not requested counts as zero).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_enforcement: Option<LimitsEnforcement>,

    /// How much may be requested of each resource, all pods together. A resource that is not named cannot be requested.
    pub resources: ResourceList,

    /// When true, no new pod is admitted; those that run are left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cordoned: Option<bool>,
}

/// What every container under a quota must state about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LimitsEnforcement {
    Hard,
    Soft,
    None,
}
