//! When each pod was seen bound, Ready and gone. Pure: the clock is a parameter.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use serde::Serialize;

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    bound: Option<Instant>,
    ready: Option<Instant>,
    gone: Option<Instant>,
}

#[derive(Debug, Default)]
pub struct Tally {
    pods: HashMap<String, Times>,
    counts: Counts,
}

/// How many pods there are, and how many have been Ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub present: usize,
    pub ready: usize,
}

/// Half of the pods, and all but one in a hundred, took no longer than this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    pub p50: f64,
    pub p99: f64,
}

impl Tally {
    pub fn seen(&mut self, name: &str, bound: bool, ready: bool, at: Instant) -> Counts {
        let counts = &mut self.counts;
        let times = self.pods.entry(name.to_owned()).or_insert_with(|| {
            counts.present += 1;
            Times::default()
        });
        if bound {
            times.bound.get_or_insert(at);
        }
        if ready && times.ready.is_none() {
            times.ready = Some(at);
            counts.ready += 1;
        }
        *counts
    }

    pub fn gone(&mut self, name: &str, at: Instant) -> Counts {
        if let Some(times) = self.pods.get_mut(name)
            && times.gone.is_none()
        {
            times.gone = Some(at);
            self.counts.present -= 1;
        }
        self.counts
    }

    /// What a new list does not name went while the watch was broken.
    pub fn listed(&mut self, names: &HashSet<String>, at: Instant) -> Counts {
        let missing: Vec<_> = self.pods.keys().filter(|name| !names.contains(*name)).cloned().collect();
        for name in missing {
            self.gone(&name, at);
        }
        self.counts
    }

    pub fn last_ready(&self) -> Option<Instant> {
        self.pods.values().filter_map(|times| times.ready).max()
    }

    pub fn last_gone(&self) -> Option<Instant> {
        self.pods.values().filter_map(|times| times.gone).max()
    }

    pub fn bound_to_ready(&self) -> Quantiles {
        let waits = self.pods.values().filter_map(|times| Some(times.ready?.duration_since(times.bound?)));
        quantiles(waits.collect())
    }
}

fn quantiles(mut waits: Vec<Duration>) -> Quantiles {
    waits.sort();
    let at = |share: f64| {
        let rank = (share * waits.len() as f64).ceil() as usize;
        waits.get(rank.saturating_sub(1)).map_or(f64::NAN, Duration::as_secs_f64)
    };
    Quantiles { p50: at(0.5), p99: at(0.99) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_counts_once_and_by_its_first_times() {
        let (mut tally, start) = (Tally::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        tally.seen("a", false, false, at(0));
        tally.seen("a", true, false, at(1));
        tally.seen("a", true, true, at(3));
        assert_eq!(tally.seen("a", true, true, at(9)), Counts { present: 1, ready: 1 });
        tally.seen("b", true, true, at(5));
        assert_eq!(tally.last_ready(), Some(at(5)));
        assert_eq!(tally.bound_to_ready(), Quantiles { p50: 0.0, p99: 2.0 });
        tally.gone("a", at(7));
        assert_eq!(tally.gone("a", at(8)), Counts { present: 1, ready: 2 });
        assert_eq!(tally.last_gone(), Some(at(7)));
    }

    #[test]
    fn a_pod_that_went_while_the_watch_was_broken_is_gone() {
        let (mut tally, now) = (Tally::default(), Instant::now());
        tally.seen("a", true, true, now);
        tally.seen("b", true, true, now);
        assert_eq!(tally.listed(&["b".to_owned()].into(), now).present, 1);
        assert_eq!(tally.listed(&HashSet::new(), now).present, 0);
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let waits = (1..=200).map(Duration::from_secs).collect();
        assert_eq!(quantiles(waits), Quantiles { p50: 100.0, p99: 198.0 });
    }
}
