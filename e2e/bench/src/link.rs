//! Bytes that cross between the consumer and the provider's API server, counted by the kernel where the consumer is.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use spillway_testbed::Testbed;

const TABLE: &str = "spillway_bench";

/// Seen from the consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    pub sent: u64,
    pub received: u64,
}

impl Bytes {
    pub fn total(self) -> u64 {
        self.sent + self.received
    }

    pub fn since(self, before: Bytes) -> Bytes {
        Bytes { sent: self.sent - before.sent, received: self.received - before.received }
    }
}

/// Starts counting from zero.
pub fn count(testbed: &Testbed) -> Result<()> {
    let away = testbed.cluster("away")?.api_address;
    let rules = format!(
        "add table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n\
         counter sent {{ }}\ncounter received {{ }}\n\
         chain output {{ type filter hook output priority 0; ip daddr {away} tcp dport 6443 counter name sent; }}\n\
         chain input {{ type filter hook input priority 0; ip saddr {away} tcp sport 6443 counter name received; }}\n}}\n"
    );
    let mut child =
        nft(testbed, &["-f", "-"])?.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().context("cannot run nft")?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(rules.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "nft refused the counters: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

pub fn counted(testbed: &Testbed) -> Result<Bytes> {
    let output = nft(testbed, &["-j", "list", "counters"])?.output().context("cannot run nft")?;
    parse(&String::from_utf8_lossy(&output.stdout)).context("nft shows no counters of the link")
}

fn nft(testbed: &Testbed, args: &[&str]) -> Result<Command> {
    let mut command = testbed.on_node("home", "nft")?;
    command.args(args);
    Ok(command)
}

fn parse(text: &str) -> Option<Bytes> {
    let answer: Value = serde_json::from_str(text).ok()?;
    let of = |name: &str| {
        let counters = answer["nftables"].as_array()?.iter().map(|item| &item["counter"]);
        counters.into_iter().find(|c| c["table"] == TABLE && c["name"] == name)?["bytes"].as_u64()
    };
    Some(Bytes { sent: of("sent")?, received: of("received")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_among_others() {
        let text = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}},
            {"counter": {"family": "ip", "name": "sent", "table": "else", "packets": 1, "bytes": 1}},
            {"counter": {"family": "inet", "name": "sent", "table": "spillway_bench", "packets": 1, "bytes": 52}},
            {"counter": {"family": "inet", "name": "received", "table": "spillway_bench", "packets": 2, "bytes": 90}}]}"#;
        assert_eq!(parse(text), Some(Bytes { sent: 52, received: 90 }));
        assert_eq!(parse("{}"), None);
    }
}
