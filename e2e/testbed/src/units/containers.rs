//! containerd, its network plugins' configuration, and the images that are there from the start.

use anyhow::{Context, Result, anyhow};
use serde_json::json;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::probe::Probe;
use super::{Launch, Site};
use crate::command::{command, run};
use crate::image::stock::{self, PAUSE_IMAGE, Stock};
use crate::progress::Step;
use crate::state::{Home, write_file};
use crate::{binaries, digest};

const CNI_PLUGINS: &str = "/usr/lib/cni";

pub fn containerd(site: &Site<'_>) -> Result<Launch> {
    let config = site.node_path("containerd.toml");
    let network = site.node_path("cni-config");
    let mut launch = Launch::with_args(["--config".to_owned(), config.display().to_string()]);
    launch.args.extend(["--log-level".into(), "info".into()]);
    launch.files = vec![(config, containerd_config(site)), (network.join("10-testbed.conflist"), network_config(site))];
    launch.in_node_mounts = true;
    Ok(launch)
}

pub fn containerd_ready(site: &Site<'_>) -> Probe {
    Probe::Socket(site.home.containerd_socket(&site.node.name))
}

fn containerd_config(site: &Site<'_>) -> String {
    let root = site.node_path("containerd");
    let socket = site.home.containerd_socket(&site.node.name);
    let network = site.node_path("cni-config");
    // restrict_oom_score_adj: runc dies where the machine may not lower the score.
    // The pods' network namespaces stay inside the node: those in /run/netns would be left behind on the host.
    format!(
        r#"version = 2
root = "{root}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs"]
[grpc]
address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
path = "{root}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{network}"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"#,
        root = root.display(),
        socket = socket.display(),
        network = network.display(),
    )
}

fn network_config(site: &Site<'_>) -> String {
    let config = json!({
        "cniVersion": "1.0.0",
        "name": "testbed",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                "hairpinMode": true,
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{ "subnet": site.node.pod_cidr }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true }, "snat": true },
        ],
    });
    format!("{config:#}\n")
}

/// Loads the images that every node has.
pub fn stock_images(site: &Site<'_>, step: &Step) -> Result<()> {
    for image in &stock::IMAGES {
        step.waiting(image.reference);
        load(site.home, &site.node.name, &stock_archive(site.home, image)?)?;
    }
    Ok(())
}

/// The archive of a stock image, written once for all nodes.
fn stock_archive(home: &Home, image: &Stock) -> Result<PathBuf> {
    static WRITING: Mutex<()> = Mutex::new(());
    let _turn = WRITING.lock().map_err(|_| anyhow!("another thread failed to write an image"))?;
    let pause = binaries::path("pause")?;
    // The program's path holds the digest of its sources: a new version is a new image.
    let version = digest::short(&[pause.as_os_str().as_encoded_bytes()]);
    let archive = home.dir.join("images").join(format!("{}-{version}.tar", image.file));
    if !archive.exists() {
        let mut content = Vec::new();
        (image.build)(&pause)?.write(&mut content)?;
        write_file(&archive, content)?;
    }
    Ok(archive)
}

/// Loads a docker-archive into a node's containerd, unless this very file was loaded before.
pub fn load(home: &Home, node: &str, archive: &Path) -> Result<()> {
    let found = fs::metadata(archive).with_context(|| format!("cannot read {}", archive.display()))?;
    let identity = format!("{} {} {} {}", found.ino(), found.len(), found.mtime(), found.mtime_nsec());
    let name = digest::short(&[archive.as_os_str().as_encoded_bytes(), identity.as_bytes()]);
    let marker = home.node_dir(node).join("loaded-images").join(name);
    if marker.exists() {
        return Ok(());
    }
    run(command("ctr")
        .arg("--address")
        .arg(home.containerd_socket(node))
        .args(["--namespace", "k8s.io", "images", "import"])
        .arg(archive))
    .with_context(|| format!("cannot load {} into node {node}", archive.display()))?;
    write_file(&marker, archive.display().to_string())
}
