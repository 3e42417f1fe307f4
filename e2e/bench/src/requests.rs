//! Requests as the API servers themselves count them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use kube::Client;
use serde::Serialize;

const FAMILY: &str = "apiserver_request_total{";
const WRITES: [&str; 6] = ["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];
const READS: [&str; 2] = ["GET", "LIST"];
/// Who works writes Events, and who lives renews leases: both are shown apart.
const APART: [&str; 2] = ["events", "leases"];

/// How many requests, by resource and verb.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Requests(pub BTreeMap<String, BTreeMap<String, i64>>);

/// Asks an API server.
pub async fn counted(client: &Client) -> Result<Requests> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    Ok(parse(&client.request_text(request).await.context("the API server shows no metrics")?))
}

/// Everything that has a resource: `/healthz` and the like are nobody's pods.
fn parse(text: &str) -> Requests {
    let mut requests = Requests::default();
    for line in text.lines().filter_map(|line| line.strip_prefix(FAMILY)) {
        let Some((labels, value)) = line.rsplit_once("} ") else { continue };
        let resource = match (label(labels, "resource"), label(labels, "subresource")) {
            ("", _) => continue,
            (resource, "") => resource.to_owned(),
            (resource, subresource) => format!("{resource}/{subresource}"),
        };
        // Large counts are printed with an exponent.
        let Ok(count) = value.parse::<f64>() else { continue };
        requests.add(&resource, label(labels, "verb"), count as i64);
    }
    requests
}

/// The value of a label; values of these labels hold neither quotes nor commas.
fn label<'a>(labels: &'a str, name: &str) -> &'a str {
    let value = labels.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'));
    value.unwrap_or_default()
}

impl Requests {
    fn add(&mut self, resource: &str, verb: &str, count: i64) {
        *self.0.entry(resource.to_owned()).or_default().entry(verb.to_owned()).or_default() += count;
    }

    /// What came since.
    pub fn since(&self, before: &Requests) -> Requests {
        let mut difference = Requests::default();
        for (resource, verb, count) in self.each() {
            let count = count - before.get(resource, verb);
            if count != 0 {
                difference.add(resource, verb, count);
            }
        }
        difference
    }

    pub fn get(&self, resource: &str, verb: &str) -> i64 {
        self.0.get(resource).and_then(|verbs| verbs.get(verb)).copied().unwrap_or(0)
    }

    pub fn each(&self) -> impl Iterator<Item = (&str, &str, i64)> {
        self.0.iter().flat_map(|(resource, verbs)| {
            verbs.iter().map(move |(verb, count)| (resource.as_str(), verb.as_str(), *count))
        })
    }

    /// Writes, but for Events and leases.
    pub fn each_write(&self) -> impl Iterator<Item = (&str, &str, i64)> {
        self.each().filter(|(resource, verb, _)| WRITES.contains(verb) && !APART.contains(resource))
    }

    pub fn writes(&self) -> i64 {
        self.each_write().map(|(_, _, count)| count).sum()
    }

    /// Writes of what there is one of per pod.
    pub fn pod_writes(&self) -> i64 {
        self.sum(|resource, verb| WRITES.contains(&verb) && is_per_pod(resource))
    }

    /// Single reads and lists of the same.
    pub fn pod_reads(&self) -> i64 {
        self.sum(|resource, verb| READS.contains(&verb) && is_per_pod(resource))
    }

    fn sum(&self, chosen: impl Fn(&str, &str) -> bool) -> i64 {
        self.each().filter(|(resource, verb, _)| chosen(resource, verb)).map(|(_, _, count)| count).sum()
    }
}

fn is_per_pod(resource: &str) -> bool {
    matches!(resource.split('/').next(), Some("pods" | "shadowpods"))
}

/// Whether a row belongs into a table of requests: watches last, and are counted when they end.
pub fn is_shown(verb: &str) -> bool {
    WRITES.contains(&verb) || READS.contains(&verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} 12
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"} 3
apiserver_request_total{code="201",component="apiserver",dry_run="",group="offloading.liqo.io",resource="shadowpods",scope="resource",subresource="",verb="POST",version="v1beta1"} 1.5e+03
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 7
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/healthz",verb="GET",version=""} 99
apiserver_request_total{code="0",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="WATCH",version="v1"} 5
apiserver_request_aborts_total{group="",resource="pods"} 4
"#;

    #[test]
    fn requests_are_summed_over_codes_and_sorted_by_kind() {
        let seen = parse(TEXT);
        assert_eq!(seen.get("pods/status", "PATCH"), 13);
        assert_eq!(seen.writes(), 13 + 1500, "without Events");
        assert_eq!(seen.pod_writes(), seen.writes());
        assert_eq!(seen.pod_reads(), 3, "a watch is no read");
    }

    #[test]
    fn a_difference_names_only_what_changed() {
        let (before, mut after) = (parse(TEXT), parse(TEXT));
        after.add("pods/binding", "POST", 2);
        assert_eq!(after.since(&before).each().collect::<Vec<_>>(), [("pods/binding", "POST", 2)]);
        assert_eq!(before.since(&before), Requests::default());
    }
}
