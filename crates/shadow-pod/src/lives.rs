//! Keeps a pod that dies as soon as it is made from being made again and again without a pause.
//!
//! The first time it is made anew at once, as after any disruption. What is noted here does not survive a restart of this
//! process, and need not: then it is once more made at once.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use spillway_operator::ObjectKey;
use spillway_operator::patience::Patience;
use tokio::time::Instant;

/// A pod that was never ready and is gone by then has not lived.
const SHORT_LIFE: Duration = Duration::from_secs(10);
/// One that lasted so long has, ready or not.
const LONG_LIFE: Duration = Duration::from_secs(60);

pub struct Lives {
    patience: Patience,
    lives: Mutex<HashMap<ObjectKey, Life>>,
}

/// Of a pod that has not been ready yet.
#[derive(Default)]
struct Life {
    /// When it was made; `None` once its end has been counted.
    made: Option<Instant>,
    short_lives: u32,
    /// What was last said of its end.
    last_words: String,
    message: String,
}

/// Why a pod is not made anew yet, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    pub left: Duration,
    pub message: String,
}

impl Default for Lives {
    fn default() -> Self {
        Self { patience: Patience::new(Duration::from_secs(1), LONG_LIFE), lives: Mutex::default() }
    }
}

impl Lives {
    pub fn made(&self, key: &ObjectKey) {
        self.lives.lock().entry(key.clone()).or_default().made = Some(Instant::now());
    }

    /// It has proved that it can run.
    pub fn ready(&self, key: &ObjectKey) {
        if self.lives.lock().remove(key).is_some() {
            self.patience.forget(key);
        }
    }

    /// Its end is near; `words` is what its node said of it.
    pub fn ending(&self, key: &ObjectKey, words: &str) {
        if let Some(life) = self.lives.lock().get_mut(key)
            && !words.is_empty()
        {
            words.clone_into(&mut life.last_words);
        }
    }

    /// To be asked before a pod is made where none is (any more). `version` names what it is made from: another version
    /// need not wait.
    pub fn pause(&self, key: &ObjectKey, version: &str, now: Timestamp) -> Option<Pause> {
        let mut lives = self.lives.lock();
        let life = lives.get_mut(key)?;
        if let Some(made) = life.made.take() {
            let lived = made.elapsed();
            if lived >= LONG_LIFE {
                lives.remove(key);
                self.patience.forget(key);
                return None;
            }
            if lived < SHORT_LIFE {
                life.short_lives += 1;
                if life.short_lives > 1 {
                    life.message = life.told(self.patience.failed(key, version), now);
                }
            }
        }
        let left = self.patience.wait(key, version)?;
        Some(Pause { left, message: life.message.clone() })
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.lives.lock().remove(key);
        self.patience.forget(key);
    }
}

impl Life {
    fn told(&self, pause: Duration, now: Timestamp) -> String {
        let again = Timestamp::from_second((now + pause).as_second()).unwrap_or(now);
        let words = if self.last_words.is_empty() { "it disappeared" } else { &self.last_words };
        format!("the pod ended {} times as soon as it was made, last: {words}; next try at {again}", self.short_lives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00.5Z".parse().unwrap()
    }

    async fn live(lives: &Lives, key: &ObjectKey, seconds: u64) -> Option<u64> {
        lives.made(key);
        tokio::time::advance(Duration::from_secs(seconds)).await;
        lives.ending(key, "OutOfcpu: no room");
        let pause = lives.pause(key, "1", now());
        assert_eq!(lives.pause(key, "1", now()), pause, "asking again changes nothing");
        assert_eq!(lives.pause(key, "2", now()), None, "another version need not wait");
        let left = pause.map(|pause| pause.left);
        tokio::time::advance(left.unwrap_or_default()).await;
        assert_eq!(lives.pause(key, "1", now()), None, "its time has come");
        left.map(|left| left.as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_time_at_once_and_then_slower_and_slower() {
        let (lives, key) = (Lives::default(), ObjectKey::new("n", "a"));
        assert_eq!(lives.pause(&key, "1", now()), None, "never made before");
        let mut pauses = Vec::new();
        for _ in 0..9 {
            pauses.push(live(&lives, &key, 1).await);
        }
        assert_eq!(pauses, [None, Some(1), Some(2), Some(4), Some(8), Some(16), Some(32), Some(60), Some(60)]);
        assert_eq!(live(&lives, &key, 30).await, None, "neither short nor long");
        assert_eq!(live(&lives, &key, 1).await, Some(60), "and nothing is forgotten");
        assert_eq!(live(&lives, &key, 61).await, None);
        assert_eq!(live(&lives, &key, 1).await, None, "after a long life all is forgotten");
        assert_eq!(live(&lives, &key, 1).await, Some(1));
        lives.ready(&key);
        assert_eq!(live(&lives, &key, 1).await, None, "and once it was ready");
    }

    #[tokio::test(start_paused = true)]
    async fn it_says_why_and_until_when() {
        let (lives, key) = (Lives::default(), ObjectKey::new("n", "a"));
        live(&lives, &key, 1).await;
        lives.made(&key);
        let pause = lives.pause(&key, "1", now()).unwrap();
        assert_eq!(
            pause.message,
            "the pod ended 2 times as soon as it was made, last: OutOfcpu: no room; next try at 2026-01-01T00:00:01Z"
        );
    }
}
