//! Debian packages that the testbed needs: installed when missing, and never left running as services.

use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::command::{command, run_ticking, search_path, succeeds};
use crate::progress::Progress;

/// A package, and a program or file of it that shows it is there.
pub struct Package {
    pub name: &'static str,
    witness: &'static str,
}

const fn package(name: &'static str, witness: &'static str) -> Package {
    Package { name, witness }
}

/// For the network and the probes: every testbed.
pub const ALWAYS: [Package; 5] = [
    package("iproute2", "ip"),
    package("nftables", "nft"),
    package("util-linux", "nsenter"),
    package("curl", "curl"),
    package("ca-certificates", "/etc/ssl/certs/ca-certificates.crt"),
];

/// For real nodes.
pub const NODE: [Package; 9] = [
    package("containerd", "containerd"),
    package("runc", "runc"),
    package("containernetworking-plugins", "/usr/lib/cni/bridge"),
    package("iptables", "iptables"),
    package("conntrack", "conntrack"),
    package("ethtool", "ethtool"),
    package("socat", "socat"),
    package("busybox", "busybox"),
    package("mount", "mount"),
];

pub const PROMETHEUS: [Package; 1] = [package("prometheus", "prometheus")];

/// Stops package scripts from starting services while it exists.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_TEXT: &str = "#!/bin/sh\n# Made by the Spillway testbed while it installs packages.\nexit 101\n";

/// Says in one message what the machine lacks that no package can give.
pub fn check_machine(programs_to_build: bool) -> Result<()> {
    let mut missing = Vec::new();
    if !cfg!(target_os = "linux") {
        missing.push("Linux");
    }
    if !rustix::process::geteuid().is_root() {
        missing.push("root (run it with sudo)");
    }
    if programs_to_build && find("go").is_none() {
        missing.push("Go 1.25 or newer on the PATH (the clusters' programs are built with it, once)");
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("the testbed needs: {}", missing.join("; "))
}

/// Installs the packages of which nothing is found.
pub fn ensure(packages: &[&Package], progress: &Progress) -> Result<()> {
    let missing: Vec<&str> =
        packages.iter().filter(|package| find(package.witness).is_none()).map(|package| package.name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if find("apt-get").is_none() {
        bail!("please install {} (this machine has no apt-get, so the testbed cannot)", missing.join(", "));
    }
    let step = progress.step(&format!("install {}", missing.join(" ")));
    let _quiet = NoServices::new()?;
    run_ticking(apt().arg("update"), || step.waiting("apt-get update")).context("cannot refresh the package list")?;
    let mut install = apt();
    install.args(["install", "-y", "--no-install-recommends"]).args(&missing);
    run_ticking(&mut install, || step.waiting("apt-get install"))
        .with_context(|| format!("cannot install {}", missing.join(", ")))?;
    step.done("installed");
    Ok(())
}

/// A program on the path, or a file.
pub fn find(witness: &str) -> Option<std::path::PathBuf> {
    if witness.starts_with('/') {
        return Some(witness.into()).filter(|path: &std::path::PathBuf| path.exists());
    }
    std::env::split_paths(&search_path()).map(|dir| dir.join(witness)).find(|path| path.is_file())
}

fn apt() -> std::process::Command {
    let mut apt = command("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-q");
    apt
}

/// Debian starts a service as soon as it is installed; the testbed wants only the programs.
struct NoServices {
    made: bool,
}

impl NoServices {
    fn new() -> Result<Self> {
        let path = Path::new(POLICY);
        // One left by a crash of ours is ours to use, and to remove.
        let made = !path.exists() || fs::read_to_string(path).is_ok_and(|text| text == POLICY_TEXT);
        if made {
            fs::write(path, POLICY_TEXT).with_context(|| format!("cannot write {POLICY}"))?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(Self { made })
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.made {
            let _ = fs::remove_file(POLICY);
        }
        // Where systemd enables them all the same, they must not come up at the next boot either.
        for service in ["containerd", "prometheus"] {
            if find("systemctl").is_some() && !succeeds(command("systemctl").args(["is-active", "-q", service])) {
                succeeds(command("systemctl").args(["disable", "-q", service]));
            }
        }
    }
}
