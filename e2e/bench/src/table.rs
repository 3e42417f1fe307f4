//! The results as Markdown. Pure.

use std::fmt::Write;

use crate::plan::Load;
use crate::report::{Comparison, Report, comparisons};
use crate::requests::{Requests, is_shown};
use crate::run::Figures;

pub fn render(report: &Report) -> String {
    let pairs = comparisons(&report.runs);
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(text, "{}\n{}\n{}", head(report), times(&pairs), costs(&pairs));
    if let Some(largest) = largest(&pairs) {
        let _ = write!(text, "\n{}", requests(largest));
    }
    if let Some(steady) = &report.steady {
        let (home, away) = (listed(&steady.quiet.home), listed(&steady.quiet.away));
        let _ = write!(
            text,
            "\n### {} pods at rest\n\nIn {} s without any change, leases and Events apart: home {home}; away {away}.\n",
            steady.pods, steady.quiet_seconds
        );
        for kill in &steady.kills {
            let _ = writeln!(
                text,
                "- virtual-kubelet killed: a pod created meanwhile is Ready {:.2} s after the new process starts; {} writes in all.",
                kill.seconds, kill.writes
            );
        }
    }
    let _ = write!(text, "\n{}", goals(report));
    text
}

fn head(report: &Report) -> String {
    let (machine, settings) = (&report.machine, &report.settings);
    format!(
        "## Spillway {}\n\n{} × {}, {} GB, Linux {}; Kubernetes {}, {} simulated nodes in each cluster; \
         each comparison made {} time(s).\n",
        machine.spillway,
        machine.cores,
        machine.processor,
        machine.memory_gigabytes,
        machine.kernel,
        machine.kubernetes,
        settings.nodes,
        settings.repeat
    )
}

fn times(pairs: &[Comparison<'_>]) -> String {
    let mut rows = Vec::new();
    for pair in pairs {
        let both =
            |of: &dyn Fn(&Figures) -> String| [pair.vanilla.map_or_else(|| "–".to_owned(), of), of(pair.spillway)];
        let [vanilla, spillway] = both(&|figures| format!("{:.1}", figures.start.seconds));
        let [vanilla_wait, wait] =
            both(&|figures| format!("{:.2} / {:.2}", figures.bound_to_ready.p50, figures.bound_to_ready.p99));
        let [vanilla_gone, gone] = both(&|figures| format!("{:.1}", figures.removal.seconds));
        let share = pair.throughput().map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0));
        rows.push([case(pair), vec![vanilla, spillway, share, vanilla_wait, wait, vanilla_gone, gone]].concat());
    }
    let columns = [
        "pods",
        "load",
        "limits",
        "link",
        "vanilla, s",
        "Spillway, s",
        "throughput",
        "vanilla, bound to Ready p50 / p99, s",
        "Spillway, bound to Ready p50 / p99, s",
        "vanilla, deletion, s",
        "Spillway, deletion, s",
    ];
    format!("### Time from the order to the last pod Ready, seen on the consumer\n\n{}", table(&columns, &rows))
}

fn costs(pairs: &[Comparison<'_>]) -> String {
    let mut rows = Vec::new();
    for pair in pairs {
        let (pods, spillway) = (pair.pods(), pair.spillway);
        let per_pod = |count: i64| format!("{:.1}", count as f64 / pods);
        let dash = || "–".to_owned();
        let writes = pair.vanilla.map_or_else(dash, |vanilla| {
            let start = per_pod(spillway.start.writes() - vanilla.start.home.writes());
            let removal = per_pod(spillway.removal.writes() - vanilla.removal.home.writes());
            format!("{start} / {removal}")
        });
        let bytes = spillway.start.link.total() + spillway.removal.link.total();
        let thousand = |seconds: f64| format!("{:.1}", seconds * 1000.0 / pods);
        let memory = |name: &str| {
            spillway.peak_memory.get(name).map_or_else(dash, |bytes| format!("{:.1}", *bytes as f64 / 1e6))
        };
        let elsewhere = |figures: &Figures| format!("{:.0} %", figures.start.cpu.elsewhere_share() * 100.0);
        let share = |figures: &Figures| format!("{:.0} %", figures.start.cpu.share() * 100.0);
        rows.push(
            [
                case(pair),
                vec![
                    writes,
                    format!("{:.1}", bytes as f64 / pods / 1e3),
                    pair.vanilla.map_or_else(dash, |vanilla| thousand(vanilla.cpu())),
                    thousand(spillway.cpu()),
                    thousand(spillway.cpu_of("virtual-kubelet")),
                    thousand(spillway.cpu_of("shadow-pod")),
                    memory("virtual-kubelet"),
                    memory("shadow-pod"),
                    format!("{} / {}", pair.vanilla.map_or_else(dash, share), share(spillway)),
                    format!("{} / {}", pair.vanilla.map_or_else(dash, elsewhere), elsewhere(spillway)),
                ],
            ]
            .concat(),
        );
    }
    let columns = [
        "pods",
        "load",
        "limits",
        "link",
        "writes added per pod, start / deletion",
        "kB over the link per pod",
        "vanilla, CPU s per 1,000 pods",
        "Spillway, CPU s per 1,000 pods",
        "of it virtual-kubelet",
        "of it shadow-pod",
        "virtual-kubelet, peak MB",
        "shadow-pod, peak MB",
        "CPU in use, vanilla / Spillway",
        "CPU elsewhere, vanilla / Spillway",
    ];
    format!("### What it costs, from creation to deletion\n\n{}", table(&columns, &rows))
}

/// The comparison whose requests are shown: constant parts weigh least where there are most pods.
fn largest<'a, 'b>(pairs: &'a [Comparison<'b>]) -> Option<&'a Comparison<'b>> {
    pairs
        .iter()
        .filter(|pair| pair.vanilla.is_some() && pair.case.load == Load::FlatOut)
        .max_by_key(|pair| (pair.case.pods, pair.case.limits == crate::plan::Limits::Raised))
}

fn requests(pair: &Comparison<'_>) -> String {
    let Some(vanilla) = pair.vanilla else { return String::new() };
    let mut rows = Vec::new();
    for (phase, side, before, after) in [
        ("start", "home", &vanilla.start.home, &pair.spillway.start.home),
        ("start", "away", &vanilla.start.away, &pair.spillway.start.away),
        ("deletion", "home", &vanilla.removal.home, &pair.spillway.removal.home),
        ("deletion", "away", &vanilla.removal.away, &pair.spillway.removal.away),
    ] {
        let mut keys: Vec<_> = before.each().chain(after.each()).map(|(resource, verb, _)| (resource, verb)).collect();
        keys.sort_unstable();
        keys.dedup();
        for (resource, verb) in keys.into_iter().filter(|(_, verb)| is_shown(verb)) {
            let per_pod = |requests: &Requests| requests.get(resource, verb) as f64 / pair.pods();
            let (without, with) = (per_pod(before), per_pod(after));
            if without.max(with) < 0.005 {
                continue;
            }
            let numbers = [without, with, with - without].map(|number| format!("{number:.2}"));
            let words = [phase, side, resource, verb].map(str::to_owned);
            rows.push([words.to_vec(), numbers.to_vec()].concat());
        }
    }
    let columns = ["phase", "cluster", "resource", "verb", "vanilla", "Spillway", "added"];
    format!("### Requests per pod: {}\n\n{}", pair.case, table(&columns, &rows))
}

fn goals(report: &Report) -> String {
    let rows: Vec<_> = report
        .goals
        .iter()
        .map(|verdict| {
            let met = if verdict.met { "met" } else { "**missed**" };
            vec![
                verdict.goal.to_owned(),
                verdict.case.clone(),
                verdict.figure.clone(),
                verdict.limit.clone(),
                met.to_owned(),
            ]
        })
        .collect();
    format!("### Goals\n\n{}", table(&["goal", "case", "measured", "limit", ""], &rows))
}

fn case(pair: &Comparison<'_>) -> Vec<String> {
    let case = pair.case;
    let link = if case.rtt_ms == 0 { "near".to_owned() } else { format!("{} ms", case.rtt_ms) };
    vec![case.pods.to_string(), case.load.to_string(), case.limits.to_string(), link]
}

/// Writes, but for Events and leases.
fn listed(requests: &Requests) -> String {
    let writes: Vec<_> =
        requests.each_write().map(|(resource, verb, count)| format!("{count} {verb} {resource}")).collect();
    if writes.is_empty() { "no write".to_owned() } else { writes.join(", ") }
}

fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_as_many_cells_as_there_are_columns() {
        let text = table(&["a", "b"], &[vec!["1".to_owned(), "2".to_owned()]]);
        assert_eq!(text, "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}
