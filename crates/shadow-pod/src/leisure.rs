//! Puts off what nobody waits for while there is more pressing work: in a wave of new pods every write that can wait costs
//! the others time.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use parking_lot::Mutex;
use spillway_operator::ObjectKey;
use tokio::time::Instant;

/// A wave of new pods is over when none was made and none became ready for so long.
const CALM_AFTER: Duration = Duration::from_secs(2);
/// What was put off is looked at again over this time, so that not all of it comes at once.
const SPREAD: Duration = Duration::from_secs(4);
/// Nothing is put off for longer.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Leisure {
    last: Mutex<Option<Instant>>,
}

impl Leisure {
    /// A pod was made, or became ready.
    pub fn busy(&self) {
        *self.last.lock() = Some(Instant::now());
    }

    /// How long to put something off that has come up `age` ago; `None` if its time has come.
    pub fn wait(&self, key: &ObjectKey, age: Duration) -> Option<Duration> {
        let since = (*self.last.lock())?.elapsed();
        if since >= CALM_AFTER || age >= LONGEST {
            return None;
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let spread = SPREAD.mul_f64(f64::from(hash as u16) / f64::from(u16::MAX));
        Some(CALM_AFTER - since + spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wave_goes_first_but_not_for_ever() {
        let (leisure, key) = (Leisure::default(), ObjectKey::new("n", "a"));
        assert_eq!(leisure.wait(&key, Duration::ZERO), None, "nothing was ever made");
        leisure.busy();
        let wait = leisure.wait(&key, Duration::ZERO).unwrap();
        assert!((CALM_AFTER..=CALM_AFTER + SPREAD).contains(&wait), "{wait:?}");
        assert_ne!(leisure.wait(&ObjectKey::new("n", "b"), Duration::ZERO), Some(wait), "each in its own time");
        assert_eq!(leisure.wait(&key, LONGEST), None, "it has waited long enough");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(leisure.wait(&key, Duration::ZERO), Some(wait - Duration::from_secs(1)));
        leisure.busy();
        assert_eq!(leisure.wait(&key, Duration::ZERO), Some(wait), "the wave goes on");
        tokio::time::advance(CALM_AFTER).await;
        assert_eq!(leisure.wait(&key, Duration::ZERO), None);
    }
}
