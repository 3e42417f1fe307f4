//! Finding the process of a container from the host, to kill it as a crash would.

use std::fs;

use anyhow::{Context, Result};

/// The processes of a pod's containers that run this program, by the pod's own cgroup.
pub fn of_pod(pod_uid: &str, program: &str) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot list processes")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process may end while it is looked at.
        let cgroup = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if cgroup.contains(pod_uid) && program.starts_with(name.trim()) && !name.trim().is_empty() {
            found.push(pid);
        }
    }
    Ok(found)
}

/// SIGKILL.
pub fn kill(pid: i32) -> Result<()> {
    signal("-KILL", pid)
}

/// SIGSTOP.
pub fn freeze(pid: i32) -> Result<()> {
    signal("-STOP", pid)
}

/// SIGCONT.
pub fn thaw(pid: i32) -> Result<()> {
    signal("-CONT", pid)
}

fn signal(name: &str, pid: i32) -> Result<()> {
    crate::install::succeed(std::process::Command::new("kill").args([name, &pid.to_string()]))
}
