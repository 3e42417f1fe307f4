//! Takes a testbed away: every process, namespace, mount, link, route, cgroup and file of it, and nothing else.

use anyhow::{Context, Result};
use std::fs;

use crate::command::run;
use crate::lock::DirLock;
use crate::plan::Plan;
use crate::process::Recorded;
use crate::progress::Progress;
use crate::state::{self, Home};
use crate::{cgroup, namespaces, net, paths, sweep};

/// Removes the testbed, however far it had come; that there is none is fine.
pub fn take_down(home: &Home, progress: &Progress) -> Result<()> {
    if !home.dir.exists() {
        return Ok(());
    }
    let lock = home.lock()?;
    let record = home.exists().then(|| home.record()).transpose()?;
    let step = progress.step(&format!("down {}", home.name));
    step.waiting("processes to end");
    kill_recorded(home)?;
    sweep::kill_all(home)?;
    step.waiting("network, mounts and cgroups to go");
    if let Some(record) = &record {
        net::remove_from_host(&Plan::new(record.slot, &record.spec))?;
    }
    namespaces::release_all(home)?;
    for mount in namespaces::mounts_below(&home.dir)? {
        run(namespaces::umount().arg("--lazy").arg(mount))?;
    }
    cgroup::remove(&home.cgroup())?;
    paths::release(home)?;
    remove_files(home)?;
    drop(lock);
    step.done("gone");
    Ok(())
}

/// Those that restart others first would only make work; all go at once, their data with them.
fn kill_recorded(home: &Home) -> Result<()> {
    let Ok(clusters) = fs::read_dir(home.dir.join("processes")) else {
        return Ok(());
    };
    for cluster in clusters {
        for record in fs::read_dir(cluster?.path())? {
            let path = record?.path();
            if path.extension().is_none() {
                Recorded::at(path).kill()?;
            }
        }
    }
    Ok(())
}

/// The record goes last: a crash on the way leaves a testbed that can still be taken down.
fn remove_files(home: &Home) -> Result<()> {
    let _list = DirLock::acquire(&state::root(), "the list of testbeds")?;
    let content = fs::read_dir(&home.dir).with_context(|| format!("cannot read {}", home.dir.display()))?;
    for entry in content {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name != "testbed.json") {
            state::remove(&path)?;
        }
    }
    state::remove(&home.dir)?;
    // Only the last one takes the common folder along.
    let _ = fs::remove_dir(state::root());
    Ok(())
}
