use clap::Parser;
use spillway_shadow_pod::{Args, run, uninstall};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    spillway_operator::telemetry::init(&args.common.log, args.common.log_format)?;
    if args.uninstall_check { uninstall::check(args).await } else { run(args).await }
}
