//! ShadowEndpointSlice: the consumer's endpoints of a service, for the provider to make reachable.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    RawObject,
    k8s::{Endpoint, EndpointPort},
    schema,
};

/// The endpoints that are to be known at the provider.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "ShadowEndpointSlice",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "Endpoints of a consumer's service that do not run at this provider. The provider translates the addresses into its own view and keeps an EndpointSlice of the same name.",
    shortname = "shes",
    shortname = "sheps",
    shortname = "seps",
    category = "liqo"
)]
#[serde(rename_all = "camelCase")]
pub struct ShadowEndpointSliceSpec {
    /// The EndpointSlice that is wanted, with the addresses as the consumer knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<EndpointSliceTemplate>,
}

/// The content of an EndpointSlice. Fields that are newer than this version of Spillway are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointSliceTemplate {
    /// The endpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list::<Endpoint>")]
    pub endpoints: Vec<RawObject>,
    /// The ports on which every endpoint listens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list::<EndpointPort>")]
    pub ports: Vec<RawObject>,
    /// What the addresses are: `IPv4`, `IPv6` or `FQDN`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_type: Option<String>,
}
