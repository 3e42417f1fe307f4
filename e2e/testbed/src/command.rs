//! Running other programs with errors that say what was run and what it said.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A command with the administrator's programs on its path.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", search_path()).stdin(Stdio::null());
    command
}

/// The caller's path, and where Debian keeps `ip`, `nft` and the like.
pub fn search_path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("{own}:/usr/local/go/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
}

/// A command inside the network namespace that `namespace` is bound to.
pub fn inside(namespace: &Path, program: &str) -> Command {
    let mut command = command("nsenter");
    command.arg(format!("--net={}", namespace.display())).arg("--").arg(program);
    command
}

/// Runs to the end; its standard output, or an error with what it wrote.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", shown(command)))?;
    said(command, &output)
}

/// As [`run`], with `input` on its standard input.
pub fn run_with_input(command: &mut Command, input: &str) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early closes its input; its exit status then says more than this error.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    said(command, &output).with_context(|| format!("its input was:\n{input}"))
}

/// As [`run`], for what takes long: `tick` is called a few times a second until it ends.
pub fn run_ticking(command: &mut Command, tick: impl Fn()) -> Result<String> {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    // A thread of its own reads to the end, so that a talkative program is never stuck on a full pipe.
    let waiting = std::thread::spawn(move || child.wait_with_output());
    while !waiting.is_finished() {
        tick();
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    match waiting.join() {
        Ok(output) => said(command, &output?),
        Err(_) => bail!("lost {}", shown(command)),
    }
}

/// Whether it ran and exited with success; what it writes is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn said(command: &Command, output: &Output) -> Result<String> {
    if !output.status.success() {
        bail!("{} failed ({}): {}", shown(command), output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_tells_what_ran_and_what_it_said() {
        let error = run(command("sh").args(["-c", "echo broken >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("sh -c") && error.contains("broken") && error.contains('3'), "{error}");
    }

    #[test]
    fn input_is_passed_on() {
        assert_eq!(run_with_input(&mut command("cat"), "hello").unwrap(), "hello");
    }
}
