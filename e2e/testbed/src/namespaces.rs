//! Network and mount namespaces, kept alive by bind mounts in the testbed's own folder.
//!
//! Each node has a mount namespace too: whatever its kubelet and containerd mount, and the paths that they
//! cannot be talked out of (`/var/lib/kubelet`, `/run/containerd`, …), never show on the host, and vanish
//! with the namespace.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{command, run};
use crate::paths;
use crate::state::{Home, remove, write_file};

/// Makes the folder that namespaces are bound in: private, as a bound mount namespace must be.
pub fn prepare(home: &Home) -> Result<()> {
    let dir = home.namespaces();
    fs::create_dir_all(&dir)?;
    if !is_mount_point(&dir)? {
        run(mount().arg("--bind").args([&dir, &dir]))?;
    }
    run(mount().arg("--make-private").arg(&dir))?;
    Ok(())
}

/// A network namespace bound at `path`; it lives on without any process.
pub fn ensure_network(path: &Path) -> Result<()> {
    if is_mount_point(path)? {
        return Ok(());
    }
    File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    run(command("unshare").arg(format!("--net={}", path.display())).arg("true"))?;
    Ok(())
}

/// The node's mount namespace, with its own versions of [`paths::COVERED`].
pub fn ensure_mount(home: &Home, node: &str) -> Result<()> {
    let namespace = home.mount_namespace(node);
    let finished = home.node_dir(node).join("mounts-made");
    if is_mount_point(&namespace)? {
        if finished.exists() {
            return Ok(());
        }
        // A crash came between the namespace and its mounts.
        run(umount().arg(&namespace))?;
    }
    remove(&finished)?;
    File::create(&namespace).with_context(|| format!("cannot make {}", namespace.display()))?;
    let mut script = String::from("set -e\nmount --no-mtab --make-rshared /\n");
    for (path, below) in paths::COVERED {
        let own = home.node_dir(node).join(below);
        fs::create_dir_all(&own)?;
        script.push_str(&format!("mount --no-mtab --bind '{}' {path}\n", own.display()));
    }
    run(command("unshare").arg(format!("--mount={}", namespace.display())).args([
        "--propagation",
        "private",
        "sh",
        "-c",
        &script,
    ]))?;
    write_file(&finished, "")
}

/// Unbinds every namespace of the testbed; they end with their last process.
pub fn release_all(home: &Home) -> Result<()> {
    let dir = home.namespaces();
    for path in bound(home) {
        if is_mount_point(&path)? {
            run(umount().arg(&path))?;
        }
        remove(&path)?;
    }
    if is_mount_point(&dir)? {
        run(umount().arg(&dir))?;
    }
    remove(&dir)
}

/// The files that namespaces are bound to.
pub fn bound(home: &Home) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(home.namespaces()) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// What `/proc/PID/ns/…` shows for processes inside, e.g. `net:[4026532001]`; none when nothing is bound there.
pub fn label(path: &Path) -> Option<String> {
    if !is_mount_point(path).ok()? {
        return None;
    }
    let kind = path.extension()?.to_str()?;
    let inode = fs::metadata(path).ok()?.ino();
    Some(format!("{kind}:[{inode}]"))
}

/// From the kernel's own list, as `stat` cannot tell a bind mount on the same file system.
pub fn is_mount_point(path: &Path) -> Result<bool> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("cannot read the mount table")?;
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    Ok(mount_points(&table).any(|point| Path::new(&point) == path))
}

/// Every mount point at or below `dir` that the host sees, innermost first.
pub fn mounts_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("cannot read the mount table")?;
    let mut found: Vec<PathBuf> =
        mount_points(&table).map(PathBuf::from).filter(|point| point.starts_with(dir)).collect();
    found.reverse();
    Ok(found)
}

/// Leaves no notes of its own in `/run/mount`.
fn mount() -> Command {
    let mut mount = command("mount");
    mount.arg("--no-mtab");
    mount
}

pub fn umount() -> Command {
    let mut umount = command("umount");
    umount.arg("--no-mtab");
    umount
}

fn mount_points(table: &str) -> impl Iterator<Item = String> {
    table.lines().filter_map(|line| line.split(' ').nth(4)).map(|point| point.replace("\\040", " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_the_fifth_column() {
        let table = "22 1 0:20 / /proc rw - proc proc rw\n30 1 8:1 /x /a\\040b rw - ext4 /dev/x rw\n";
        assert_eq!(mount_points(table).collect::<Vec<_>>(), ["/proc", "/a b"]);
    }

    #[test]
    fn proc_is_a_mount_point_and_a_plain_folder_is_not() {
        assert!(is_mount_point(Path::new("/proc")).unwrap());
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_mount_point(folder.path()).unwrap());
    }
}
