//! Logs: human-readable by default, JSON on request, filtered by `--log`.

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::args::LogFormat;

/// Starts logging; once per process.
pub fn init(filter: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter).with_context(|| {
        format!("--log '{filter}' is not a filter such as 'info' or 'info,spillway_operator=debug'")
    })?;
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(terminal)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    }
    .map_err(|error| anyhow::anyhow!("logging could not be started: {error}"))
}
