//! The binary `admission`: flags, logs, and then [`spillway_admission::run`].

use clap::Parser;
use spillway_admission::Args;
use spillway_operator::telemetry;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    telemetry::init(&args.common.log, args.common.log_format)?;
    spillway_admission::run(args).await
}
