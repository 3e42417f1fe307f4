//! Long-running processes that outlive the command that started them, known by id and start time.

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::command::{command, search_path};
use crate::state::{remove, write_file};

/// A log larger than this is set aside when its process starts anew.
const LOG_LIMIT: u64 = 64 << 20;

/// Process ids are used again; with the start time they are unique until the next boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub pid: i32,
    pub start_time: u64,
}

/// What to run, and where.
pub struct Launch<'a> {
    pub program: &'a Path,
    pub args: &'a [String],
    pub network_namespace: &'a Path,
    pub mount_namespace: Option<&'a Path>,
    pub log: &'a Path,
    /// Differs when a running process no longer is what is wanted.
    pub fingerprint: &'a str,
}

/// The file in which a process wrote who it is.
#[derive(Clone, Debug)]
pub struct Recorded {
    path: PathBuf,
}

impl Recorded {
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Who was started last, dead or alive; none after it was stopped on request.
    pub fn identity(&self) -> Option<Identity> {
        parse_stat(&fs::read_to_string(&self.path).ok()?).map(|(identity, _)| identity)
    }

    pub fn alive(&self) -> Option<Identity> {
        self.identity().filter(|identity| identity.is_alive())
    }

    pub fn has_fingerprint(&self, wanted: &str) -> bool {
        fs::read_to_string(self.fingerprint_path()).is_ok_and(|found| found == wanted)
    }

    fn fingerprint_path(&self) -> PathBuf {
        self.path.with_extension("fingerprint")
    }

    /// Starts the process in a session of its own, so that neither the terminal nor the caller takes it along.
    pub fn start(&self, launch: &Launch<'_>) -> Result<Identity> {
        for path in [&self.path, &launch.log.to_path_buf()] {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
        }
        remove(&self.path)?;
        if fs::metadata(launch.log).is_ok_and(|log| log.len() > LOG_LIMIT) {
            fs::rename(launch.log, launch.log.with_extension("log.1"))?;
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(launch.log)
            .with_context(|| format!("cannot write {}", launch.log.display()))?;
        // The process itself writes its record before it becomes the program: a crash of ours leaves no
        // process that nobody knows. Its id and start time stay the same across exec.
        let record_then_exec = r#"cat /proc/$$/stat >"$0.new" && mv "$0.new" "$0" && exec "$@""#;
        let mut start = command("setsid");
        start.args(["--fork", "sh", "-c", record_then_exec]).arg(&self.path).arg("nsenter");
        start.arg(format!("--net={}", launch.network_namespace.display()));
        if let Some(namespace) = launch.mount_namespace {
            start.arg(format!("--mount={}", namespace.display()));
        }
        start.arg("--").arg(launch.program).args(launch.args);
        start.env_clear().env("PATH", search_path()).env("HOME", "/root").current_dir("/");
        start.stdout(log.try_clone()?).stderr(log).stdin(Stdio::null());
        let status = start.status().context("cannot run setsid")?;
        ensure!(status.success(), "setsid failed: {status}");
        write_file(&self.fingerprint_path(), launch.fingerprint)?;
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if let Some(identity) = self.identity() {
                return Ok(identity);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("{} did not start; see {}", launch.program.display(), launch.log.display())
    }

    /// Asks the process to end, waits, and forgets it; after `patience` it is killed.
    pub fn stop(&self, patience: Duration) -> Result<()> {
        if let Some(identity) = self.alive() {
            identity.signal(Signal::TERM)?;
            if !identity.wait_gone(patience) {
                identity.signal(Signal::KILL)?;
                identity.wait_gone(Duration::from_secs(10));
            }
        }
        self.forget()
    }

    /// Ends the process without warning, as a crash does.
    pub fn kill(&self) -> Result<()> {
        if let Some(identity) = self.alive() {
            identity.signal(Signal::KILL)?;
            ensure!(identity.wait_gone(Duration::from_secs(10)), "process {} survives SIGKILL", identity.pid);
        }
        Ok(())
    }

    fn forget(&self) -> Result<()> {
        remove(&self.path)?;
        remove(&self.fingerprint_path())
    }
}

impl Identity {
    pub fn of(pid: i32) -> Option<Self> {
        let (identity, state) = parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
        // The first thread is a zombie while others still end, and with them the sockets that they all share.
        let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        (!matches!(state, 'Z' | 'X') || threads > 1).then_some(identity)
    }

    /// A zombie is dead: only its parent has not noticed yet.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid) == Some(*self)
    }

    /// Signals this process or, when it is gone, nobody: the descriptor pins the id while it is compared.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(());
        };
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else {
            return Ok(());
        };
        if !self.is_alive() {
            return Ok(());
        }
        match pidfd_send_signal(&descriptor, signal) {
            Err(error) if error != rustix::io::Errno::SRCH => {
                Err(error).with_context(|| format!("cannot signal process {}", self.pid))
            }
            _ => Ok(()),
        }
    }

    pub fn wait_gone(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.is_alive() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }
}

/// Id, start time and state from a line of `/proc/PID/stat`; the program's name in it may hold anything.
fn parse_stat(line: &str) -> Option<(Identity, char)> {
    let (pid, rest) = line.split_once(" (")?;
    let (_, fields) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let state = fields.first()?.chars().next()?;
    let start_time = fields.get(19)?.parse().ok()?;
    Some((Identity { pid: pid.parse().ok()?, start_time }, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_program_name_does_not_confuse_the_record() {
        let line = "42 (we ) ird (x) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 2 3 4 5 6 7 8 9 10 11";
        let (identity, state) = parse_stat(line).unwrap();
        assert_eq!((identity.pid, identity.start_time, state), (42, 98765, 'S'));
    }

    #[test]
    fn a_reused_id_is_not_the_same_process() {
        let own = Identity::of(std::process::id() as i32).unwrap();
        assert!(own.is_alive());
        let former = Identity { start_time: own.start_time + 1, ..own };
        assert!(!former.is_alive());
        former.signal(Signal::KILL).unwrap();
    }

    #[test]
    fn a_damaged_record_is_no_process() {
        let folder = tempfile::tempdir().unwrap();
        let recorded = Recorded::at(folder.path().join("etcd"));
        assert!(recorded.identity().is_none());
        fs::write(folder.path().join("etcd"), "12").unwrap();
        assert!(recorded.alive().is_none());
        recorded.stop(Duration::ZERO).unwrap();
    }
}
