//! Is the remote cluster there? A probe asks its API server, and on its return wakes everything that waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;
use kube::{Client, Config};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::client::{Cluster, Connections};
use crate::metrics::Metrics;

/// While the peer is away it is asked this often, so that its return is noticed within about a second.
const INTERVAL_WHILE_AWAY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub struct ProbeSettings {
    pub interval: Duration,
    pub timeout: Duration,
}

/// What the last probes said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// No probe has ended yet.
    Unknown,
    Reachable,
    /// Since when, a reason in CamelCase for a condition, and what exactly happened.
    Away {
        since: Instant,
        reason: &'static str,
        message: String,
    },
}

/// Tells waiters that the peer came back. The default one never does.
#[derive(Clone)]
pub struct Kicks(watch::Receiver<u64>);

impl Default for Kicks {
    fn default() -> Self {
        Self(watch::channel(0).1)
    }
}

impl Kicks {
    pub async fn kicked(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The probe of one remote cluster.
pub struct Peer {
    config: Config,
    metrics: Metrics,
    settings: ProbeSettings,
    reach: watch::Sender<Reach>,
    returns: watch::Sender<u64>,
    /// The connections of everybody else who talks to the peer.
    connections: Connections,
    on_return: Vec<Arc<dyn Fn() + Send + Sync>>,
}

impl Peer {
    pub fn new(config: Config, connections: Connections, settings: ProbeSettings, metrics: Metrics) -> Self {
        let (reach, returns) = (watch::channel(Reach::Unknown).0, watch::channel(0).0);
        Self { config, metrics, settings, reach, returns, connections, on_return: Vec::new() }
    }

    pub fn reach(&self) -> watch::Receiver<Reach> {
        self.reach.subscribe()
    }

    pub fn kicks(&self) -> Kicks {
        Kicks(self.returns.subscribe())
    }

    /// Called each time the peer comes back.
    pub fn on_return(&mut self, action: impl Fn() + Send + Sync + 'static) {
        self.on_return.push(Arc::new(action));
    }

    /// Probes until `stop`.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let (client, own_connections) = Cluster::separate(&self.config, "remote", &self.metrics)?;
        while !stop.is_cancelled() {
            let answer = probe(&client, self.settings.timeout).await;
            if answer.is_err() {
                // The next probe dials anew instead of waiting on a connection that may be dead.
                own_connections.close_silent_since(Instant::now());
            }
            let pause = self.note(Instant::now(), answer);
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        Ok(())
    }

    /// `at` is when the answer, or its absence, was known: a cut may have come while the probe was under way, and what was
    /// heard before it says nothing of a connection.
    fn note(&self, at: Instant, answer: Result<(), Failure>) -> Duration {
        let before = self.reach.borrow().clone();
        self.metrics.peer_reachable("remote", answer.is_ok());
        match (answer, before) {
            (Ok(()), Reach::Reachable) => self.settings.interval,
            (Ok(()), Reach::Unknown) => {
                self.reach.send_replace(Reach::Reachable);
                self.settings.interval
            }
            (Ok(()), Reach::Away { since, .. }) => {
                let closed = self.connections.close_silent_since(since);
                tracing::info!(away = ?since.elapsed(), closed, "the remote API server is back");
                self.reach.send_replace(Reach::Reachable);
                self.returns.send_modify(|count| *count += 1);
                for action in &self.on_return {
                    action();
                }
                self.settings.interval
            }
            (Err(Failure { reason, message }), before) => {
                let since = match before {
                    Reach::Away { since, .. } => since,
                    Reach::Unknown | Reach::Reachable => {
                        tracing::warn!(reason, message, "the remote API server does not answer its probe");
                        at
                    }
                };
                self.reach.send_replace(Reach::Away { since, reason, message });
                INTERVAL_WHILE_AWAY.min(self.settings.interval)
            }
        }
    }
}

struct Failure {
    reason: &'static str,
    message: String,
}

async fn probe(client: &Client, timeout: Duration) -> Result<(), Failure> {
    let unreachable = |message: String| Failure { reason: "RemoteAPIServerUnreachable", message };
    let request = Request::get("/readyz").body(Vec::new()).map_err(|error| unreachable(error.to_string()))?;
    match tokio::time::timeout(timeout, client.request_text(request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.code == 401 || status.code == 403 => Err(Failure {
            reason: "RemoteCredentialsRefused",
            message: format!("the remote API server refuses this cluster's credentials: {}", status.message),
        }),
        Ok(Err(kube::Error::Api(status))) => Err(Failure {
            reason: "RemoteAPIServerNotReady",
            message: format!("the remote API server answers /readyz with {}", status.code),
        }),
        Ok(Err(error)) => Err(unreachable(format!("the remote API server cannot be reached: {error}"))),
        Err(_) => Err(unreachable(format!("the remote API server did not answer within {timeout:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn a_return_is_told_once_to_everyone_who_waits() {
        let config = Config::new("https://127.0.0.1:1".parse().unwrap());
        let settings = ProbeSettings { interval: Duration::from_secs(5), timeout: Duration::from_secs(1) };
        let mut peer = Peer::new(config, Connections::default(), settings, Metrics::default());
        let returns = Arc::new(AtomicUsize::new(0));
        let counted = returns.clone();
        peer.on_return(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        let mut kicks = peer.kicks();
        let failed = || Err(Failure { reason: "RemoteAPIServerUnreachable", message: "cut".to_owned() });

        assert_eq!(peer.note(Instant::now(), Ok(())), settings.interval);
        assert_eq!(returns.load(Ordering::SeqCst), 0, "the first answer is no return");
        let first = Instant::now();
        assert_eq!(peer.note(first, failed()), INTERVAL_WHILE_AWAY);
        peer.note(Instant::now(), failed());
        let Reach::Away { since, .. } = peer.reach().borrow().clone() else { panic!("away") };
        assert_eq!(since, first, "counted from the first failure");
        peer.note(Instant::now(), Ok(()));
        peer.note(Instant::now(), Ok(()));
        assert_eq!(returns.load(Ordering::SeqCst), 1);
        tokio::time::timeout(Duration::from_secs(5), kicks.kicked()).await.expect("kicked");
        assert!(tokio::time::timeout(Duration::from_millis(50), kicks.kicked()).await.is_err());
    }
}
