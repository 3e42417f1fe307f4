use std::process::ExitCode;

use clap::Parser;
use spillway_virtual_kubelet::{Args, run};

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
