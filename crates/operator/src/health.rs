//! Liveness and readiness. Readiness is a set of named gates; what is missing is told by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

#[derive(Clone, Default)]
pub struct Readiness {
    gates: Arc<Mutex<BTreeMap<String, Gate>>>,
}

/// One condition of readiness, closed until it is opened.
#[derive(Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }
}

impl Gate {
    pub fn open(&self) {
        self.set(true);
    }

    pub fn set(&self, open: bool) {
        self.0.send_if_modified(|before| std::mem::replace(before, open) != open);
    }

    pub fn is_open(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is open.
    pub async fn opened(&self) {
        // The sender is ours, so the channel can't close.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

impl Readiness {
    /// Adds a condition, in words that tell an operator on call what is being waited for.
    pub fn gate(&self, waits_for: impl Into<String>) -> Gate {
        self.gates.lock().entry(waits_for.into()).or_default().clone()
    }

    /// What is missing; empty means ready.
    pub fn missing(&self) -> Vec<String> {
        self.gates.lock().iter().filter(|(_, gate)| !gate.is_open()).map(|(name, _)| name.clone()).collect()
    }
}

/// Waits until all gates are open; false if `stop` came first.
pub async fn all_opened(gates: &[Gate], stop: &CancellationToken) -> bool {
    for gate in gates {
        tokio::select! {
            () = gate.opened() => {}
            () = stop.cancelled() => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_names_what_is_missing() {
        let readiness = Readiness::default();
        let pods = readiness.gate("list of local pods");
        let lease = readiness.gate("lease");
        assert_eq!(readiness.missing(), ["lease", "list of local pods"]);
        pods.open();
        assert_eq!(readiness.missing(), ["lease"]);
        lease.open();
        assert!(readiness.missing().is_empty());
        lease.set(false);
        assert_eq!(readiness.missing(), ["lease"]);
    }
}
