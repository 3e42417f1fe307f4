//! The binary `peering`: flags, logs, and then [`spillway_peering::run`].

use clap::Parser;
use spillway_operator::telemetry;
use spillway_peering::Args;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    telemetry::init(&args.common.log, args.common.log_format)?;
    spillway_peering::run(args).await
}
