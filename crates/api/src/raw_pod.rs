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
