//! The flags that every operator has.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Debug, Args)]
pub struct CommonArgs {
    /// Where /metrics, /livez and /readyz are served
    #[arg(long, default_value = "0.0.0.0:8080", env = "SPILLWAY_METRICS_ADDRESS")]
    pub metrics_address: SocketAddr,

    /// What is logged: a level, or levels by module ("info,spillway_operator=debug")
    #[arg(long, default_value = "info", env = "SPILLWAY_LOG")]
    pub log: String,

    /// How it is logged
    #[arg(long, default_value = "text", env = "SPILLWAY_LOG_FORMAT")]
    pub log_format: LogFormat,

    /// The kubeconfig of the cluster this runs in; without it, the pod's own service account
    #[arg(long, env = "KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,

    /// The name of this instance in leases. In a pod: its UID, so that a restarted container takes its own lease back
    /// at once, and no other instance does
    #[arg(long, env = "POD_UID")]
    pub identity: Option<String>,
}

impl CommonArgs {
    /// The name of this instance in leases; outside a pod one that no other process has.
    pub fn identity(&self) -> String {
        match &self.identity {
            Some(identity) if !identity.is_empty() => identity.clone(),
            _ => format!("process-{}-{}", std::process::id(), jiff::Timestamp::now().as_nanosecond()),
        }
    }
}
