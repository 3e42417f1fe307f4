//! Folders of the host that nodes cover with their own: made when absent, removed with the last testbed.
//!
//! They are counted for the whole machine, whatever folder a testbed's state lies in: removing one that
//! another testbed still covers would take that testbed's mounts away.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::lock::DirLock;
use crate::state::{Home, read_json, write_json};

/// What kubelet, containerd, network plugins and `mount` insist on: (host path, folder below the node's).
pub const COVERED: [(&str, &str); 5] = [
    ("/var/lib/kubelet", "kubelet"),
    ("/var/log/containers", "container-logs"),
    ("/var/lib/cni", "cni-state"),
    ("/run/containerd", "containerd-run"),
    ("/run/mount", "mount-notes"),
];

const REGISTRY: &str = "/var/lib/spillway-testbed.paths";

#[derive(Default, Serialize, Deserialize)]
struct Registry {
    /// Folders that were not there before the first testbed.
    made: BTreeSet<PathBuf>,
    /// The folders of the testbeds that cover them.
    users: BTreeSet<PathBuf>,
}

/// Makes the folders and counts this testbed as a user of them.
pub fn claim(home: &Home) -> Result<()> {
    let registry = Path::new(REGISTRY);
    let _lock = DirLock::acquire(registry, "the machine's mount points")?;
    let mut counted = Registry::load(registry)?;
    let absent = COVERED.iter().map(|(path, _)| PathBuf::from(path)).filter(|path| !path.exists());
    let absent: Vec<PathBuf> = absent.collect();
    counted.made.extend(absent.iter().cloned());
    counted.users.insert(home.dir.clone());
    // Remembered before they are made: a crash between leaves nothing that nobody removes.
    counted.save(registry)?;
    for path in absent {
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    }
    Ok(())
}

/// Counts this testbed out; the last one removes what was made.
pub fn release(home: &Home) -> Result<()> {
    let registry = Path::new(REGISTRY);
    if !registry.exists() {
        return Ok(());
    }
    let _lock = DirLock::acquire(registry, "the machine's mount points")?;
    let mut counted = Registry::load(registry)?;
    counted.users.retain(|user| *user != home.dir && user.exists());
    if !counted.users.is_empty() {
        return counted.save(registry);
    }
    for path in &counted.made {
        // Whatever somebody put there since is not ours.
        let _ = fs::remove_dir(path);
    }
    fs::remove_dir_all(registry).with_context(|| format!("cannot remove {REGISTRY}"))
}

impl Registry {
    fn load(dir: &Path) -> Result<Self> {
        let file = dir.join("paths.json");
        if file.exists() { read_json(&file) } else { Ok(Self::default()) }
    }

    fn save(&self, dir: &Path) -> Result<()> {
        write_json(&dir.join("paths.json"), self)
    }
}
