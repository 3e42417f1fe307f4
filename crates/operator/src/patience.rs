//! How long to leave alone what was refused or failed at once, however often its own events ask for it.
//!
//! The queue's back-off ends with the next event, and reporting a refusal on an object is such an event: a refusal whose
//! words vary would then be asked for again and again without a pause. What is noted here holds until its time has come,
//! or until somebody changed what was refused.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::key::ObjectKey;

pub struct Patience {
    first: Duration,
    longest: Duration,
    entries: Mutex<HashMap<ObjectKey, Entry>>,
}

struct Entry {
    /// Names what was tried: another version of it may be tried at once.
    version: String,
    failures: u32,
    until: Instant,
}

impl Patience {
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, entries: Mutex::default() }
    }

    /// The pause after a first failure.
    pub fn first(&self) -> Duration {
        self.first
    }

    /// How long this version must still be left alone.
    pub fn wait(&self, key: &ObjectKey, version: &str) -> Option<Duration> {
        let entries = self.entries.lock();
        let entry = entries.get(key).filter(|entry| entry.version == version)?;
        let left = entry.until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Notes a failure; the pause after it doubles with each.
    pub fn failed(&self, key: &ObjectKey, version: &str) -> Duration {
        let mut entries = self.entries.lock();
        let before = entries.get(key).filter(|entry| entry.version == version).map_or(0, |entry| entry.failures);
        let pause = self.first.saturating_mul(1 << before.min(16)).min(self.longest);
        let entry = Entry { version: version.to_owned(), failures: before + 1, until: Instant::now() + pause };
        entries.insert(key.clone(), entry);
        pause
    }

    /// All is well with it, or it is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.entries.lock().remove(key);
    }

    /// Nothing need be waited for any longer: what stood in the way has changed.
    pub fn forget_all(&self) {
        self.entries.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_the_longest_and_another_version_need_not_wait() {
        let patience = Patience::new(Duration::from_secs(1), Duration::from_secs(3));
        let key = ObjectKey::new("n", "a");
        assert_eq!(patience.wait(&key, "1"), None);
        let pauses: Vec<_> = (0..4).map(|_| patience.failed(&key, "1").as_secs()).collect();
        assert_eq!(pauses, [1, 2, 3, 3]);
        assert_eq!(patience.wait(&key, "1"), Some(Duration::from_secs(3)));
        assert_eq!(patience.wait(&key, "2"), None);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(patience.wait(&key, "1"), None, "its time has come");
        assert_eq!(patience.failed(&key, "1").as_secs(), 3, "but it is not forgotten");
        patience.forget(&key);
        assert_eq!(patience.failed(&key, "1").as_secs(), 1);
    }
}
