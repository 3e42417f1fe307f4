//! Kubeconfig files for the operators, with the rights that the charts give them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use spillway_api::well_known::name;
use spillway_e2e::by_hand::Peering;
use spillway_e2e::{Side, wait};

const DAY: i64 = 24 * 60 * 60;

/// A kubeconfig with a token of a service account, as its pod would have.
pub async fn of_service_account(side: &Side, namespace: &str, account: &str, folder: &Path) -> Result<PathBuf> {
    let api = Api::<ServiceAccount>::namespaced(side.client.clone(), namespace);
    wait::until_one("the service account", api.clone(), account, |account| account.is_some()).await?;
    let request: TokenRequest =
        serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": [], "expirationSeconds": DAY}}))?;
    let answer = api.create_token_request(account, &PostParams::default(), &request).await?;
    let token = answer.status.context("no token was given")?.token;
    let admin = Kubeconfig::read_from(&side.kubeconfig)?;
    let cluster = admin.clusters.first().and_then(|named| named.cluster.as_ref()).context("no cluster")?;
    let file = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "own",
        "clusters": [{"name": "own", "cluster": {
            "server": side.api_url, "certificate-authority-data": cluster.certificate_authority_data,
        }}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": account}}],
        "users": [{"name": account, "user": {"token": token}}],
    });
    write(&folder.join(format!("{}-{account}.kubeconfig", side.name)), &file)
}

/// The consumer's kubeconfig of the provider as the peering made it; `server` stands for the API server if given.
pub async fn of_consumer(home: &Side, peering: &Peering, server: Option<String>, folder: &Path) -> Result<PathBuf> {
    let secrets = Api::<Secret>::namespaced(home.client.clone(), &peering.tenant_namespace);
    let secret = secrets.get(&peering.kubeconfig_secret).await?;
    let content = secret.data.and_then(|mut data| data.remove(name::KUBECONFIG_KEY)).context("no kubeconfig")?;
    let mut file: Value = serde_json::from_slice(&content.0).context("the kubeconfig is not JSON")?;
    if let Some(server) = server {
        file["clusters"][0]["cluster"]["server"] = json!(server);
    }
    write(&folder.join("consumer.kubeconfig"), &file)
}

fn write(path: &Path, content: &Value) -> Result<PathBuf> {
    fs::write(path, content.to_string()).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(path.to_owned())
}
