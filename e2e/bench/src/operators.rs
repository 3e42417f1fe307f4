//! The operators as plain processes of their release binaries, each in the network of its cluster.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(60);

/// One process of ours; killed when dropped, so that an error leaves none behind.
pub struct Operator {
    pub name: String,
    pub started: Instant,
    child: Child,
}

impl Operator {
    /// Starts a command whose output goes to `NAME.log` in this folder.
    pub fn start(name: &str, mut command: Command, logs: &Path) -> Result<Self> {
        let path = logs.join(format!("{name}.log"));
        let log = File::options().create(true).append(true).open(&path);
        let log = log.with_context(|| format!("cannot write {}", path.display()))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name: name.to_owned(), started, child })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until its `/readyz` says so.
    pub async fn ready(&mut self, at: SocketAddr) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !answers_ok(at).await.unwrap_or(false) {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}; see its log", self.name);
            }
            ensure!(Instant::now() < deadline, "{} was not ready within {PATIENCE:?}; see its log", self.name);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Asks it to end, and waits.
    pub async fn stop(mut self) -> Result<()> {
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM).with_context(|| format!("cannot stop {}", self.name))?;
        }
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "{} did not end within {PATIENCE:?}", self.name);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Ends it as a crash would.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().with_context(|| format!("cannot kill {}", self.name))?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn answers_ok(at: SocketAddr) -> Result<bool> {
    let ask = async {
        let mut stream = TcpStream::connect(at).await?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\nHost: operator\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = tokio::time::timeout(Duration::from_secs(2), ask).await??;
    Ok(String::from_utf8_lossy(&answer).lines().next().is_some_and(|line| line.contains(" 200 ")))
}
