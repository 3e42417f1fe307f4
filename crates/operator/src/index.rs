//! What a watch has seen, as digests by key. Reconciles read it; only the watch writes it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::key::ObjectKey;

/// The part of the cluster that one watch covers; several watches may feed one index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Cluster,
    Namespace(Arc<str>),
}

impl Scope {
    pub fn covers(&self, key: &ObjectKey) -> bool {
        match self {
            Scope::Cluster => true,
            Scope::Namespace(namespace) => *namespace == key.namespace,
        }
    }
}

pub struct Index<D> {
    state: RwLock<State<D>>,
    /// Which of the removed are kept as they were last seen.
    keep_last: Option<fn(&D) -> bool>,
}

struct State<D> {
    digests: HashMap<ObjectKey, Arc<D>>,
    synced: HashSet<Scope>,
    last: HashMap<ObjectKey, Arc<D>>,
    /// There, but nobody can say what they are.
    unreadable: HashSet<ObjectKey>,
}

impl<D> Default for Index<D> {
    fn default() -> Self {
        let state =
            State { digests: HashMap::new(), synced: HashSet::new(), last: HashMap::new(), unreadable: HashSet::new() };
        Self { state: RwLock::new(state), keep_last: None }
    }
}

impl<D> Index<D> {
    /// An index that keeps what was removed, if `which` says so, until somebody calls [`Index::forget_last`].
    pub fn keeping_last(which: fn(&D) -> bool) -> Self {
        Self { keep_last: Some(which), ..Self::default() }
    }

    pub fn keeps_last(&self) -> bool {
        self.keep_last.is_some()
    }

    /// What was removed under this key, as it was last seen.
    pub fn last(&self, key: &ObjectKey) -> Option<Arc<D>> {
        self.keep_last?;
        self.state.read().last.get(key).cloned()
    }

    pub fn forget_last(&self, key: &ObjectKey) {
        if self.keep_last.is_some() {
            self.state.write().last.remove(key);
        }
    }

    pub fn get(&self, key: &ObjectKey) -> Option<Arc<D>> {
        self.state.read().digests.get(key).cloned()
    }

    pub fn keys(&self) -> Vec<ObjectKey> {
        self.state.read().digests.keys().cloned().collect()
    }

    /// The keys that `scope` covers.
    pub fn keys_in(&self, scope: &Scope) -> Vec<ObjectKey> {
        self.state.read().digests.keys().filter(|key| scope.covers(key)).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.state.read().digests.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether absence from this index means absence from the cluster, as far as `scope` goes.
    pub fn is_synced(&self, scope: &Scope) -> bool {
        let state = self.state.read();
        state.synced.contains(&Scope::Cluster) || state.synced.contains(scope)
    }

    /// Notes an object of one's own making before the watch shows it. Only for an object that cannot go away without the
    /// caller: if its removal could have been seen already, the entry would stay for ever.
    pub fn insert_absent(&self, key: ObjectKey, digest: D) {
        self.state.write().digests.entry(key).or_insert_with(|| Arc::new(digest));
    }

    /// Whether the object under this key is there in a form that can't be decoded: what is known of it, if anything, is of
    /// before, and its absence from the index means nothing.
    pub fn is_unreadable(&self, key: &ObjectKey) -> bool {
        self.state.read().unreadable.contains(key)
    }

    pub fn mark_unreadable(&self, key: ObjectKey) {
        self.state.write().unreadable.insert(key);
    }

    pub fn insert(&self, key: ObjectKey, digest: D) {
        let mut state = self.state.write();
        state.last.remove(&key);
        state.unreadable.remove(&key);
        state.digests.insert(key, Arc::new(digest));
    }

    pub fn remove(&self, key: &ObjectKey) -> bool {
        let mut state = self.state.write();
        state.unreadable.remove(key);
        self.take(&mut state, key)
    }

    fn take(&self, state: &mut State<D>, key: &ObjectKey) -> bool {
        let Some(removed) = state.digests.remove(key) else { return false };
        if self.keep_last.is_some_and(|which| which(&removed)) {
            state.last.insert(key.clone(), removed);
        }
        true
    }

    /// Ends a list of `scope`: removes what it did not contain, and returns the keys removed.
    pub fn complete(&self, scope: &Scope, listed: &HashSet<ObjectKey>) -> Vec<ObjectKey> {
        let mut state = self.state.write();
        let mut gone: Vec<_> =
            state.digests.keys().filter(|key| scope.covers(key) && !listed.contains(*key)).cloned().collect();
        for key in &gone {
            self.take(&mut state, key);
        }
        let is_gone = |key: &ObjectKey| scope.covers(key) && !listed.contains(key);
        gone.extend(state.unreadable.iter().filter(|key| is_gone(key)).cloned());
        state.unreadable.retain(|key| !is_gone(key));
        state.synced.insert(scope.clone());
        gone
    }

    /// Forgets a scope that is no longer watched.
    pub fn forget(&self, scope: &Scope) {
        let mut state = self.state.write();
        state.synced.remove(scope);
        state.last.retain(|key, _| !scope.covers(key));
        state.unreadable.retain(|key| !scope.covers(key));
        state.digests.retain(|key, _| !scope.covers(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_kept_if_wanted_until_it_is_back_or_forgotten() {
        let index = Index::keeping_last(|digest: &u8| *digest > 1);
        let (a, b) = (ObjectKey::new("n", "a"), ObjectKey::new("n", "b"));
        index.insert(a.clone(), 1);
        index.insert(b.clone(), 2);
        index.remove(&a);
        index.remove(&b);
        assert_eq!((index.last(&a), index.last(&b).as_deref()), (None, Some(&2)));
        index.insert(b.clone(), 1);
        assert_eq!(index.last(&b), None, "another one of the name is there");
        index.insert(b.clone(), 2);
        index.remove(&b);
        index.forget_last(&b);
        assert_eq!(index.last(&b), None);
    }

    #[test]
    fn what_could_not_be_read_and_is_gone_is_told() {
        let (index, a) = (Index::<()>::default(), ObjectKey::new("one", "a"));
        index.mark_unreadable(a.clone());
        assert_eq!(index.complete(&Scope::Cluster, &HashSet::from([a.clone()])), []);
        assert!(index.is_unreadable(&a));
        assert_eq!(index.complete(&Scope::Cluster, &HashSet::new()), std::slice::from_ref(&a));
        assert!(!index.is_unreadable(&a));
    }

    #[test]
    fn a_list_of_one_namespace_leaves_the_others_alone() {
        let index = Index::default();
        let (a, b, c) = (ObjectKey::new("one", "a"), ObjectKey::new("one", "b"), ObjectKey::new("two", "c"));
        for key in [&a, &b, &c] {
            index.insert(key.clone(), ());
        }
        let one = Scope::Namespace("one".into());
        assert!(!index.is_synced(&one));
        assert_eq!(index.complete(&one, &HashSet::from([a.clone()])), std::slice::from_ref(&b));
        assert!(index.is_synced(&one) && !index.is_synced(&Scope::Namespace("two".into())));
        assert!(index.get(&a).is_some() && index.get(&b).is_none() && index.get(&c).is_some());
        index.forget(&one);
        assert!(index.get(&a).is_none() && index.get(&c).is_some() && !index.is_synced(&one));
    }
}
