//! `authentication.liqo.io/v1beta1`: how clusters come to trust each other, and how much they grant.

mod identity;
mod renew;
mod resource_slice;
mod tenant;

pub use identity::{Identity, IdentitySpec, IdentityStatus, IdentityType};
pub use renew::{Renew, RenewSpec, RenewStatus};
pub use resource_slice::{
    ResourceSlice, ResourceSliceCondition, ResourceSliceConditionStatus, ResourceSliceConditionType, ResourceSliceSpec,
    ResourceSliceStatus,
};
pub use tenant::{AuthzPolicy, Tenant, TenantCondition, TenantSpec, TenantStatus};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{k8s::ByteString, schema};

/// The API group of this module.
pub const GROUP: &str = "authentication.liqo.io";

/// What a consumer needs to speak to the provider's API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthParams {
    /// The certificate of the authority that the provider's API server is signed by, as PEM in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes")]
    pub ca: Option<ByteString>,
    /// The certificate that the provider signed for the consumer, as PEM in base64.
    #[serde(rename = "signedCRT", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes")]
    pub signed_crt: Option<ByteString>,
    /// The address of the provider's API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server: Option<String>,
    /// The proxy through which that address is reached, if there is one.
    #[serde(rename = "proxyURL", skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,
    /// The access to a provider on Amazon EKS, which signs no certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_config: Option<AwsConfig>,
}

/// The access to a provider on Amazon EKS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsConfig {
    /// The ARN of the IAM user made for the consumer.
    pub aws_user_arn: String,
    /// The ID of that user's access key.
    #[serde(rename = "awsAccessKeyID")]
    pub aws_access_key_id: String,
    /// The secret of that user's access key.
    pub aws_secret_access_key: String,
    /// The region of the EKS cluster.
    pub aws_region: String,
    /// The name of the EKS cluster.
    pub aws_cluster_name: String,
}
