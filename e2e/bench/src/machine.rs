//! What the figures were measured on.

use std::fs;
use std::process::Command;

use anyhow::Result;
use serde::Serialize;

use crate::bed::Bed;
use crate::process::value_of;

#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_gigabytes: u64,
    pub kernel: String,
    pub kubernetes: String,
    pub spillway: String,
}

pub async fn describe(bed: &Bed) -> Result<Machine> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Ok(Machine {
        processor: model.map_or("unknown", |(_, name)| name).to_owned(),
        cores: std::thread::available_parallelism()?.get(),
        memory_gigabytes: value_of(&memory, "MemTotal:").unwrap_or(0) / 1_000_000,
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        kubernetes: bed.home.client.apiserver_version().await?.git_version,
        spillway: revision(),
    })
}

/// The version, and the commit where there is a repository.
fn revision() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let root = spillway_e2e::install::root();
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(root).output();
    let commit = output.ok().filter(|output| output.status.success());
    match commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()) {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    }
}
