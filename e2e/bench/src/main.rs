//! `make bench`: what offloading costs, against the same pods without it.

mod args;
mod bed;
mod chart;
mod delay;
mod goals;
mod identity;
mod link;
mod load;
mod machine;
mod meter;
mod operators;
mod plan;
mod pods;
mod process;
mod report;
mod requests;
mod run;
mod running;
mod steady;
mod table;
mod tally;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use spillway_testbed::{Progress, Testbed};
use tokio::signal::unix::{SignalKind, signal};

use args::{Action, Cli, Settings};
use bed::Bed;
use report::{Report, Run, comparisons};

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.action {
        Some(Action::Delay(args)) => delay::run(args.listen, args.to, Duration::from_millis(args.rtt_ms)).await,
        None => bench(cli.settings.effective()).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures, and removes the clusters whatever happened.
async fn bench(settings: Settings) -> Result<()> {
    ensure!(!settings.limits.is_empty() && !settings.pods.is_empty(), "--limits and --pods must name something");
    let binaries = bed::binaries(&settings)?;
    for name in ["peering", "shadow-pod", "virtual-kubelet"] {
        let path = binaries.join(name);
        ensure!(path.exists(), "{} is missing: build it first, or use `make bench`", path.display());
    }
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let outcome = tokio::select! {
        outcome = measure(&settings) => outcome,
        _ = interrupt.recv() => Err(anyhow::anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow::anyhow!("terminated")),
    };
    if !settings.keep {
        let name = settings.testbed.clone();
        tokio::task::spawn_blocking(move || Testbed::remove(&name, &Progress::to_stderr())).await??;
    }
    outcome
}

async fn measure(settings: &Settings) -> Result<()> {
    fs::create_dir_all(&settings.out).with_context(|| format!("cannot make {}", settings.out.display()))?;
    let mut bed: Option<Bed> = None;
    let mut runs = Vec::new();
    for limits in &settings.limits {
        match &mut bed {
            Some(bed) => bed.change_limits(*limits).await?,
            None => bed = Some(Bed::up(settings, *limits).await?),
        }
        let Some(bed) = &bed else { bail!("there are no clusters") };
        for case in plan::cases(settings, *limits) {
            for repetition in 1..=settings.repeat {
                for system in case.systems() {
                    eprintln!("bench: {system:?}: {case}");
                    let figures = run::run(bed, &case, *system).await.with_context(|| format!("{system:?}: {case}"))?;
                    eprintln!("bench: {:.1} s, deletion {:.1} s", figures.start.seconds, figures.removal.seconds);
                    runs.push(Run { case: case.clone(), system: *system, repetition, figures });
                    // What is there so far outlives a failure later on.
                    write_json(&settings.out.join("runs.json"), &runs)?;
                }
            }
        }
    }
    let bed = bed.context("there are no clusters")?;
    let steady = match settings.steady_pods {
        0 => None,
        _ => Some(steady::measure(&bed, settings).await?),
    };
    let goals = goals::judge_all(&runs, steady.as_ref());
    let report = Report { machine: machine::describe(&bed).await?, settings: settings.clone(), runs, steady, goals };
    write_json(&settings.out.join("results.json"), &report)?;
    fs::remove_file(settings.out.join("runs.json"))?;
    fs::write(settings.out.join("chart.svg"), chart::render(&comparisons(&report.runs)))?;
    println!("{}", table::render(&report));
    Ok(())
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    fs::write(path, serde_json::to_string_pretty(value)?).with_context(|| format!("cannot write {}", path.display()))
}
