//! What a VirtualNode's virtual-kubelet is made of. Pure: no client, no clock.
//!
//! From the VirtualNode's own `spec.template` (Liqo renders a whole Deployment there) are honoured: the labels and
//! annotations of the Deployment and of its pods, their node selector and affinity, and image and resources of their
//! container. They win over the VkOptionsTemplate; the rest of it is not looked at.

mod affinity;
mod deployment;
mod parts;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use sha2::{Digest, Sha256};
use spillway_api::core::ClusterId;
use spillway_api::offloading::{OffloadingPatch, VirtualNode, VkOptionsTemplateSpec};
use spillway_api::well_known::{label, name};
use spillway_operator::ObjectKey;

/// The rights of every virtual-kubelet; the chart defines them, and the operator may bind just these.
pub const CLUSTER_ROLE: &str = "spillway-virtual-kubelet";
pub const TENANT_ROLE: &str = "spillway-virtual-kubelet-tenant";
pub const NODE_LEASE_ROLE: &str = "spillway-virtual-kubelet-node-lease";
/// Where Kubernetes keeps the heartbeats of nodes.
pub const NODE_LEASE_NAMESPACE: &str = "kube-node-lease";

/// On everything made here: the VirtualNode that it was made for, as `<namespace>/<name>`. A label cannot hold every name.
pub const MADE_FOR: &str = "offloading.spillway.dev/virtual-node";

const LABEL_LIMIT: usize = 63;
/// Leaves room for the hash that a ReplicaSet's name ends with.
const DEPLOYMENT_NAME_LIMIT: usize = 240;
const NAME_LIMIT: usize = 253;
const HASH_DIGITS: usize = 10;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForgeError {
    #[error(
        "the name has {0} characters: that of a Node is also its label kubernetes.io/hostname, so 63 is the most; make one with a shorter name"
    )]
    NameTooLong(usize),
    #[error("spec.clusterID is not set: it names the remote cluster")]
    NoClusterId,
    #[error("spec.kubeconfigSecretRef is not set: it names the Secret whose key 'kubeconfig' opens the remote cluster")]
    NoKubeconfigSecret,
    #[error("the VkOptionsTemplate cannot be used: {0}")]
    BadOptions(String),
    #[error("spec.template cannot be used: {0}")]
    BadTemplate(String),
}

impl ForgeError {
    pub fn reason(&self) -> &'static str {
        match self {
            ForgeError::NameTooLong(_) => "NameTooLong",
            ForgeError::NoClusterId => "ClusterIDMissing",
            ForgeError::NoKubeconfigSecret => "KubeconfigSecretRefMissing",
            ForgeError::BadOptions(_) => "VkOptionsTemplateInvalid",
            ForgeError::BadTemplate(_) => "TemplateInvalid",
        }
    }
}

/// Everything that the forge looks at.
pub struct Inputs<'a> {
    pub virtual_node: &'a VirtualNode,
    pub options: &'a VkOptionsTemplateSpec,
    pub home: &'a ClusterId,
    pub create_node: bool,
}

#[derive(Clone, Debug)]
pub struct Forged {
    pub service_account: ServiceAccount,
    pub cluster_binding: ClusterRoleBinding,
    pub tenant_binding: RoleBinding,
    pub node_lease_binding: RoleBinding,
    pub deployment: Deployment,
}

/// The keys of what is made for one VirtualNode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// ServiceAccount, RoleBinding and Deployment of the tenant namespace share one name.
    pub in_tenant: ObjectKey,
    pub cluster_binding: ObjectKey,
    pub node_lease_binding: ObjectKey,
}

impl Names {
    pub fn of(virtual_node: &ObjectKey) -> Self {
        let (namespace, name) = (&virtual_node.namespace, &virtual_node.name);
        let local = bounded(&format!("{}{name}", name::VIRTUAL_KUBELET_PREFIX), DEPLOYMENT_NAME_LIMIT);
        // A colon occurs in no namespace and no name, so no two VirtualNodes share a binding.
        let global = bounded(&format!("{CLUSTER_ROLE}:{namespace}:{name}"), NAME_LIMIT);
        Self {
            in_tenant: ObjectKey::new(namespace.clone(), local),
            cluster_binding: ObjectKey::new("", global.as_str()),
            node_lease_binding: ObjectKey::new(NODE_LEASE_NAMESPACE, global),
        }
    }
}

pub fn all(inputs: &Inputs<'_>) -> Result<Forged, ForgeError> {
    let virtual_node = inputs.virtual_node;
    let key = ObjectKey::of(virtual_node);
    if key.name.len() > LABEL_LIMIT {
        return Err(ForgeError::NameTooLong(key.name.len()));
    }
    let names = Names::of(&key);
    let cluster_id = cluster_id(virtual_node)?;
    let meta = |key: &ObjectKey| metadata(virtual_node, cluster_id, key);
    let binding = |key: &ObjectKey, role: &str| RoleBinding {
        metadata: meta(key),
        role_ref: role_ref(role),
        subjects: Some(vec![subject(&names.in_tenant)]),
    };
    Ok(Forged {
        service_account: ServiceAccount { metadata: meta(&names.in_tenant), ..ServiceAccount::default() },
        cluster_binding: ClusterRoleBinding {
            metadata: meta(&names.cluster_binding),
            role_ref: role_ref(CLUSTER_ROLE),
            subjects: Some(vec![subject(&names.in_tenant)]),
        },
        tenant_binding: binding(&names.in_tenant, TENANT_ROLE),
        node_lease_binding: binding(&names.node_lease_binding, NODE_LEASE_ROLE),
        deployment: deployment::forge(inputs, meta(&names.in_tenant))?,
    })
}

pub fn cluster_id(virtual_node: &VirtualNode) -> Result<&ClusterId, ForgeError> {
    virtual_node.spec.cluster_id.as_ref().filter(|id| !id.as_str().is_empty()).ok_or(ForgeError::NoClusterId)
}

pub fn creates_node(virtual_node: &VirtualNode, options: &VkOptionsTemplateSpec) -> bool {
    virtual_node.spec.create_node.unwrap_or(options.create_node)
}

/// The patch of the spec, with the keys that the template keeps at home as well.
pub fn effective_patch(virtual_node: &VirtualNode, options: &VkOptionsTemplateSpec) -> OffloadingPatch {
    let mut patch = virtual_node.spec.offloading_patch.clone().unwrap_or_default();
    add_missing(&mut patch.labels_not_reflected, &options.labels_not_reflected);
    add_missing(&mut patch.annotations_not_reflected, &options.annotations_not_reflected);
    patch
}

fn add_missing(list: &mut Vec<String>, more: &[String]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

/// The labels by which clients find a virtual-kubelet, and by which the Deployment finds its pods.
pub fn labels(virtual_node: &str, cluster_id: &ClusterId) -> BTreeMap<String, String> {
    [
        (label::COMPONENT, label::COMPONENT_VIRTUAL_KUBELET.to_owned()),
        (label::REMOTE_CLUSTER_ID, bounded(cluster_id.as_str(), LABEL_LIMIT)),
        (label::VIRTUAL_NODE, bounded(virtual_node, LABEL_LIMIT)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

fn metadata(virtual_node: &VirtualNode, cluster_id: &ClusterId, key: &ObjectKey) -> ObjectMeta {
    let same_namespace = virtual_node.metadata.namespace.as_deref() == Some(&*key.namespace);
    ObjectMeta {
        name: Some(key.name.to_string()),
        namespace: (!key.namespace.is_empty()).then(|| key.namespace.to_string()),
        labels: Some(labels(&virtual_node.name_any(), cluster_id)),
        annotations: Some([(MADE_FOR.to_owned(), ObjectKey::of(virtual_node).to_string())].into()),
        owner_references: same_namespace.then(|| vec![owner(virtual_node)]),
        ..ObjectMeta::default()
    }
}

fn owner(virtual_node: &VirtualNode) -> OwnerReference {
    OwnerReference {
        api_version: VirtualNode::api_version(&()).into_owned(),
        kind: VirtualNode::kind(&()).into_owned(),
        name: virtual_node.name_any(),
        uid: virtual_node.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

fn role_ref(role: &str) -> RoleRef {
    RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: "ClusterRole".to_owned(),
        name: role.to_owned(),
    }
}

fn subject(service_account: &ObjectKey) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: service_account.name.to_string(),
        namespace: Some(service_account.namespace.to_string()),
        api_group: None,
    }
}

/// The text itself where it fits; else its beginning and a hash of the whole.
pub fn bounded(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let hash = sha256(text);
    let head = text[..limit - HASH_DIGITS - 1].trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    format!("{head}-{}", &hash[..HASH_DIGITS])
}

pub fn sha256(text: impl AsRef<[u8]>) -> String {
    format!("{:x}", Sha256::digest(text))
}
