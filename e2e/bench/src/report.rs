//! All that was measured, and pairs of it that can be compared. Pure.

use serde::Serialize;

use crate::args::Settings;
use crate::goals::Verdict;
use crate::machine::Machine;
use crate::plan::{Case, System};
use crate::run::Figures;
use crate::steady::Steady;

#[derive(Serialize)]
pub struct Report {
    pub machine: Machine,
    pub settings: Settings,
    pub runs: Vec<Run>,
    pub steady: Option<Steady>,
    pub goals: Vec<Verdict>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Run {
    pub case: Case,
    pub system: System,
    pub repetition: u32,
    pub figures: Figures,
}

/// Spillway's run of a case beside vanilla's; the median of each when there are several.
pub struct Comparison<'a> {
    pub case: &'a Case,
    pub vanilla: Option<&'a Figures>,
    pub spillway: &'a Figures,
}

impl Comparison<'_> {
    pub fn pods(&self) -> f64 {
        f64::from(self.case.pods)
    }

    /// Spillway's throughput as a share of vanilla's.
    pub fn throughput(&self) -> Option<f64> {
        self.vanilla.map(|vanilla| vanilla.start.seconds / self.spillway.start.seconds)
    }
}

pub fn comparisons(runs: &[Run]) -> Vec<Comparison<'_>> {
    let mut cases: Vec<&Case> = Vec::new();
    for run in runs {
        if !cases.contains(&&run.case) {
            cases.push(&run.case);
        }
    }
    let compare = |case| {
        let of = |system| median(runs.iter().filter(|run| &run.case == case && run.system == system));
        Some(Comparison { case, vanilla: of(System::Vanilla), spillway: of(System::Spillway)? })
    };
    cases.into_iter().filter_map(compare).collect()
}

fn median<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<&'a Figures> {
    let mut figures: Vec<_> = runs.map(|run| &run.figures).collect();
    figures.sort_by(|a, b| a.start.seconds.total_cmp(&b.start.seconds));
    figures.get(figures.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::plan::{Limits, Load};

    pub fn run(system: System, rtt_ms: u64, seconds: f64) -> Run {
        let case = Case { limits: Limits::Raised, load: Load::FlatOut, pods: 100, rtt_ms };
        let mut figures = Figures::default();
        figures.start.seconds = seconds;
        Run { case, system, repetition: 1, figures }
    }

    #[test]
    fn the_median_run_of_each_system_is_compared() {
        let runs = [
            run(System::Vanilla, 0, 8.0),
            run(System::Spillway, 0, 30.0),
            run(System::Vanilla, 0, 9.0),
            run(System::Spillway, 0, 10.0),
            run(System::Vanilla, 0, 50.0),
            run(System::Spillway, 0, 5.0),
            run(System::Spillway, 50, 11.0),
        ];
        let pairs = comparisons(&runs);
        assert_eq!(pairs.len(), 2);
        assert_eq!(pairs[0].throughput(), Some(0.9));
        assert_eq!(pairs[1].throughput(), None, "vanilla has no link");
    }
}
