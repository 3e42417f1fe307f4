//! Kubeconfig files with everything in them, so that they can be copied anywhere.

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::path::{Path, PathBuf};

use crate::plan::Cluster;
use crate::state::{Home, write_file};

/// Writes a kubeconfig for the client whose certificate is `pki/CLIENT.crt`.
pub fn write(home: &Home, cluster: &Cluster, client: &str, path: &Path) -> Result<()> {
    let pki = home.pki(&cluster.name);
    let encoded = |file: String| -> Result<String> {
        let file = pki.join(file);
        let content = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(STANDARD.encode(content))
    };
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
         clusters:\n- name: {name}\n  cluster:\n    server: {server}\n    certificate-authority-data: {authority}\n\
         contexts:\n- name: {name}\n  context: {{cluster: {name}, user: {client}}}\n\
         users:\n- name: {client}\n  user:\n    client-certificate-data: {certificate}\n    client-key-data: {key}\n",
        name = cluster.name,
        server = cluster.api_url(),
        authority = encoded("ca.crt".into())?,
        certificate = encoded(format!("{client}.crt"))?,
        key = encoded(format!("{client}.key"))?,
    );
    write_file(path, text)?;
    let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(path, only_owner).with_context(|| format!("cannot protect {}", path.display()))
}

/// The kubeconfig of a component, written if need be.
pub fn of_client(home: &Home, cluster: &Cluster, client: &str) -> Result<PathBuf> {
    let path = home.cluster_dir(&cluster.name).join("clients").join(format!("{client}.kubeconfig"));
    write(home, cluster, client, &path)?;
    Ok(path)
}
