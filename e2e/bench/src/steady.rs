//! With many pods running: what is written while nothing happens, and how soon a killed virtual-kubelet serves again.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use crate::args::Settings;
use crate::bed::{Bed, OFFLOADED};
use crate::load;
use crate::meter::{Meter, Phase};
use crate::plan::{Load, System};
use crate::pods::{self, PodWatch};
use crate::run::targets;

#[derive(Clone, Debug, Serialize)]
pub struct Steady {
    pub pods: u32,
    pub quiet_seconds: u64,
    pub quiet: Phase,
    pub kills: Vec<Kill>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Kill {
    /// From the start of the new process until a pod that was created meanwhile is Ready.
    pub seconds: f64,
    /// All writes on both clusters since the kill, Events and leases apart; with those that the new pod needs.
    pub writes: i64,
}

pub async fn measure(bed: &Bed, settings: &Settings) -> Result<Steady> {
    let pods = settings.steady_pods;
    let mut running = bed.start(0).await?;
    let targets = targets(bed, System::Spillway);
    let home = PodWatch::start(&bed.home, OFFLOADED).await?;
    let away = PodWatch::start(&bed.away, &bed.twin).await?;
    let first = Meter::new(bed, Some(&running));
    let before = first.begin().await?;
    load::create(&targets, Load::FlatOut, pods).await?;
    let ready = home.all_ready(pods).await?;
    pods::all_shown(&bed.away, &bed.twin).await?;
    first.end(before, ready).await?; // for what it waits

    eprintln!("bench: {} s in which nothing happens, with {pods} pods", settings.quiet_seconds);
    let before = first.begin().await?;
    tokio::time::sleep(Duration::from_secs(settings.quiet_seconds)).await;
    let quiet = first.end(before, Instant::now()).await?;

    let mut kills = Vec::new();
    for turn in 1..=settings.kills {
        eprintln!("bench: SIGKILL of virtual-kubelet with {pods} pods, {turn} of {}", settings.kills);
        let meter = Meter::new(bed, None);
        let before = meter.begin().await?;
        let halted = running.kill_virtual_kubelet()?;
        for target in &targets {
            target.create_pod(&format!("after-kill-{turn}")).await?;
        }
        running = halted.restart(bed).await?;
        let ready = home.all_ready(pods + turn).await?;
        let seconds = ready.saturating_duration_since(running.virtual_kubelet.started).as_secs_f64();
        kills.push(Kill { seconds, writes: meter.end(before, ready).await?.writes() });
    }
    for load in [Load::FlatOut, Load::Offered(1)] {
        load::delete(&targets, load).await?;
    }
    home.all_gone(pods).await?;
    away.all_gone(pods).await?;
    running.stop().await?;
    Ok(Steady { pods, quiet_seconds: settings.quiet_seconds, quiet, kills })
}
