//! What is aimed at, and whether it was reached. Pure.

use serde::Serialize;

use crate::plan::Load;
use crate::report::{Comparison, Run, comparisons};
use crate::steady::Steady;

const MEGABYTE: f64 = 1e6;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub goal: &'static str,
    pub case: String,
    pub figure: String,
    pub limit: String,
    pub met: bool,
}

/// Whether more is better.
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

fn judge(goal: &'static str, case: String, figure: f64, bound: Bound, shown: impl Fn(f64) -> String) -> Verdict {
    let (met, limit) = match bound {
        Bound::AtLeast(limit) => (figure >= limit, format!("≥ {}", shown(limit))),
        Bound::AtMost(limit) => (figure <= limit, format!("≤ {}", shown(limit))),
    };
    Verdict { goal, case, figure: shown(figure), limit, met }
}

pub fn judge_all(runs: &[Run], steady: Option<&Steady>) -> Vec<Verdict> {
    let pairs = comparisons(runs);
    let mut verdicts: Vec<_> = pairs.iter().flat_map(of_pair).collect();
    verdicts.extend(of_latency(&pairs));
    verdicts.extend(steady.into_iter().flat_map(of_steady));
    // By goal, in the order in which they first come.
    let order: Vec<_> = verdicts.iter().map(|verdict| verdict.goal).collect();
    verdicts.sort_by_key(|verdict| order.iter().position(|goal| *goal == verdict.goal));
    verdicts
}

fn of_pair(pair: &Comparison<'_>) -> Vec<Verdict> {
    let (case, pods, spillway) = (pair.case.to_string(), pair.pods(), pair.spillway);
    let mut verdicts = Vec::new();
    if let (Some(vanilla), Some(throughput)) = (pair.vanilla, pair.throughput()) {
        let (goal, least) = match pair.case.load {
            Load::FlatOut => ("throughput of vanilla's, flat out", 0.90),
            Load::Offered(_) => ("throughput of vanilla's, at the offered rate", 0.95),
        };
        verdicts.push(judge(goal, case.clone(), throughput, Bound::AtLeast(least), percent));
        let added = |both: i64, one: i64| (both - one) as f64 / pods;
        let start = added(spillway.start.writes(), vanilla.start.home.writes());
        verdicts.push(judge("writes added per pod, creation to Ready", case.clone(), start, Bound::AtMost(6.0), plain));
        if pair.case.load == Load::FlatOut {
            let removal = added(spillway.removal.writes(), vanilla.removal.home.writes());
            verdicts.push(judge("writes added per pod, deletion", case.clone(), removal, Bound::AtMost(5.0), plain));
        }
        let reads = |phase: fn(&crate::run::Figures) -> &crate::meter::Phase| {
            added(phase(spillway).pod_reads(), phase(vanilla).home.pod_reads())
        };
        let goal = "GETs and LISTs added per pod, creation to Ready";
        verdicts.push(judge(goal, case.clone(), reads(|figures| &figures.start), Bound::AtMost(0.01), plain));
        if pair.case.load == Load::FlatOut {
            let goal = "GETs and LISTs added per pod, deletion";
            verdicts.push(judge(goal, case.clone(), reads(|figures| &figures.removal), Bound::AtMost(0.01), plain));
        }
        let cpu = spillway.cpu() / vanilla.cpu();
        verdicts.push(judge("CPU of vanilla's, all processes", case.clone(), cpu, Bound::AtMost(1.5), times));
    }
    for (goal, operator) in [("peak RSS, virtual-kubelet", "virtual-kubelet"), ("peak RSS, shadow-pod", "shadow-pod")] {
        if let Some(bytes) = spillway.peak_memory.get(operator) {
            let limit = 50.0 * MEGABYTE + 5e3 * pods;
            verdicts.push(judge(goal, case.clone(), *bytes as f64, Bound::AtMost(limit), megabytes));
        }
    }
    verdicts
}

/// The same load over a near and over a far link, at a rate at which nothing queues.
fn of_latency(pairs: &[Comparison<'_>]) -> Vec<Verdict> {
    let far = pairs.iter().filter(|pair| pair.case.rtt_ms > 0 && pair.case.load != Load::FlatOut);
    let judged = far.filter_map(|far| {
        let near = pairs.iter().find(|pair| pair.case.rtt_ms == 0 && pair.case.load == far.case.load)?;
        let added = far.spillway.bound_to_ready.p50 - near.spillway.bound_to_ready.p50;
        let trips = added / (far.case.rtt_ms as f64 / 1e3);
        Some(judge(
            "round trips added to a pod's start (median)",
            far.case.to_string(),
            trips,
            Bound::AtMost(3.0),
            plain,
        ))
    });
    judged.collect()
}

fn of_steady(steady: &Steady) -> Vec<Verdict> {
    let case = format!("{} pods", steady.pods);
    let quiet = (steady.quiet.home.pod_writes() + steady.quiet.away.pod_writes()) as f64;
    let goal = "writes of pods and ShadowPods while nothing happens";
    let quiet_case = format!("{case}, {} s", steady.quiet_seconds);
    let mut verdicts = vec![judge(goal, quiet_case, quiet, Bound::AtMost(0.0), plain)];
    if let Some(worst) = steady.kills.iter().map(|kill| kill.seconds).max_by(f64::total_cmp) {
        let goal = "a new pod Ready after SIGKILL of virtual-kubelet (worst)";
        verdicts.push(judge(goal, case, worst, Bound::AtMost(3.0), |seconds| format!("{seconds:.2} s")));
    }
    verdicts
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn plain(value: f64) -> String {
    format!("{value:.2}")
}

fn times(value: f64) -> String {
    format!("{value:.2} ×")
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / MEGABYTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::System;
    use crate::report::tests::run;

    fn verdict<'a>(verdicts: &'a [Verdict], goal: &str) -> &'a Verdict {
        verdicts.iter().find(|verdict| verdict.goal.starts_with(goal)).unwrap()
    }

    #[test]
    fn a_limit_is_met_when_it_is_just_reached() {
        let mut runs = vec![run(System::Vanilla, 0, 9.0), run(System::Spillway, 0, 10.0)];
        runs[1].figures.peak_memory.insert("shadow-pod".to_owned(), 50_500_001);
        let verdicts = judge_all(&runs, None);
        let throughput = verdict(&verdicts, "throughput");
        assert!(throughput.met && throughput.figure == "90 %" && throughput.limit == "≥ 90 %", "{throughput:?}");
        assert!(!verdict(&verdicts, "peak RSS, shadow-pod").met);
    }

    #[test]
    fn latency_is_compared_with_the_same_load_over_a_near_link() {
        let mut runs = vec![run(System::Spillway, 0, 10.0), run(System::Spillway, 50, 10.0)];
        for (run, p50) in runs.iter_mut().zip([0.1, 0.3]) {
            run.case.load = Load::Offered(10);
            run.figures.bound_to_ready.p50 = p50;
        }
        let verdicts = judge_all(&runs, None);
        let trips = verdict(&verdicts, "round trips");
        assert!(!trips.met && trips.figure == "4.00", "{trips:?}");
    }
}
