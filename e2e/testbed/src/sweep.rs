//! Finds processes that belong to a testbed although no record names them: container shims, containers,
//! and what a crash left. Ownership is by namespace and cgroup, never by name.

use anyhow::{Result, bail};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use crate::process::Identity;
use crate::state::Home;
use crate::{cgroup, namespaces};

/// Kills until nothing of the testbed runs.
pub fn kill_all(home: &Home) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let members = members(home);
        if members.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("processes survive SIGKILL: {:?}", members.iter().map(|m| m.pid).collect::<Vec<_>>());
        }
        for member in &members {
            member.signal(Signal::KILL)?;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every living process inside the testbed's namespaces or cgroups.
pub fn members(home: &Home) -> Vec<Identity> {
    let labels: BTreeSet<String> = namespaces::bound(home).iter().filter_map(|path| namespaces::label(path)).collect();
    let in_cgroups = cgroup::processes(&home.cgroup());
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| in_cgroups.contains(pid) || is_inside(*pid, &labels))
        .filter(|pid| *pid != std::process::id() as i32)
        .filter_map(Identity::of)
        .collect()
}

fn is_inside(pid: i32, labels: &BTreeSet<String>) -> bool {
    ["net", "mnt"].iter().any(|kind| {
        fs::read_link(format!("/proc/{pid}/ns/{kind}"))
            .is_ok_and(|link| link.to_str().is_some_and(|label| labels.contains(label)))
    })
}
