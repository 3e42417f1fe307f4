//! Keeps a log readable when a thousand objects wait for the same thing: the first few of a storm are said, the rest are
//! counted.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(30);
const SAID_PER_WINDOW: u32 = 10;

#[derive(Default)]
pub struct Hush {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    since: Option<Instant>,
    said: u32,
    unsaid: u64,
}

impl Hush {
    /// Whether to say one more; if so, how many were left out before it.
    pub fn say(&self) -> Option<u64> {
        let mut state = self.state.lock();
        if state.since.is_none_or(|since| since.elapsed() >= WINDOW) {
            (state.since, state.said) = (Some(Instant::now()), 0);
        }
        if state.said >= SAID_PER_WINDOW {
            state.unsaid += 1;
            return None;
        }
        state.said += 1;
        Some(std::mem::take(&mut state.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_storm_is_counted_and_what_is_rare_is_said() {
        let hush = Hush::default();
        let said = (0..100).filter_map(|_| hush.say()).collect::<Vec<_>>();
        assert_eq!(said, [0; SAID_PER_WINDOW as usize]);
        tokio::time::advance(WINDOW).await;
        assert_eq!((hush.say(), hush.say()), (Some(90), Some(0)), "the next one tells how many there were");
    }
}
