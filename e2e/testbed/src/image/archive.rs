//! A docker-archive: one layer, a configuration and a manifest. The same input gives the same bytes.

use anyhow::Result;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io::Write;

use super::rootfs::Rootfs;
use crate::digest::hex;

/// An image about to be written.
pub struct Image {
    pub rootfs: Rootfs,
    /// With a tag other than `latest`, which kubelets would try to pull.
    pub reference: String,
    pub config: Config,
}

/// How its containers run by default.
#[derive(Default)]
pub struct Config {
    pub user: String,
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
}

impl Image {
    pub fn write(&self, output: impl Write) -> Result<()> {
        let mut layer = Vec::new();
        self.rootfs.write_layer(&mut layer)?;
        let layer_digest = hex(&Sha256::digest(&layer));
        let config = self.configuration(&layer_digest);
        let config_name = format!("{}.json", hex(&Sha256::digest(&config)));
        let layer_name = format!("{layer_digest}/layer.tar");
        let manifest = json!([{
            "Config": config_name,
            "RepoTags": [full_reference(&self.reference)],
            "Layers": [layer_name],
        }])
        .to_string();
        let mut archive = tar::Builder::new(output);
        for (name, content) in
            [(config_name.as_str(), config.as_bytes()), (&layer_name, &layer), ("manifest.json", manifest.as_bytes())]
        {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_mtime(0);
            header.set_size(content.len() as u64);
            archive.append_data(&mut header, name, content)?;
        }
        archive.into_inner()?.flush()?;
        Ok(())
    }

    fn configuration(&self, layer_digest: &str) -> String {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        json!({
            "architecture": architecture,
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "User": self.config.user,
                "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
                "Entrypoint": self.config.entrypoint,
                "Cmd": self.config.command,
                "WorkingDir": "/",
            },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer_digest}")] },
            "history": [{ "created": "1970-01-01T00:00:00Z", "created_by": "spillway testbed" }],
        })
        .to_string()
    }
}

/// What a kubelet makes of a short name: `busybox:1` is `docker.io/library/busybox:1`.
pub fn full_reference(reference: &str) -> String {
    match reference.split_once('/') {
        None => format!("docker.io/library/{reference}"),
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => reference.to_owned(),
        Some(_) => format!("docker.io/{reference}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(content: &str) -> Vec<u8> {
        let mut rootfs = Rootfs::default();
        rootfs.file("bin/tool", content, 0o755);
        let image = Image { rootfs, reference: "tool:1".into(), config: Config::default() };
        let mut bytes = Vec::new();
        image.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_another_gives_others() {
        assert_eq!(bytes("a"), bytes("a"));
        assert_ne!(bytes("a"), bytes("b"));
    }

    #[test]
    fn references_are_written_out() {
        assert_eq!(full_reference("busybox:testbed"), "docker.io/library/busybox:testbed");
        assert_eq!(full_reference("spillway/spillway:dev"), "docker.io/spillway/spillway:dev");
        assert_eq!(full_reference("ghcr.io/a/b:1"), "ghcr.io/a/b:1");
        assert_eq!(full_reference("localhost:5000/b:1"), "localhost:5000/b:1");
    }
}
