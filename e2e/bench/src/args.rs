//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use serde::Serialize;

use crate::plan::Limits;

const TEACHING: &str = "\
Measures what offloading costs, against the same pods without it, on the same machine.

    make bench           # everything: more than an hour on 2 cores
    make bench-quick     # 100 pods: a few minutes
    bench --pods 1000 --limits raised --steady-pods 0 --rtt-ms 0     # one comparison

Two control planes (etcd, API server, controller-manager, scheduler) with 100 simulated nodes each come up as a
testbed of their own, which is removed at the end. In each comparison the same N pause pods run first *vanilla*: one
Deployment of N on both clusters at once, on their own nodes, which is the API work that crossing needs at least.
Then through Spillway: one Deployment of N at home, all bound to the virtual node, run by away's nodes. The operators
are the release binaries, as plain processes with the rights that the charts give them.

Everything is measured from outside: times by watches on the clusters, requests by the API servers' own counters, CPU
and memory from /proc, bytes by a packet counter on the link. The table goes to standard output as Markdown;
results.json, chart.svg and the operators' logs go to --out. It needs Linux and root, and a machine without other work:
the share of CPU that went elsewhere stands in the table.";

/// Measures what offloading costs, against the same pods without it, on the same machine.
#[derive(Parser)]
#[command(name = "bench", version, long_about = TEACHING, max_term_width = 110, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub action: Option<Action>,
    #[command(flatten)]
    pub settings: Settings,
}

#[derive(Subcommand)]
pub enum Action {
    /// Pass TCP connections on as a link of this round-trip time would (the measurements start it themselves)
    Delay(DelayArgs),
}

#[derive(Args)]
pub struct DelayArgs {
    /// Where to listen
    #[arg(long)]
    pub listen: SocketAddr,
    /// Where connections lead
    #[arg(long)]
    pub to: SocketAddr,
    /// The round-trip time in milliseconds; each direction takes half of it
    #[arg(long)]
    pub rtt_ms: u64,
}

#[derive(Args, Clone, Debug, Serialize)]
pub struct Settings {
    /// How many pods, once for each number
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000, 5000])]
    pub pods: Vec<u32>,

    /// The request limits of controller-manager and scheduler: as shipped, and 1,000 a second
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Limits::Stock, Limits::Raised])]
    pub limits: Vec<Limits>,

    /// Pods a second, created one by one, at which vanilla should take less than half of the machine
    #[arg(long, default_value_t = 15)]
    pub rate: u32,

    /// How many pods are created at that rate; 0 leaves it out
    #[arg(long, default_value_t = 600)]
    pub rate_pods: u32,

    /// The round-trip time of a far link in milliseconds; 0 leaves it out
    #[arg(long, default_value_t = 50)]
    pub rtt_ms: u64,

    /// How many pods run while restarts and the quiet time are measured; 0 leaves these out
    #[arg(long, default_value_t = 1000)]
    pub steady_pods: u32,

    /// How long writes are counted while nothing happens
    #[arg(long, default_value_t = 60)]
    pub quiet_seconds: u64,

    /// How often virtual-kubelet is killed
    #[arg(long, default_value_t = 3)]
    pub kills: u32,

    /// How often each comparison is made, vanilla and Spillway in turn; the table shows the median
    #[arg(long, default_value_t = 1)]
    pub repeat: u32,

    /// Simulated nodes of each cluster
    #[arg(long, default_value_t = 100)]
    pub nodes: u32,

    /// One comparison of 100 pods, and a short look at everything else
    #[arg(long)]
    pub quick: bool,

    /// Where results.json, chart.svg and logs are written
    #[arg(long, default_value = "target/bench")]
    pub out: PathBuf,

    /// Where the operators' binaries are [default: next to this one]
    #[arg(long)]
    pub binaries: Option<PathBuf>,

    /// The name of the testbed
    #[arg(long, default_value = "bench")]
    pub testbed: String,

    /// Leave the clusters up, for the next run or to look at them
    #[arg(long)]
    pub keep: bool,
}

impl Settings {
    /// What `--quick` means.
    pub fn effective(self) -> Self {
        if !self.quick {
            return self;
        }
        Self {
            pods: vec![100],
            limits: vec![Limits::Raised],
            rate_pods: 100,
            steady_pods: 100,
            quiet_seconds: 20,
            kills: 1,
            ..self
        }
    }
}
