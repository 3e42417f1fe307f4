use std::process::ExitCode;

use clap::Parser;
use spillway_virtual_kubelet::{Args, run};

/// What it decodes comes and goes in small pieces: a quarter of its time was spent in the C library's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match spillway_operator::telemetry::init(&args.common.log, args.common.log_format) {
        Ok(()) => run(args).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // On one line, because the last one is shown on the VirtualNode.
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
