//! The certificates of a cluster, made once and valid for decades: a testbed does not teach renewal.

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use std::fs;
use std::path::{Path, PathBuf};

use crate::plan::{Cluster, Node};
use crate::state::write_file;

/// A certificate authority whose files are `NAME.crt` and `NAME.key`.
pub struct Authority {
    dir: PathBuf,
    name: String,
    issuer: Issuer<'static, KeyPair>,
}

/// Who a client certificate makes its holder.
pub struct Client<'a> {
    pub file: &'a str,
    pub user: &'a str,
    pub group: Option<&'a str>,
}

/// Every control-plane client: (file, user, group).
const CLIENTS: [Client<'static>; 8] = [
    Client { file: "admin", user: "admin", group: Some("system:masters") },
    Client { file: "apiserver-kubelet-client", user: "kube-apiserver-kubelet-client", group: Some("system:masters") },
    Client { file: "kube-controller-manager", user: "system:kube-controller-manager", group: None },
    Client { file: "kube-scheduler", user: "system:kube-scheduler", group: None },
    Client { file: "kube-proxy", user: "system:kube-proxy", group: None },
    Client { file: "coredns", user: "testbed:coredns", group: None },
    Client { file: "prometheus", user: "testbed:prometheus", group: None },
    Client { file: "kwok", user: "testbed:kwok", group: Some("system:masters") },
];

/// Everything below the cluster's `pki` folder that is not there yet.
pub fn ensure(dir: &Path, cluster: &Cluster) -> Result<()> {
    let authority = Authority::load_or_create(dir, "ca")?;
    let api = cluster.api_address.to_string();
    let service = cluster.api_service_address().to_string();
    let names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
    let sans: Vec<&str> = names.into_iter().chain(["localhost", "127.0.0.1", &cluster.name, &api, &service]).collect();
    authority.serving("apiserver", "kube-apiserver", &sans)?;
    for client in &CLIENTS {
        authority.client(client)?;
    }
    for node in &cluster.nodes {
        ensure_node(&authority, node)?;
    }
    authority.serving("kwok-serving", "kwok", &[&api])?;
    let front_proxy = Authority::load_or_create(dir, "front-proxy-ca")?;
    front_proxy.client(&Client { file: "front-proxy-client", user: "front-proxy-client", group: None })?;
    let signer = dir.join("service-account.key");
    ensure_key(&signer)?;
    write_file(&dir.join("service-account.pub"), read_key(&signer)?.public_key_pem())
}

fn ensure_node(authority: &Authority, node: &Node) -> Result<()> {
    let user = format!("system:node:{}", node.name);
    let address = node.address.to_string();
    authority.serving(&serving_file(node), &user, &[&node.name, &address, "127.0.0.1"])?;
    authority.client(&Client { file: &client_file(node), user: &user, group: Some("system:nodes") })
}

pub fn serving_file(node: &Node) -> String {
    format!("kubelet-serving-{}", node.index)
}

pub fn client_file(node: &Node) -> String {
    format!("kubelet-client-{}", node.index)
}

impl Authority {
    pub fn load_or_create(dir: &Path, name: &str) -> Result<Self> {
        let (key_path, cert_path) = (dir.join(format!("{name}.key")), dir.join(format!("{name}.crt")));
        ensure_key(&key_path)?;
        let key = read_key(&key_path)?;
        // The subject is all that an issuer needs to be itself again; the key is read from its file.
        let params = authority_params(name)?;
        if !cert_path.exists() {
            write_file(&cert_path, params.self_signed(&key)?.pem())?;
        }
        Ok(Self { dir: dir.to_owned(), name: name.to_owned(), issuer: Issuer::new(params, key) })
    }

    fn serving(&self, file: &str, user: &str, sans: &[&str]) -> Result<()> {
        let sans: Vec<String> = sans.iter().map(|san| (*san).to_owned()).collect();
        let mut params = CertificateParams::new(sans)?;
        params.distinguished_name = subject(user, None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(file, params)
    }

    fn client(&self, client: &Client<'_>) -> Result<()> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = subject(client.user, client.group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(client.file, params)
    }

    fn issue(&self, file: &str, mut params: CertificateParams) -> Result<()> {
        let cert_path = self.dir.join(format!("{file}.crt"));
        let key_path = self.dir.join(format!("{file}.key"));
        if cert_path.exists() {
            return Ok(());
        }
        ensure_key(&key_path)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.use_authority_key_identifier_extension = true;
        long_lived(&mut params);
        let signed = params
            .signed_by(&read_key(&key_path)?, &self.issuer)
            .with_context(|| format!("{} cannot sign {file}", self.name))?;
        write_file(&cert_path, signed.pem())
    }
}

fn authority_params(name: &str) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = subject(&format!("testbed-{name}"), None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    long_lived(&mut params);
    Ok(params)
}

fn subject(user: &str, group: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject.push(DnType::CommonName, user);
    subject
}

fn long_lived(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2024, 1, 1);
    params.not_after = date_time_ymd(2074, 1, 1);
}

fn ensure_key(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    write_file(path, KeyPair::generate()?.serialize_pem())?;
    let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(path, only_owner).with_context(|| format!("cannot protect {}", path.display()))
}

fn read_key(path: &Path) -> Result<KeyPair> {
    let pem = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    KeyPair::from_pem(&pem).with_context(|| format!("{} holds no key", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::spec::Spec;

    #[test]
    fn certificates_are_made_once_and_grow_with_the_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let small = Plan::new(0, &Spec::default());
        ensure(folder.path(), &small.clusters[0]).unwrap();
        let first = fs::read(folder.path().join("ca.crt")).unwrap();
        assert!(!folder.path().join("kubelet-serving-1.crt").exists());
        let larger = Plan::new(0, &Spec { nodes: 2, ..Spec::default() });
        ensure(folder.path(), &larger.clusters[0]).unwrap();
        assert_eq!(first, fs::read(folder.path().join("ca.crt")).unwrap());
        assert!(folder.path().join("kubelet-serving-1.crt").exists());
    }
}
