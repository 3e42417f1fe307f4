//! What a stretch of time cost: requests, bytes, CPU.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use crate::bed::Bed;
use crate::link::{self, Bytes};
use crate::process;
use crate::requests::{self, Requests};
use crate::running::Running;

/// What was going on is over by then: the last Events and status updates of controllers are written.
const SETTLE: Duration = Duration::from_secs(3);

/// One stretch, from an order to its fulfilment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Phase {
    /// From the order to the last sign of its fulfilment.
    pub seconds: f64,
    pub home: Requests,
    pub away: Requests,
    pub link: Bytes,
    pub cpu: Cpu,
}

/// CPU seconds, over the phase and the few seconds in which it settles.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cpu {
    pub by_process: BTreeMap<String, f64>,
    /// What this program took to watch.
    pub bench: f64,
    /// What the machine spent on anything else.
    pub elsewhere: f64,
    pub window_seconds: f64,
    pub cores: usize,
}

impl Cpu {
    pub fn total(&self) -> f64 {
        self.by_process.values().sum()
    }

    /// What share of the machine the clusters and operators took.
    pub fn share(&self) -> f64 {
        self.total() / (self.window_seconds * self.cores as f64)
    }

    pub fn elsewhere_share(&self) -> f64 {
        self.elsewhere / (self.window_seconds * self.cores as f64)
    }
}

impl Phase {
    pub fn writes(&self) -> i64 {
        self.home.writes() + self.away.writes()
    }

    pub fn pod_reads(&self) -> i64 {
        self.home.pod_reads() + self.away.pod_reads()
    }
}

pub struct Meter<'a> {
    bed: &'a Bed,
    processes: Vec<(String, u32)>,
}

/// What was read before.
pub struct Before {
    home: Requests,
    away: Requests,
    link: Bytes,
    by_process: BTreeMap<String, f64>,
    bench: f64,
    machine: f64,
    pub at: Instant,
}

impl<'a> Meter<'a> {
    pub fn new(bed: &'a Bed, running: Option<&Running>) -> Self {
        let mut processes = bed.components();
        processes.extend(running.map(Running::processes).unwrap_or_default());
        Self { bed, processes }
    }

    /// To be called right before the order.
    pub async fn begin(&self) -> Result<Before> {
        // Counting requests takes CPU of the API servers: outside of the window.
        let (home, away) = self.requests().await?;
        Ok(Before {
            home,
            away,
            link: link::counted(&self.bed.testbed)?,
            by_process: self.cpu()?,
            bench: process::cpu(std::process::id())?,
            machine: process::machine_cpu()?,
            at: Instant::now(),
        })
    }

    /// To be called when the order is fulfilled, which was at `fulfilled`.
    pub async fn end(&self, before: Before, fulfilled: Instant) -> Result<Phase> {
        tokio::time::sleep(SETTLE).await;
        let window_seconds = before.at.elapsed().as_secs_f64();
        let machine = process::machine_cpu()? - before.machine;
        let bench = process::cpu(std::process::id())? - before.bench;
        let mut by_process = self.cpu()?;
        for (name, seconds) in &mut by_process {
            *seconds -= before.by_process.get(name).copied().unwrap_or(0.0);
        }
        let link = link::counted(&self.bed.testbed)?.since(before.link);
        let (home, away) = self.requests().await?;
        let elsewhere = (machine - bench - by_process.values().sum::<f64>()).max(0.0);
        let cores = std::thread::available_parallelism()?.get();
        Ok(Phase {
            seconds: fulfilled.saturating_duration_since(before.at).as_secs_f64(),
            home: home.since(&before.home),
            away: away.since(&before.away),
            link,
            cpu: Cpu { by_process, bench, elsewhere, window_seconds, cores },
        })
    }

    async fn requests(&self) -> Result<(Requests, Requests)> {
        tokio::try_join!(requests::counted(&self.bed.home.client), requests::counted(&self.bed.away.client))
    }

    fn cpu(&self) -> Result<BTreeMap<String, f64>> {
        self.processes.iter().map(|(name, pid)| Ok((name.clone(), process::cpu(*pid)?))).collect()
    }
}
