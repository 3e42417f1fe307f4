//! containerd, its network plugins' configuration, and the images that are there from the start.

use anyhow::{Context, Result};
use serde_json::json;
use std::path::Path;

use super::probe::Probe;
use super::{Launch, Site};
use crate::command::{command, run};
use crate::image::stock::{self, PAUSE_IMAGE};
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

/// Writes the images that every node has, and loads them.
pub fn stock_images(site: &Site<'_>, step: &Step) -> Result<()> {
    let pause = binaries::path("pause")?;
    for image in &stock::IMAGES {
        step.waiting(image.reference);
        let archive = site.node_path("images").join(format!("{}.tar", image.file));
        let mut content = Vec::new();
        (image.build)(&pause)?.write(&mut content)?;
        write_file(&archive, content)?;
        load(site.home, &site.node.name, &archive)?;
    }
    Ok(())
}

/// Loads a docker-archive into a node's containerd, unless this very archive was loaded before.
pub fn load(home: &Home, node: &str, archive: &Path) -> Result<()> {
    let content = std::fs::read(archive).with_context(|| format!("cannot read {}", archive.display()))?;
    let marker = home.node_dir(node).join("loaded-images").join(digest::of_parts(&[&content]));
    if marker.exists() {
        return Ok(());
    }
    let socket = home.containerd_socket(node);
    run(command("ctr")
        .arg("--address")
        .arg(socket)
        .args(["--namespace", "k8s.io", "images", "import"])
        .arg(archive))
    .with_context(|| format!("cannot load {} into node {node}", archive.display()))?;
    write_file(&marker, archive.display().to_string())
}
