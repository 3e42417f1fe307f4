//! A pod whose spec and status are kept as they came, so that fields newer than this build pass through untouched.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RawObject;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RawPod {
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default, skip_serializing_if = "RawObject::is_empty")]
    pub spec: RawObject,
    #[serde(default, skip_serializing_if = "RawObject::is_empty")]
    pub status: RawObject,
}

impl RawPod {
    /// A field of the status that is a string, or "".
    pub fn status_str(&self, field: &str) -> &str {
        str_of(&self.status, field)
    }

    /// A field of the spec that is a string, or "".
    pub fn spec_str(&self, field: &str) -> &str {
        str_of(&self.spec, field)
    }
}

/// What becomes of a pod whose containers have ended: "Always", "OnFailure" or "Never". Where a container has
/// rules of its own, the pod may end however it says, as one that is never restarted.
pub fn restart_policy(spec: &RawObject) -> &str {
    let has_own = |container: &Value| {
        let rules = ["restartPolicy", "restartPolicyRules"].map(|field| container.get(field));
        rules.into_iter().flatten().any(|rule| !rule.is_null() && rule != "Always")
    };
    let containers = spec.get("containers").and_then(Value::as_array);
    match str_of(spec, "restartPolicy") {
        _ if containers.into_iter().flatten().any(has_own) => "Never",
        "" => "Always",
        policy => policy,
    }
}

/// A field of an object that is a string, or "".
pub fn str_of<'a>(object: &'a RawObject, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

impl Resource for RawPod {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Pod::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Pod::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Pod::version(&())
    }

    fn api_version((): &()) -> Cow<'_, str> {
        Pod::api_version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Pod::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(json!({}), "Always")]
    #[case(json!({"restartPolicy": "OnFailure", "containers": [{"name": "c"}]}), "OnFailure")]
    #[case::own_policy(json!({"containers": [{"name": "c"}, {"restartPolicy": "OnFailure"}]}), "Never")]
    #[case::own_rules(json!({"containers": [{"restartPolicy": "Always", "restartPolicyRules": [{}]}]}), "Never")]
    #[case::the_same_spelt_out(json!({"containers": [{"restartPolicy": "Always"}]}), "Always")]
    fn rules_of_a_container_may_end_its_pod(#[case] spec: Value, #[case] policy: &str) {
        assert_eq!(restart_policy(spec.as_object().unwrap()), policy);
    }
}
