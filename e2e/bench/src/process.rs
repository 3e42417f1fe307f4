//! What /proc tells of processes and of the machine.

use std::fs;

use anyhow::{Context, Result};

/// CPU seconds that a process has taken.
pub fn cpu(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let line = fs::read_to_string(&path).with_context(|| format!("process {pid} is gone"))?;
    cpu_of(&line).with_context(|| format!("{path} is not understood"))
}

/// User and system time; the program's name before them may hold anything.
fn cpu_of(line: &str) -> Option<f64> {
    let (_, fields) = line.rsplit_once(") ")?;
    let mut times = fields.split_whitespace().skip(11);
    let ticks: u64 = times.next()?.parse::<u64>().ok()? + times.next()?.parse::<u64>().ok()?;
    Some(seconds(ticks))
}

/// The most memory that a process has had in use, in bytes.
pub fn peak_memory(pid: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).with_context(|| format!("process {pid} is gone"))?;
    let kilobytes = value_of(&text, "VmHWM:").context("no VmHWM")?;
    Ok(kilobytes * 1024)
}

/// CPU seconds that the whole machine was busy.
pub fn machine_cpu() -> Result<f64> {
    let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    busy_of(&text).context("/proc/stat is not understood")
}

/// All but idle and waiting; guest time is already part of user time.
fn busy_of(text: &str) -> Option<f64> {
    let fields: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let busy = [0, 1, 2, 5, 6, 7];
    Some(seconds(busy.iter().filter_map(|index| fields.get(*index)).sum()))
}

/// The number behind a name such as `MemTotal:`.
pub fn value_of(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_whatever_the_program_is_called() {
        let line = "42 (we ) ird (x) S 1 42 42 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 1 0 98765 2 3 4";
        assert_eq!(cpu_of(line), Some(seconds(300)));
        assert_eq!(busy_of("cpu  10 20 30 4000 500 6 7 8 9 9\ncpu0 1 2"), Some(seconds(10 + 20 + 30 + 6 + 7 + 8)));
        assert_eq!(value_of("Name: x\nVmHWM:\t  1234 kB\n", "VmHWM:"), Some(1234));
    }

    #[test]
    fn this_process_has_used_something() {
        let own = std::process::id();
        assert!(peak_memory(own).unwrap() > 0);
        assert!(cpu(own).unwrap() >= 0.0 && machine_cpu().unwrap() > 0.0);
    }
}
