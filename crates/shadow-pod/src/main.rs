use clap::Parser;
use spillway_shadow_pod::{Args, run, uninstall};

/// What it decodes comes and goes in small pieces: a quarter of its time was spent in the C library's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    spillway_operator::telemetry::init(&args.common.log, args.common.log_format)?;
    if args.uninstall_check { uninstall::check(args).await } else { run(args).await }
}
