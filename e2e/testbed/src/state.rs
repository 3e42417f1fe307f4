//! Where a testbed keeps everything it has: one folder, which is gone when the testbed is.

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lock::DirLock;
use crate::plan::{SLOTS, block_of};
use crate::spec::Spec;

/// Overrides where the state of all testbeds lies.
pub const ROOT_VARIABLE: &str = "SPILLWAY_TESTBED_DIR";
const DEFAULT_ROOT: &str = "/var/lib/spillway-testbed";

/// What is remembered of a testbed from before its first resource is made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    pub slot: u8,
    pub spec: Spec,
}

/// The folder of one testbed and the places in it.
#[derive(Clone, Debug)]
pub struct Home {
    pub name: String,
    pub dir: PathBuf,
}

impl Home {
    pub fn of(name: &str) -> Result<Self> {
        ensure!(
            !name.is_empty()
                && name.len() <= 20
                && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "a testbed's name is 1 to 20 of a-z, 0-9 and '-', not {name:?}"
        );
        let dir = root().join(name);
        // A socket's path holds at most 108 bytes; the longest of ours adds about 40.
        ensure!(dir.as_os_str().len() <= 60, "{} is too long a path for sockets below it", dir.display());
        Ok(Self { name: name.to_owned(), dir })
    }

    pub fn lock(&self) -> Result<DirLock> {
        DirLock::acquire(&self.dir, &format!("testbed {}", self.name))
    }

    pub fn exists(&self) -> bool {
        self.record_path().exists()
    }

    pub fn record(&self) -> Result<Record> {
        let path = self.record_path();
        if !path.exists() {
            bail!("there is no testbed {:?}; make one with: testbed up --name {}", self.name, self.name);
        }
        read_json(&path)
    }

    pub fn save(&self, record: &Record) -> Result<()> {
        write_json(&self.record_path(), record)
    }

    fn record_path(&self) -> PathBuf {
        self.dir.join("testbed.json")
    }

    pub fn cuts_path(&self) -> PathBuf {
        self.dir.join("cuts.json")
    }

    /// Holds the bound network and mount namespaces.
    pub fn namespaces(&self) -> PathBuf {
        self.dir.join("ns")
    }

    pub fn switch_namespace(&self) -> PathBuf {
        self.namespaces().join("switch.net")
    }

    pub fn network_namespace(&self, node: &str) -> PathBuf {
        self.namespaces().join(format!("{node}.net"))
    }

    pub fn mount_namespace(&self, node: &str) -> PathBuf {
        self.namespaces().join(format!("{node}.mnt"))
    }

    pub fn cluster_dir(&self, cluster: &str) -> PathBuf {
        self.dir.join("clusters").join(cluster)
    }

    pub fn pki(&self, cluster: &str) -> PathBuf {
        self.cluster_dir(cluster).join("pki")
    }

    pub fn kubeconfig(&self, cluster: &str) -> PathBuf {
        self.cluster_dir(cluster).join("kubeconfig")
    }

    pub fn node_dir(&self, node: &str) -> PathBuf {
        self.dir.join("nodes").join(node)
    }

    pub fn containerd_socket(&self, node: &str) -> PathBuf {
        self.node_dir(node).join("containerd.sock")
    }

    pub fn process_record(&self, cluster: &str, component: &str) -> PathBuf {
        self.dir.join("processes").join(cluster).join(component)
    }

    pub fn log(&self, cluster: &str, component: &str) -> PathBuf {
        self.dir.join("logs").join(cluster).join(format!("{component}.log"))
    }

    /// Below the root of every cgroup hierarchy.
    pub fn cgroup(&self) -> PathBuf {
        PathBuf::from("spillway-testbed").join(self.cgroup_leaf())
    }

    pub fn node_cgroup(&self, node: &str) -> PathBuf {
        self.cgroup().join(node)
    }

    /// Testbeds of the same name under different roots must not share a cgroup.
    fn cgroup_leaf(&self) -> String {
        if root() == Path::new(DEFAULT_ROOT) {
            return self.name.clone();
        }
        let digest = crate::digest::short(&[root().as_os_str().as_encoded_bytes()]);
        format!("{}-{digest}", self.name)
    }
}

/// The folder that holds all testbeds.
pub fn root() -> PathBuf {
    std::env::var_os(ROOT_VARIABLE).map_or_else(|| PathBuf::from(DEFAULT_ROOT), PathBuf::from)
}

/// The names of all testbeds that exist, in order.
pub fn names() -> Vec<String> {
    remains().into_iter().filter(|name| root().join(name).join("testbed.json").exists()).collect()
}

/// As [`names`], and of those of which a crash left no more than a folder.
pub fn remains() -> Vec<String> {
    let Ok(entries) = fs::read_dir(root()) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Takes a slot whose addresses nobody on this machine uses, and remembers it before anything else is made.
pub fn allocate(home: &Home, spec: &Spec, routes: &[ipnet::Ipv4Net]) -> Result<Record> {
    let _lock = DirLock::acquire(&root(), "the list of testbeds")?;
    let mut taken = BTreeSet::new();
    for name in names() {
        taken.insert(Home::of(&name)?.record()?.slot);
    }
    let slot = (0..SLOTS)
        .find(|slot| {
            let block = block_of(*slot);
            !taken.contains(slot) && !routes.iter().any(|r| r.contains(&block) || block.contains(r))
        })
        .context("no free address range is left for another testbed: every 10.100–10.149 is in use")?;
    let record = Record { slot, spec: spec.clone() };
    home.save(&record)?;
    Ok(record)
}

/// Removes a file or a whole folder; that it is not there is fine.
pub fn remove(path: &Path) -> Result<()> {
    let result = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Writes so that a reader, or a crash, sees the old content or the new and nothing between.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let write = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        // Nodes share some files, and write them at the same time.
        let turn = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}-{turn}.new", std::process::id()));
        fs::write(&temporary, content)?;
        fs::rename(&temporary, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    write_file(path, serde_json::to_string_pretty(value)?)
}

pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_the_folder_are_refused() {
        for bad in ["", "..", "a/b", "UP", "a-name-that-is-far-too-long"] {
            assert!(Home::of(bad).is_err(), "{bad:?}");
        }
        assert!(Home::of("bench-2").is_ok());
    }

    #[test]
    fn removing_what_is_not_there_is_fine() {
        let folder = tempfile::tempdir().unwrap();
        remove(&folder.path().join("nothing")).unwrap();
        write_file(&folder.path().join("a/b"), "x").unwrap();
        remove(&folder.path().join("a")).unwrap();
        assert!(!folder.path().join("a").exists());
    }
}
