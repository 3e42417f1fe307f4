//! What was asked of an API server from a moment on, by its audit log.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;
use spillway_testbed::Testbed;

/// A moment in the audit log of a cluster.
pub struct Audit {
    log: PathBuf,
    position: u64,
}

/// One answered request.
#[derive(Clone, Debug)]
pub struct Request {
    pub user: String,
    pub verb: String,
    /// With its subresource: `pods/status`.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub code: i64,
}

impl Request {
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// "patch pods/status", to count by.
    pub fn what(&self) -> String {
        format!("{} {}", self.verb, self.resource)
    }
}

impl Audit {
    pub fn from_now(testbed: &Testbed, cluster: &str) -> Result<Self> {
        let log = testbed.logs(&format!("{cluster}/kube-apiserver"))?.into_iter().next().context("no log")?;
        let position = std::fs::metadata(&log)?.len();
        Ok(Self { log, position })
    }

    /// What was answered since; the log is written before the answer.
    pub fn requests(&self) -> Result<Vec<Request>> {
        let mut file = std::fs::File::open(&self.log).with_context(|| format!("no log {}", self.log.display()))?;
        // A server that starts anew sets a long log aside.
        let is_another = file.metadata()?.len() < self.position;
        file.seek(SeekFrom::Start(if is_another { 0 } else { self.position }))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let events = text.lines().filter(|line| line.starts_with(r#"{"kind":"Event""#));
        let events = events.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(events.filter(|event| event["stage"] == "ResponseComplete").map(|event| request(&event)).collect())
    }
}

fn request(event: &Value) -> Request {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &event["objectRef"];
    let (resource, sub) = (text(&object["resource"]), text(&object["subresource"]));
    Request {
        user: text(&event["user"]["username"]),
        verb: text(&event["verb"]),
        resource: if sub.is_empty() { resource } else { format!("{resource}/{sub}") },
        namespace: text(&object["namespace"]),
        name: text(&object["name"]),
        code: event["responseStatus"]["code"].as_i64().unwrap_or_default(),
    }
}

/// How many of each kind.
pub fn counts<'a>(requests: impl IntoIterator<Item = &'a Request>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in requests {
        *counts.entry(request.what()).or_default() += 1;
    }
    counts
}
