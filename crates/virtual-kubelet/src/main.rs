use clap::Parser;
use spillway_virtual_kubelet::{Args, run};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    spillway_operator::telemetry::init(&args.common.log, args.common.log_format)?;
    run(args).await
}
