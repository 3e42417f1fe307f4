//! What is measured, in which order. Pure.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use crate::args::Settings;

/// The request limits of controller-manager and scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Limits {
    /// As Kubernetes ships them: 20 requests a second for the controller-manager, 50 for the scheduler
    Stock,
    /// 1,000 a second
    Raised,
}

impl Limits {
    pub fn per_second(self) -> Option<u32> {
        match self {
            Self::Stock => None,
            Self::Raised => Some(1000),
        }
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Stock => "stock",
            Self::Raised => "raised",
        })
    }
}

/// How the pods come into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// One Deployment: as fast as the controllers go.
    FlatOut,
    /// One by one, so many a second.
    Offered(u32),
}

impl fmt::Display for Load {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FlatOut => write!(out, "flat out"),
            Self::Offered(rate) => write!(out, "{rate}/s"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    Vanilla,
    Spillway,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    pub limits: Limits,
    pub load: Load,
    pub pods: u32,
    /// Of the link between the clusters; without one, the pods of vanilla would see no difference.
    pub rtt_ms: u64,
}

impl Case {
    /// Vanilla has no link to be slow.
    pub fn systems(&self) -> &'static [System] {
        if self.rtt_ms == 0 { &[System::Vanilla, System::Spillway] } else { &[System::Spillway] }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} pods, {}, limits {}", self.pods, self.load, self.limits)?;
        if self.rtt_ms > 0 {
            write!(out, ", link of {} ms", self.rtt_ms)?;
        }
        Ok(())
    }
}

/// The comparisons under one set of limits; a change of limits restarts components, so each comes once.
pub fn cases(settings: &Settings, limits: Limits) -> Vec<Case> {
    let case = |load, pods, rtt_ms| Case { limits, load, pods, rtt_ms };
    let mut cases: Vec<_> = settings.pods.iter().map(|pods| case(Load::FlatOut, *pods, 0)).collect();
    if settings.limits.last() != Some(&limits) {
        return cases;
    }
    if settings.rate_pods > 0 {
        let offered = Load::Offered(settings.rate);
        cases.push(case(offered, settings.rate_pods, 0));
        if settings.rtt_ms > 0 {
            cases.push(case(offered, settings.rate_pods, settings.rtt_ms));
        }
    }
    let far = settings.pods.iter().copied().filter(|pods| *pods <= 1000).max();
    if let Some(pods) = far.filter(|_| settings.rtt_ms > 0) {
        cases.push(case(Load::FlatOut, pods, settings.rtt_ms));
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser;

    fn settings(args: &[&str]) -> Settings {
        Cli::parse_from(["bench"].iter().chain(args)).settings.effective()
    }

    #[test]
    fn every_number_of_pods_comes_under_every_limit_and_the_rest_once() {
        let all = settings(&[]);
        assert_eq!(cases(&all, Limits::Stock).len(), 3);
        let last = cases(&all, Limits::Raised);
        let shown: Vec<_> = last.iter().map(|case| (case.load, case.pods, case.rtt_ms)).collect();
        let offered = Load::Offered(15);
        assert_eq!(
            shown,
            [
                (Load::FlatOut, 100, 0),
                (Load::FlatOut, 1000, 0),
                (Load::FlatOut, 5000, 0),
                (offered, 600, 0),
                (offered, 600, 50),
                (Load::FlatOut, 1000, 50),
            ]
        );
        assert_eq!(last[5].systems(), [System::Spillway]);
    }

    #[test]
    fn parts_can_be_left_out() {
        let few = settings(&["--pods", "10", "--limits", "raised", "--rate-pods", "0", "--rtt-ms", "0"]);
        assert_eq!(cases(&few, Limits::Raised).len(), 1);
        assert_eq!(settings(&["--quick"]).pods, [100]);
    }
}
