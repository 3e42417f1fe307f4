//! What a user still does by hand: an identity on the provider, its kubeconfig Secret, a VirtualNode, a NamespaceMap, and
//! twin namespaces. Each step can be repeated.

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Resource;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use spillway_api::offloading::{NamespaceMap, VirtualNode};
use spillway_api::well_known::{annotation, label, name};

use crate::cluster::Side;
use crate::install::NAMESPACE;
use crate::wait;

/// A consumer and a provider that know each other.
#[derive(Clone, Debug)]
pub struct Peering {
    pub home_id: String,
    pub away_id: String,
    /// Where the consumer keeps what concerns this provider.
    pub tenant_namespace: String,
    pub kubeconfig_secret: String,
}

/// The ID that the operator made at install time.
pub async fn cluster_id(side: &Side) -> Result<String> {
    let api = Api::<ConfigMap>::namespaced(side.client.clone(), NAMESPACE);
    let labels = format!("{}={}", label::APP_NAME, label::APP_NAME_CLUSTER_ID);
    let found = wait::until("the cluster ID", api, kube::runtime::watcher::Config::default().labels(&labels), |maps| {
        !maps.is_empty()
    })
    .await?;
    let map = found.into_values().next().context("no ConfigMap")?;
    map.data.and_then(|mut data| data.remove(name::CLUSTER_ID_KEY)).context("the ConfigMap has no CLUSTER_ID")
}

/// Makes the two clusters known to each other.
pub async fn peer(home: &Side, away: &Side) -> Result<Peering> {
    let (home_id, away_id) = (cluster_id(home).await?, cluster_id(away).await?);
    let tenant_namespace = format!("{}{away_id}", name::TENANT_NAMESPACE_PREFIX);
    let labels = json!({label::REMOTE_CLUSTER_ID: away_id, label::TENANT_NAMESPACE: "true"});
    apply_cluster::<Namespace>(home, json!({"metadata": {"name": tenant_namespace, "labels": labels}})).await?;
    let peering = Peering { kubeconfig_secret: format!("kubeconfig-{away_id}"), home_id, away_id, tenant_namespace };

    let secrets = Api::<Secret>::namespaced(home.client.clone(), &peering.tenant_namespace);
    if secrets.get_opt(&peering.kubeconfig_secret).await?.is_none() {
        let kubeconfig = identity(away, &peering.home_id).await?;
        let secret = json!({
            "metadata": {"name": peering.kubeconfig_secret, "labels": {label::REMOTE_CLUSTER_ID: peering.away_id}},
            "stringData": {"kubeconfig": kubeconfig},
        });
        apply::<Secret>(home, &peering.tenant_namespace, secret).await?;
    }
    let map = json!({"metadata": {"name": peering.away_id, "labels": {
        label::REMOTE_CLUSTER_ID: peering.away_id, label::REPLICATION: "true", label::REPLICATION_DESTINATION: peering.away_id,
    }}, "spec": {}});
    apply::<NamespaceMap>(home, &peering.tenant_namespace, map).await?;
    Ok(peering)
}

/// A VirtualNode of the peering.
pub async fn virtual_node(home: &Side, peering: &Peering, name: &str) -> Result<()> {
    let node = json!({
        "metadata": {"name": name, "labels": {label::REMOTE_CLUSTER_ID: peering.away_id}},
        "spec": {
            "clusterID": peering.away_id, "createNode": true, "kubeconfigSecretRef": {"name": peering.kubeconfig_secret},
            "resourceQuota": {"hard": {"cpu": 20, "memory": "20Gi", "pods": "200", "ephemeral-storage": "20Gi"}},
        },
    });
    apply::<VirtualNode>(home, &peering.tenant_namespace, node).await
}

/// A twin for a local namespace: the namespace on the provider, the consumer's rights in it, and the entry in the map.
pub async fn twin(home: &Side, away: &Side, peering: &Peering, namespace: &str) -> Result<String> {
    let twin = format!("{namespace}-{}", peering.home_id);
    apply_cluster::<Namespace>(
        away,
        json!({"metadata": {
            "name": twin,
            "labels": {label::REMOTE_CLUSTER_ID: peering.home_id},
            "annotations": {annotation::ORIGINAL_NAME: namespace},
        }}),
    )
    .await?;
    let binding = json!({
        "metadata": {"name": "liqo-virtual-kubelet-remote"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "liqo-virtual-kubelet-remote"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": peering.home_id}],
    });
    apply::<RoleBinding>(away, &twin, binding).await?;
    map_entry(home, peering, namespace, json!(twin), json!({"remoteNamespace": twin, "phase": "Accepted"})).await?;
    Ok(twin)
}

/// Takes the entry of a namespace out of the map.
pub async fn untwin(home: &Side, peering: &Peering, namespace: &str) -> Result<()> {
    map_entry(home, peering, namespace, Value::Null, Value::Null).await
}

async fn map_entry(home: &Side, peering: &Peering, namespace: &str, desired: Value, current: Value) -> Result<()> {
    let api = Api::<NamespaceMap>::namespaced(home.client.clone(), &peering.tenant_namespace);
    let (params, map) = (PatchParams::default(), &peering.away_id);
    api.patch(map, &params, &Patch::Merge(json!({"spec": {"desiredMapping": {namespace: desired}}}))).await?;
    api.patch_status(map, &params, &Patch::Merge(json!({"status": {"currentMapping": {namespace: current}}}))).await?;
    Ok(())
}

/// A certificate that the provider signed for the consumer: its group is the consumer's ID, its rights come with each twin.
async fn identity(away: &Side, home_id: &str) -> Result<String> {
    let hash: String = Sha256::digest(home_id).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let user = format!("by-hand-{hash}");
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user.as_str());
    params.distinguished_name.push(DnType::OrganizationName, home_id);
    let request = params.serialize_request(&key)?.pem()?;
    let api = Api::<CertificateSigningRequest>::all(away.client.clone());
    let csr: CertificateSigningRequest = serde_json::from_value(json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "spillway-by-hand-"},
        "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
                 "request": ByteString(request.into_bytes())},
    }))?;
    let csr = api.create(&PostParams::default(), &csr).await?;
    let csr_name = csr.metadata.name.clone().context("the request has no name")?;
    let approval = json!({"status": {"conditions": [{
        "type": "Approved", "status": "True", "reason": "ByHand", "message": "approved by the provider's admin",
    }]}});
    api.patch_approval(&csr_name, &PatchParams::default(), &Patch::Merge(approval)).await?;
    let certificate = |csr: &CertificateSigningRequest| csr.status.as_ref()?.certificate.clone();
    let signed =
        wait::until_one("the signed certificate", api, &csr_name, |csr| csr.and_then(certificate).is_some()).await?;
    let signed = signed.as_ref().and_then(certificate).context("no certificate")?;
    kubeconfig(away, &signed.0, key.serialize_pem().as_bytes())
}

/// The administrator's kubeconfig with the user replaced.
fn kubeconfig(away: &Side, certificate: &[u8], key: &[u8]) -> Result<String> {
    let admin = kube::config::Kubeconfig::read_from(&away.kubeconfig)?;
    let cluster = admin.clusters.first().and_then(|named| named.cluster.as_ref()).context("no cluster")?;
    let authority = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => json!(data),
        (None, Some(path)) => json!(ByteString(std::fs::read(path)?)),
        (None, None) => anyhow::bail!("the kubeconfig of {} names no authority", away.name),
    };
    let file = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "remote",
        "clusters": [{"name": "remote", "cluster": {"server": away.api_url, "certificate-authority-data": authority}}],
        "contexts": [{"name": "remote", "context": {"cluster": "remote", "user": "consumer"}}],
        "users": [{"name": "consumer", "user": {
            "client-certificate-data": ByteString(certificate.to_vec()), "client-key-data": ByteString(key.to_vec()),
        }}],
    });
    Ok(serde_json::to_string_pretty(&file)?)
}

/// Server-side apply of a namespaced object.
pub async fn apply<K>(side: &Side, namespace: &str, object: Value) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    apply_to::<K>(Api::namespaced(side.client.clone(), namespace), object).await
}

/// Server-side apply of an object that lies in no namespace.
pub async fn apply_cluster<K>(side: &Side, object: Value) -> Result<()>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug,
{
    apply_to::<K>(Api::all(side.client.clone()), object).await
}

async fn apply_to<K>(api: Api<K>, mut object: Value) -> Result<()>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug,
{
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    let name = object["metadata"]["name"].as_str().context("an object without a name")?.to_owned();
    let params = PatchParams::apply("spillway-by-hand").force();
    api.patch(&name, &params, &Patch::Apply(&object))
        .await
        .with_context(|| format!("cannot apply {} {name}", K::kind(&())))?;
    Ok(())
}

/// How many objects of a kind there are, with these labels.
pub async fn count<K>(api: &Api<K>, labels: &str) -> Result<usize>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug,
{
    Ok(api.list(&ListParams::default().labels(labels)).await?.items.len())
}
