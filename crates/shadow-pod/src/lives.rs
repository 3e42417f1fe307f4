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
/// The watch shows a new pod long before that.
const SHOWN_WITHIN: Duration = Duration::from_secs(5);
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
    /// Since when the watch has not shown it.
    unseen: Option<Unseen>,
    short_lives: u32,
    /// What was last said of its end.
    last_words: String,
    message: String,
}

struct Unseen {
    since: Instant,
    /// `None` while nobody knows whether it was made.
    uid: Option<String>,
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
    /// To be called before a pod is made: from here on there may be one.
    pub fn making(&self, key: &ObjectKey) {
        let unseen = Unseen { since: Instant::now(), uid: None };
        self.lives.lock().entry(key.clone()).or_default().unseen = Some(unseen);
    }

    pub fn made(&self, key: &ObjectKey, uid: String) {
        let (now, mut lives) = (Instant::now(), self.lives.lock());
        let life = lives.entry(key.clone()).or_default();
        (life.made, life.unseen) = (Some(now), Some(Unseen { since: now, uid: Some(uid) }));
    }

    /// The watch shows it, or it was refused for certain.
    pub fn none_unseen(&self, key: &ObjectKey) {
        if let Some(life) = self.lives.lock().get_mut(key) {
            life.unseen = None;
        }
    }

    /// Whether there may be a pod that the watch has not shown yet.
    pub fn may_come(&self, key: &ObjectKey, last: Option<&str>) -> bool {
        self.unseen_for(key, last).is_some()
    }

    /// How long to wait for the watch to show a pod that was made a moment ago, instead of trying to make it again. Not
    /// longer, because it may be gone already; `last` is the pod that the watch last saw go.
    pub fn coming(&self, key: &ObjectKey, last: Option<&str>) -> Option<Duration> {
        self.unseen_for(key, last).and_then(|(known, left)| known.then_some(left))
    }

    /// Whether a pod that no watch has shown was made for certain, and how much longer it is waited for.
    fn unseen_for(&self, key: &ObjectKey, last: Option<&str>) -> Option<(bool, Duration)> {
        let lives = self.lives.lock();
        let Unseen { since, uid } = lives.get(key)?.unseen.as_ref()?;
        let left = SHOWN_WITHIN.checked_sub(since.elapsed()).filter(|left| !left.is_zero())?;
        (uid.is_none() || uid.as_deref() != last).then_some((uid.is_some(), left))
    }

    /// It has proved that it can run. True when that is news.
    pub fn ready(&self, key: &ObjectKey) -> bool {
        let news = self.lives.lock().remove(key).is_some();
        if news {
            self.patience.forget(key);
        }
        news
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
        lives.made(key, "p1".to_owned());
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
    async fn one_that_was_made_a_moment_ago_is_waited_for_but_not_for_long() {
        let (lives, key) = (Lives::default(), ObjectKey::new("n", "a"));
        assert_eq!(lives.coming(&key, None), None);
        lives.made(&key, "p1".to_owned());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(lives.coming(&key, None), Some(Duration::from_secs(4)));
        assert_eq!(lives.coming(&key, Some("p0")), Some(Duration::from_secs(4)), "the one before it is gone");
        assert_eq!(lives.coming(&key, Some("p1")), None, "it is gone itself");
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(lives.coming(&key, None), None, "nobody can tell that it was ever there");
        lives.made(&key, "p1".to_owned());
        lives.none_unseen(&key);
        assert_eq!(lives.coming(&key, None), None, "it was there, so it is gone");
        assert!(!lives.may_come(&key, None));
        lives.making(&key);
        assert_eq!(lives.coming(&key, None), None, "whether it was made nobody knows: it is tried again");
        assert!(lives.may_come(&key, None), "but nothing that needs it gone may happen");
        lives.none_unseen(&key);
        assert!(!lives.may_come(&key, None));
        let (lives, key) = (Lives::default(), ObjectKey::new("n", "b"));
        for _ in 0..5 {
            lives.making(&key);
            assert_eq!(lives.pause(&key, "1", now()), None, "what may never have been made did not end soon");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_says_why_and_until_when() {
        let (lives, key) = (Lives::default(), ObjectKey::new("n", "a"));
        live(&lives, &key, 1).await;
        lives.made(&key, "p1".to_owned());
        let pause = lives.pause(&key, "1", now()).unwrap();
        assert_eq!(
            pause.message,
            "the pod ended 2 times as soon as it was made, last: OutOfcpu: no room; next try at 2026-01-01T00:00:01Z"
        );
    }
}
