//! A keyed work queue: FIFO, deduplicating, one worker per key at a time, with a back-off per key.
//!
//! It holds keys only. A key that is added while it is being worked on comes back once its worker is done, so no
//! change is ever missed; a key that waits for its back-off is brought forward by the next change.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The first retry comes after this.
const FIRST_BACK_OFF: Duration = Duration::from_millis(50);
/// No key waits longer than this between two tries.
pub const MAX_BACK_OFF: Duration = Duration::from_secs(30);

/// What the worker of a key says when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to do until something changes.
    Done,
    /// Look again after this time.
    After(Duration),
    /// Failed: try again after the key's back-off, or after the time that the server asked for if that is longer.
    Retry { at_least: Duration },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ready,
    Running { changed: bool },
    Waiting { ticket: (Instant, u64) },
}

struct Entry {
    failures: u32,
    phase: Phase,
}

struct State<K> {
    entries: HashMap<K, Entry>,
    ready: VecDeque<K>,
    waiting: BTreeMap<(Instant, u64), K>,
    next_ticket: u64,
}

pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

impl<K: Clone + Eq + Hash> Default for Queue<K> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                entries: HashMap::new(),
                ready: VecDeque::new(),
                waiting: BTreeMap::new(),
                next_ticket: 0,
            }),
            changed: Notify::new(),
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Asks for `key` to be worked on as soon as a worker is free.
    pub fn add(&self, key: K) {
        let mut state = self.state.lock();
        let state = &mut *state;
        match state.entries.get_mut(&key) {
            None => {
                state.entries.insert(key.clone(), Entry { failures: 0, phase: Phase::Ready });
            }
            Some(entry) => match entry.phase {
                Phase::Ready => return,
                Phase::Running { .. } => {
                    entry.phase = Phase::Running { changed: true };
                    return;
                }
                Phase::Waiting { ticket } => {
                    state.waiting.remove(&ticket);
                    entry.phase = Phase::Ready;
                }
            },
        }
        state.ready.push_back(key);
        self.changed.notify_one();
    }

    /// Waits for the next key and hands it out; the caller must call [`Queue::finish`] for it.
    pub async fn next(&self) -> K {
        loop {
            let due = {
                let mut state = self.state.lock();
                state.promote_due(Instant::now());
                if let Some(key) = state.take() {
                    if !state.ready.is_empty() {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.waiting.keys().next().map(|(due, _)| *due)
            };
            match due {
                Some(due) => {
                    tokio::select! {
                        () = self.changed.notified() => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// Ends the work on a key that [`Queue::next`] handed out. Returns the delay until the next try, if one is due.
    pub fn finish(&self, key: K, verdict: Verdict) -> Option<Duration> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let entry = state.entries.get_mut(&key)?;
        entry.failures = match verdict {
            Verdict::Retry { .. } => entry.failures.saturating_add(1),
            Verdict::Done | Verdict::After(_) => 0,
        };
        if entry.phase == (Phase::Running { changed: true }) {
            entry.phase = Phase::Ready;
            state.ready.push_back(key);
            self.changed.notify_one();
            return Some(Duration::ZERO);
        }
        let delay = match verdict {
            Verdict::Done => {
                state.entries.remove(&key);
                return None;
            }
            Verdict::After(delay) => delay,
            Verdict::Retry { at_least } => back_off(entry.failures, state.next_ticket).max(at_least),
        };
        let ticket = (Instant::now() + delay, state.next_ticket);
        state.next_ticket += 1;
        entry.phase = Phase::Waiting { ticket };
        state.waiting.insert(ticket, key);
        self.changed.notify_one();
        Some(delay)
    }

    /// Forgets all failures and has every key that waits, or is being worked on, looked at again: the peer is back. What is
    /// under way may still fail on a connection from before.
    pub fn kick(&self) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.waiting.clear();
        for (key, entry) in &mut state.entries {
            entry.failures = 0;
            match entry.phase {
                Phase::Ready => {}
                Phase::Running { .. } => entry.phase = Phase::Running { changed: true },
                Phase::Waiting { .. } => {
                    entry.phase = Phase::Ready;
                    state.ready.push_back(key.clone());
                }
            }
        }
        self.changed.notify_one();
    }

    /// Keys that wait for a worker or for their time.
    pub fn depth(&self) -> usize {
        let state = self.state.lock();
        state.ready.len() + state.waiting.len()
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn promote_due(&mut self, now: Instant) {
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.phase = Phase::Ready;
                self.ready.push_back(key);
            }
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.phase = Phase::Running { changed: false };
        }
        Some(key)
    }
}

/// Doubles from 50 ms to 30 s; the seed spreads keys that failed together over the last quarter of the delay.
fn back_off(failures: u32, seed: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let full = FIRST_BACK_OFF.saturating_mul(1 << doublings).min(MAX_BACK_OFF);
    let spread = (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u32; // 16 well mixed bits
    full - full.mul_f64(0.25 * f64::from(spread) / f64::from(u16::MAX))
}

#[cfg(test)]
mod tests;
