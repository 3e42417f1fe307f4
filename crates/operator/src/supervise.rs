//! Every long-lived task is supervised: when one ends before it was told to, the process ends and says why.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// After a signal, tasks have this long to finish what they hold.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(20);

pub struct Supervisor {
    tasks: JoinSet<(String, anyhow::Result<()>)>,
    stop: CancellationToken,
    terminate: Signal,
    interrupt: Signal,
}

impl Supervisor {
    /// From here on, SIGTERM and SIGINT are heeded as soon as [`Supervisor::run`] or [`Supervisor::during`] looks.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            tasks: JoinSet::new(),
            stop: CancellationToken::new(),
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
        })
    }

    /// Cancelled when the process is to end; tasks watch it.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    pub fn spawn(&mut self, name: impl Into<String>, task: impl Future<Output = anyhow::Result<()>> + Send + 'static) {
        let name = name.into();
        self.tasks.spawn(async move { (name, task.await) });
    }

    /// Waits for something that comes before the tasks, without turning a deaf ear to signals and to tasks that run already;
    /// `None` if the process is to end first.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> anyhow::Result<Option<T>> {
        tokio::select! {
            done = work => Ok(Some(done)),
            ended = self.end() => {
                self.stop.cancel();
                ended.map(|()| None)
            }
        }
    }

    async fn end(&mut self) -> anyhow::Result<()> {
        tokio::select! {
            _ = self.terminate.recv() => { tracing::info!("SIGTERM: shutting down"); Ok(()) }
            _ = self.interrupt.recv() => { tracing::info!("SIGINT: shutting down"); Ok(()) }
            () = self.stop.cancelled() => Ok(()),
            Some(ended) = self.tasks.join_next() => Err(reason(ended)),
        }
    }

    /// Runs until SIGTERM or SIGINT (then `Ok`), or until a task ends (then its reason).
    pub async fn run(mut self) -> anyhow::Result<()> {
        let result = self.end().await;
        self.stop.cancel();
        let drained = tokio::time::timeout(SHUTDOWN_GRACE, async {
            while let Some(ended) = self.tasks.join_next().await {
                if let Ok((name, Err(error))) = &ended {
                    tracing::warn!(task = name, error = format!("{error:#}"), "task failed while shutting down");
                }
            }
        });
        if drained.await.is_err() {
            tracing::warn!("some tasks did not finish in time and are dropped");
        }
        result
    }
}

fn reason(ended: Result<(String, anyhow::Result<()>), tokio::task::JoinError>) -> anyhow::Error {
    match ended {
        Ok((name, Ok(()))) => anyhow!("task '{name}' ended, which it never should"),
        Ok((name, Err(error))) => error.context(format!("task '{name}' failed")),
        Err(join) => anyhow!("a task panicked: {join}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_ends_ends_the_process_with_its_reason() {
        let mut supervisor = Supervisor::new().unwrap();
        let stop = supervisor.stop();
        supervisor.spawn("waits", async move {
            stop.cancelled().await;
            Ok(())
        });
        supervisor.spawn("lease", async { Err(anyhow!("lost to another instance")) });
        let error = supervisor.run().await.unwrap_err();
        assert_eq!(format!("{error:#}"), "task 'lease' failed: lost to another instance");
    }

    #[tokio::test]
    async fn a_panic_ends_the_process() {
        let mut supervisor = Supervisor::new().unwrap();
        supervisor.spawn("breaks", async { panic!("as told") });
        assert!(supervisor.run().await.unwrap_err().to_string().contains("panicked"));
    }

    #[tokio::test]
    async fn asked_to_stop_it_waits_for_its_tasks() {
        let mut supervisor = Supervisor::new().unwrap();
        let (stop, inner) = (supervisor.stop(), supervisor.stop());
        let (said, heard) = tokio::sync::oneshot::channel();
        supervisor.spawn("flushes", async move {
            inner.cancelled().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            let _ = said.send(());
            Ok(())
        });
        stop.cancel();
        supervisor.run().await.unwrap();
        heard.await.expect("the task finished its work");
    }
}
