//! Liveness and readiness. Readiness is a set of named gates; what is missing is told by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

#[derive(Clone, Default)]
pub struct Readiness {
    gates: Arc<Mutex<BTreeMap<String, Gate>>>,
}

/// One condition of readiness, closed until it is opened.
#[derive(Clone, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    pub fn open(&self) {
        self.set(true);
    }

    pub fn set(&self, open: bool) {
        self.0.store(open, Ordering::Release);
    }

    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Readiness {
    /// Adds a condition, in words that tell an operator on call what is being waited for.
    pub fn gate(&self, waits_for: impl Into<String>) -> Gate {
        self.gates.lock().entry(waits_for.into()).or_default().clone()
    }

    /// What is missing; empty means ready.
    pub fn missing(&self) -> Vec<String> {
        self.gates
            .lock()
            .iter()
            .filter(|(_, gate)| !gate.is_open())
            .map(|(name, _)| name.clone())
            .collect()
    }
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
