//! The images that every node has from the start. A new one is a new row.

use anyhow::{Context, Result};
use std::path::Path;

use super::archive::{Config, Image};
use super::rootfs::Rootfs;
use crate::command::{command, run};
use crate::packages;

/// As containerd is told to use it for every pod.
pub const PAUSE_IMAGE: &str = "docker.io/library/pause:testbed";

pub struct Stock {
    pub reference: &'static str,
    pub file: &'static str,
    /// Given the pause program.
    pub build: fn(&Path) -> Result<Image>,
}

pub static IMAGES: [Stock; 2] = [
    Stock { reference: "pause:testbed", file: "pause", build: pause },
    Stock { reference: "busybox:testbed", file: "busybox", build: busybox },
];

fn pause(program: &Path) -> Result<Image> {
    let mut rootfs = Rootfs::default();
    rootfs.program(program, "pause")?;
    let config = Config { user: "65535:65535".into(), entrypoint: vec!["/pause".into()], ..Config::default() };
    Ok(Image { rootfs, reference: "pause:testbed".into(), config })
}

/// A shell, the usual tools, and curl: busybox's own wget crashes as Debian builds it.
fn busybox(_: &Path) -> Result<Image> {
    let find = |name: &str| packages::find(name).with_context(|| format!("{name} is not installed"));
    let busybox = find("busybox")?;
    let mut rootfs = Rootfs::default();
    rootfs.program(&busybox, "bin/busybox")?.program(&find("curl")?, "usr/bin/curl")?.name_service()?;
    for applet in run(command(&busybox).arg("--list"))?.lines().filter(|applet| *applet != "busybox") {
        rootfs.link(&format!("bin/{applet}"), "busybox");
    }
    rootfs
        .directory("tmp", 0o1777)
        .directory("root", 0o700)
        .file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n", 0o644)
        .file("etc/group", "root:x:0:\nnogroup:x:65534:\n", 0o644);
    let config = Config { command: vec!["/bin/sh".into()], ..Config::default() };
    Ok(Image { rootfs, reference: "busybox:testbed".into(), config })
}
