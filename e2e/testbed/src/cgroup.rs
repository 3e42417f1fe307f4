//! The cgroups under which kubelets put their pods: one subtree per node, in every hierarchy.
//!
//! Two kubelets under one root would take each other's pods for leftovers and kill them.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const MOUNT: &str = "/sys/fs/cgroup";

/// Makes `path` in every hierarchy, ready to hold processes.
pub fn ensure(path: &Path) -> Result<()> {
    for root in hierarchies() {
        let mut dir = root.clone();
        for part in path.components() {
            if is_unified(&root) {
                delegate_controllers(&dir);
            }
            let parent = dir.clone();
            dir.push(part);
            if !dir.exists() {
                fs::create_dir(&dir).with_context(|| format!("cannot make cgroup {}", dir.display()))?;
            }
            inherit_cpuset(&parent, &dir)?;
        }
    }
    Ok(())
}

/// Removes `path` and all below it in every hierarchy, and then its parent when that is empty.
pub fn remove(path: &Path) -> Result<()> {
    for root in hierarchies() {
        let dir = root.join(path);
        remove_tree(&dir)?;
        if let Some(parent) = dir.parent().filter(|parent| *parent != root) {
            // Another testbed may live there.
            let _ = fs::remove_dir(parent);
        }
    }
    Ok(())
}

/// Every process in `path` and below, in any hierarchy.
pub fn processes(path: &Path) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    for root in hierarchies() {
        collect(&root.join(path), &mut found);
    }
    found
}

fn collect(dir: &Path, found: &mut BTreeSet<i32>) {
    if let Ok(text) = fs::read_to_string(dir.join("cgroup.procs")) {
        found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
    }
    for child in children(dir) {
        collect(&child, found);
    }
}

fn remove_tree(dir: &Path) -> Result<()> {
    for child in children(dir) {
        remove_tree(&child)?;
    }
    // The kernel may still count a process that was killed a moment ago.
    for attempt in 0.. {
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if attempt >= 100 => {
                return Err(error).with_context(|| format!("cannot remove cgroup {}", dir.display()));
            }
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
            Ok(()) => return Ok(()),
        }
    }
    Ok(())
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect()
}

/// The mounted hierarchies: one for cgroup v2, one per controller for v1.
fn hierarchies() -> Vec<PathBuf> {
    let mount = PathBuf::from(MOUNT);
    if is_unified(&mount) {
        return vec![mount];
    }
    // In a hybrid layout this includes the v2 tree without controllers: runc makes cgroups there too.
    children(&mount).into_iter().filter(|dir| dir.join("cgroup.procs").exists()).collect()
}

fn is_unified(root: &Path) -> bool {
    root.join("cgroup.controllers").exists()
}

/// A v1 cpuset accepts processes only once it has CPUs and memory nodes, and does not inherit them.
fn inherit_cpuset(parent: &Path, dir: &Path) -> Result<()> {
    if is_unified(dir) {
        return Ok(());
    }
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let Ok(value) = fs::read_to_string(parent.join(file)) else {
            continue;
        };
        fs::write(dir.join(file), value.trim()).with_context(|| format!("cannot set {file}"))?;
    }
    Ok(())
}

/// A v2 cgroup offers its children only the controllers that are switched on for them.
fn delegate_controllers(dir: &Path) {
    for controller in ["cpu", "cpuset", "io", "memory", "pids", "hugetlb"] {
        // One that the kernel lacks is no reason to stop: the kubelet says what it needs.
        let _ = fs::write(dir.join("cgroup.subtree_control"), format!("+{controller}"));
    }
}
