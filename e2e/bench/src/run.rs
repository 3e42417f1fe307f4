//! One run: pods come, all are Ready, pods go.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::bed::{Bed, OFFLOADED, VANILLA};
use crate::load::{self, Target};
use crate::meter::{Meter, Phase};
use crate::plan::{Case, System};
use crate::pods::{self, PodWatch};
use crate::process;
use crate::tally::Quantiles;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// From the order to the last pod Ready, as a watch on the consumer saw it.
    pub start: Phase,
    /// The same on the provider.
    pub provider_start_seconds: f64,
    /// On the consumer.
    pub bound_to_ready: Quantiles,
    /// From the order to the last pod gone, on both clusters.
    pub removal: Phase,
    /// In bytes, by operator.
    pub peak_memory: BTreeMap<String, u64>,
}

impl Figures {
    /// CPU seconds of clusters and operators for the whole life of the pods.
    pub fn cpu(&self) -> f64 {
        self.start.cpu.total() + self.removal.cpu.total()
    }

    pub fn cpu_of(&self, process: &str) -> f64 {
        let of = |phase: &Phase| phase.cpu.by_process.get(process).copied().unwrap_or(0.0);
        of(&self.start) + of(&self.removal)
    }
}

pub async fn run(bed: &Bed, case: &Case, system: System) -> Result<Figures> {
    let running = match system {
        System::Vanilla => None,
        System::Spillway => Some(bed.start(case.rtt_ms).await?),
    };
    let (at_home, at_provider) = match system {
        System::Vanilla => (VANILLA, VANILLA),
        System::Spillway => (OFFLOADED, bed.twin.as_str()),
    };
    let targets = targets(bed, system);
    let home = PodWatch::start(&bed.home, at_home).await?;
    let away = PodWatch::start(&bed.away, at_provider).await?;
    let meter = Meter::new(bed, running.as_ref());

    let before = meter.begin().await?;
    let begun = before.at;
    load::create(&targets, case.load, case.pods).await?;
    let ready = home.all_ready(case.pods).await?;
    let provider_ready = away.all_ready(case.pods).await?;
    if let System::Spillway = system {
        pods::all_shown(&bed.away, &bed.twin).await?;
    }
    let start = meter.end(before, ready).await?;

    let before = meter.begin().await?;
    load::delete(&targets, case.load).await?;
    let gone = home.all_gone(case.pods).await?.max(away.all_gone(case.pods).await?);
    let removal = meter.end(before, gone).await?;

    let mut peak_memory = BTreeMap::new();
    if let Some(running) = running {
        for (name, pid) in running.processes() {
            peak_memory.insert(name, process::peak_memory(pid)?);
        }
        running.stop().await.context("the operators did not stop")?;
    }
    let bound_to_ready = home.tally().bound_to_ready();
    let provider_start_seconds = seconds_between(begun, provider_ready);
    Ok(Figures { start, provider_start_seconds, bound_to_ready, removal, peak_memory })
}

/// Where pods are ordered: vanilla orders them on both clusters.
pub fn targets(bed: &Bed, system: System) -> Vec<Target> {
    let target = |client: &kube::Client, namespace: &str| Target {
        client: client.clone(),
        namespace: namespace.to_owned(),
        system,
    };
    match system {
        System::Vanilla => vec![target(&bed.home.client, VANILLA), target(&bed.away.client, VANILLA)],
        System::Spillway => vec![target(&bed.home.client, OFFLOADED)],
    }
}

fn seconds_between(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64()
}
