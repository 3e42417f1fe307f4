//! Which namespace has which twin, as the NamespaceMap says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::RwLock;
use spillway_api::offloading::{MappingPhase, NamespaceMap};
use tokio::sync::watch;

/// Namespaces here by namespaces there, and back.
pub struct Twins {
    pairs: RwLock<Pairs>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct Pairs {
    away: BTreeMap<Arc<str>, Arc<str>>,
    home: BTreeMap<Arc<str>, Arc<str>>,
    /// The local namespaces that are to have a twin; `None` as long as no NamespaceMap was seen.
    wanted: Option<BTreeSet<String>>,
}

/// Whether a namespace is to have a twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    Wanted,
    NotWanted,
    /// There is no NamespaceMap to tell.
    Unknown,
}

impl Default for Twins {
    fn default() -> Self {
        Self { pairs: RwLock::default(), changes: watch::channel(()).0 }
    }
}

impl Twins {
    /// The twin of a local namespace.
    pub fn away(&self, home: &str) -> Option<Arc<str>> {
        self.pairs.read().away.get(home).cloned()
    }

    /// The local namespace of a twin.
    pub fn home(&self, away: &str) -> Option<Arc<str>> {
        self.pairs.read().home.get(away).cloned()
    }

    /// Whether a local namespace is to have a twin, be it there or not.
    pub fn mapping(&self, home: &str) -> Mapping {
        match &self.pairs.read().wanted {
            Some(wanted) if wanted.contains(home) => Mapping::Wanted,
            Some(_) => Mapping::NotWanted,
            None => Mapping::Unknown,
        }
    }

    pub fn all(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        self.pairs.read().away.clone()
    }

    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Takes over what a NamespaceMap says now. One that is gone says nothing: intent is an entry that was taken out of it.
    pub fn follow(&self, map: Option<&NamespaceMap>) {
        let Some(map) = map else { return };
        let mut pairs = self.pairs.write();
        pairs.wanted = Some(map.spec.desired_mapping.keys().cloned().collect());
        let away = usable(&pairs.away, map);
        if away != pairs.away {
            pairs.home = away.iter().map(|(home, away)| (away.clone(), home.clone())).collect();
            pairs.away = away;
            drop(pairs);
            self.changes.send_replace(());
        }
    }
}

/// A twin can be used once it was accepted, and stays usable for as long as it is wanted: a hiccup of the provider is no
/// intent to stop offloading.
fn usable(before: &BTreeMap<Arc<str>, Arc<str>>, map: &NamespaceMap) -> BTreeMap<Arc<str>, Arc<str>> {
    let current = map.status.iter().flat_map(|status| &status.current_mapping);
    let accepted = current.filter(|(_, twin)| twin.phase == Some(MappingPhase::Accepted));
    let accepted = accepted
        .filter_map(|(home, twin)| Some((Arc::from(home.as_str()), Arc::from(twin.remote_namespace.as_deref()?))));
    let wanted = &map.spec.desired_mapping;
    let kept = before.iter().filter(|(home, away)| wanted.get(&***home).is_some_and(|name| **name == ***away));
    kept.map(|(home, away)| (home.clone(), away.clone())).chain(accepted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn map(desired: Value, current: Value) -> NamespaceMap {
        serde_json::from_value(json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "NamespaceMap", "metadata": {"name": "milan"},
            "spec": {"desiredMapping": desired}, "status": {"currentMapping": current},
        }))
        .unwrap()
    }

    fn twin(phase: &str) -> Value {
        json!({"shop": {"remoteNamespace": "shop-rome", "phase": phase}})
    }

    #[test]
    fn a_twin_is_used_once_accepted_and_kept_while_wanted() {
        let (twins, wanted) = (Twins::default(), json!({"shop": "shop-rome"}));
        twins.follow(None);
        assert_eq!(twins.mapping("shop"), Mapping::Unknown);
        twins.follow(Some(&map(wanted.clone(), twin("CreationLoopBackOff"))));
        assert_eq!((twins.away("shop"), twins.mapping("shop")), (None, Mapping::Wanted), "not there yet");
        twins.follow(Some(&map(wanted.clone(), twin("Accepted"))));
        assert_eq!(twins.away("shop").as_deref(), Some("shop-rome"));
        assert_eq!(twins.home("shop-rome").as_deref(), Some("shop"));
        twins.follow(Some(&map(wanted.clone(), twin("CreationLoopBackOff"))));
        assert!(twins.away("shop").is_some(), "a hiccup is no intent");
        twins.follow(Some(&map(wanted, json!({}))));
        assert!(twins.away("shop").is_some());
        twins.follow(None);
        assert!(twins.away("shop").is_some() && twins.mapping("shop") == Mapping::Wanted, "nor is a map that is gone");
        twins.follow(Some(&map(json!({}), json!({}))));
        assert_eq!((twins.away("shop"), twins.home("shop-rome")), (None, None), "no longer wanted");
        assert_eq!(twins.mapping("shop"), Mapping::NotWanted);
    }

    #[test]
    fn another_name_for_the_twin_replaces_the_old_one() {
        let twins = Twins::default();
        twins.follow(Some(&map(json!({"shop": "shop-rome"}), twin("Accepted"))));
        let renamed = json!({"shop": {"remoteNamespace": "shop", "phase": "Accepted"}});
        twins.follow(Some(&map(json!({"shop": "shop"}), renamed)));
        assert_eq!(twins.away("shop").as_deref(), Some("shop"));
        assert_eq!(twins.home("shop-rome"), None);
    }

    #[test]
    fn changes_are_told_only_when_there_are_any() {
        let twins = Twins::default();
        let mut changes = twins.changes();
        twins.follow(Some(&map(json!({}), twin("Accepted"))));
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        twins.follow(Some(&map(json!({}), twin("Accepted"))));
        assert!(!changes.has_changed().unwrap());
    }
}
