//! What is written for the certificates.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::{ByteString, Resource as _};
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use spillway_api::well_known::field_manager;
use spillway_operator::error::{RequestError, is_conflict, settled, while_trying};
use spillway_operator::{Categorised, Category};

use super::Names;
use super::authority::{self, Authority};

pub struct Writes {
    secrets: Api<Secret>,
    configurations: Api<MutatingWebhookConfiguration>,
    names: Names,
}

impl Writes {
    pub fn new(client: &Client, names: Names) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), &names.namespace),
            configurations: Api::all(client.clone()),
            names,
        }
    }

    pub async fn create(&self, owner: &str, authority: &Authority) -> Result<(), Error> {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(self.names.secret.clone()),
                labels: Some([("app.kubernetes.io/managed-by".to_owned(), "spillway".to_owned())].into()),
                owner_references: Some(vec![OwnerReference {
                    api_version: MutatingWebhookConfiguration::API_VERSION.to_owned(),
                    kind: MutatingWebhookConfiguration::KIND.to_owned(),
                    name: self.names.configuration.clone(),
                    uid: owner.to_owned(),
                    ..OwnerReference::default()
                }]),
                ..ObjectMeta::default()
            },
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(authority.data()),
            ..Secret::default()
        };
        let params = PostParams { field_manager: Some(field_manager::ADMISSION.to_owned()), ..PostParams::default() };
        match self.secrets.create(&params, &secret).await {
            Ok(_) => tracing::info!(secret = self.names.secret, "a new authority for certificates"),
            // Another replica was first; the watch is about to show it.
            Err(error) if is_conflict(&error) => {}
            Err(error) => return Err(while_trying("create the Secret of the authority")(error).into()),
        }
        Ok(())
    }

    /// Refused if somebody was quicker; the watch is about to show it.
    pub async fn replace(&self, resource_version: &str, authority: &Authority) -> Result<(), Error> {
        let patch = json!({"metadata": {"resourceVersion": resource_version}, "data": authority.data_patch()});
        settled(self.secrets.patch(&self.names.secret, &params(), &Patch::Merge(patch)).await)
            .map_err(while_trying("renew the authority in its Secret"))?;
        tracing::info!(secret = self.names.secret, "the authority for certificates was renewed");
        Ok(())
    }

    pub async fn trust(&self, authority: &Authority, webhooks: &[&str]) -> Result<(), Error> {
        let bundle = ByteString(authority.bundle());
        let webhooks: Vec<_> =
            webhooks.iter().map(|name| json!({"name": name, "clientConfig": {"caBundle": bundle}})).collect();
        let patch = Patch::Strategic(json!({"webhooks": webhooks}));
        settled(self.configurations.patch(&self.names.configuration, &params(), &patch).await)
            .map_err(while_trying("write the caBundle of the webhooks"))?;
        tracing::info!(configuration = self.names.configuration, "the webhooks trust the authority");
        Ok(())
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(field_manager::ADMISSION.to_owned()), ..PatchParams::default() }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Certificate(#[from] authority::Error),
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl Categorised for Error {
    fn category(&self) -> Category {
        match self {
            Error::Certificate(_) => Category::Permanent,
            Error::Request(error) => error.category(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Certificate(_) => None,
            Error::Request(error) => error.retry_after(),
        }
    }
}
