//! The heartbeat of the node: its Lease in kube-node-lease, renewed as a kubelet does.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, ResourceExt};
use spillway_api::k8s::{Lease, LeaseSpec, MicroTime, Node, OwnerReference};
use spillway_operator::error::found;
use spillway_operator::{Index, ObjectKey};
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "kube-node-lease";
const RETRY: Duration = Duration::from_secs(1);

pub struct Heartbeat {
    pub client: Client,
    pub node_name: String,
    pub duration: Duration,
    pub nodes: Arc<Index<Node>>,
}

impl Heartbeat {
    pub async fn run(self, stop: CancellationToken) {
        let api = Api::<Lease>::namespaced(self.client.clone(), NAMESPACE);
        let mut held: Option<Lease> = None;
        while !stop.is_cancelled() {
            // Counted from the beginning and bounded, as a kubelet does: an API server that is slow, or a connection that
            // died, must not cost the heartbeats that keep the node alive.
            let (begun, interval) = (Instant::now(), self.duration / 4);
            let next = match tokio::time::timeout(interval, self.beat(&api, held.take())).await {
                Ok(Ok(lease)) => {
                    held = lease;
                    begun + if held.is_some() { interval } else { RETRY }
                }
                Ok(Err(error)) => {
                    tracing::warn!(node = self.node_name, %error, "the node's lease could not be renewed");
                    Instant::now() + RETRY
                }
                Err(_) => {
                    tracing::warn!(node = self.node_name, "the node's lease was not renewed in time");
                    Instant::now()
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// Renews what is held, or reads or makes the lease first. `None` while there is no Node to own it.
    async fn beat(&self, api: &Api<Lease>, held: Option<Lease>) -> kube::Result<Option<Lease>> {
        let params = PostParams::default();
        let Some(node) = self.nodes.get(&ObjectKey::new("", self.node_name.as_str())) else {
            return Ok(None);
        };
        let before = match held {
            Some(lease) => Some(lease),
            None => found(api.get(&self.node_name).await)?,
        };
        let now = Timestamp::now();
        match before {
            Some(lease) => {
                let renewed = renewed(lease, &node, self.duration, now);
                api.replace(&self.node_name, &params, &renewed).await.map(Some)
            }
            None => {
                let metadata = ObjectMeta { name: Some(self.node_name.clone()), ..ObjectMeta::default() };
                let first = renewed(Lease { metadata, spec: None }, &node, self.duration, now);
                api.create(&params, &first).await.map(Some)
            }
        }
    }
}

/// The next heartbeat. The node controller counts only one that is later than the last: a clock that was set back does not
/// stop the node's heart. The lease belongs to the Node as it is now, also after somebody deleted the former one.
fn renewed(mut lease: Lease, node: &Node, duration: Duration, now: Timestamp) -> Lease {
    let spec = lease.spec.take().unwrap_or_default();
    let last = spec.renew_time.as_ref().map(|time| time.0);
    let later = last.and_then(|last| last.checked_add(jiff::SignedDuration::from_secs(1)).ok());
    lease.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.name_any(),
        uid: node.uid().unwrap_or_default(),
        ..OwnerReference::default()
    }]);
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(node.name_any()),
        lease_duration_seconds: i32::try_from(duration.as_secs()).ok(),
        renew_time: Some(MicroTime(later.map_or(now, |later| later.max(now)))),
        ..spec
    });
    lease
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_heartbeat_is_later_than_the_last_whatever_the_clock_says() {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n", "uid": "u"}})).unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let renew = |lease: Lease, now| renewed(lease, &node, Duration::from_secs(40), at(now));
        let time = |lease: &Lease| lease.spec.as_ref().unwrap().renew_time.as_ref().unwrap().0;
        let first = renew(Lease::default(), "2026-01-01T12:00:00Z");
        assert_eq!(time(&first), at("2026-01-01T12:00:00Z"));
        let second = renew(first, "2026-01-01T12:00:10Z");
        assert_eq!(time(&second), at("2026-01-01T12:00:10Z"));
        let set_back = renew(second, "2026-01-01T11:00:00Z");
        assert_eq!(time(&set_back), at("2026-01-01T12:00:11Z"));
        let set_right = renew(set_back, "2026-01-01T12:30:00Z");
        assert_eq!(time(&set_right), at("2026-01-01T12:30:00Z"));
    }

    #[test]
    fn the_lease_follows_a_node_that_was_made_anew() {
        let node = |uid: &str| serde_json::from_value::<Node>(json!({"metadata": {"name": "n", "uid": uid}})).unwrap();
        let renew = |lease: Lease, node: &Node| renewed(lease, node, Duration::from_secs(40), Timestamp::now());
        let lease = renew(renew(Lease::default(), &node("one")), &node("two"));
        assert_eq!(lease.metadata.owner_references.unwrap()[0].uid, "two");
    }
}
