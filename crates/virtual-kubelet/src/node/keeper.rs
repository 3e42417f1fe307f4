//! Keeps the Node as the VirtualNode and the probe say. A Node that somebody deletes is put back as it was; no pod goes
//! with it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use spillway_api::k8s::Node;
use spillway_api::offloading::{
    VirtualNode, VirtualNodeConditionStatus as Status, VirtualNodeConditionType as Type, VirtualNodeSpec,
};
use spillway_api::well_known::field_manager;
use spillway_operator::error::{is_conflict, is_not_found};
use spillway_operator::peer::Reach;
use spillway_operator::queue::MAX_BACK_OFF;
use spillway_operator::{Index, ObjectKey};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::forge::{self, Facts};
use super::health::{self, Health};
use super::{applied, status};

/// A status without a change is written this often, as a kubelet does.
const REPORT_INTERVAL: Duration = Duration::from_secs(300);
const RETRY: Duration = Duration::from_secs(1);
/// One try takes no longer, so that a connection that died costs no more than this.
const TRY_TIMEOUT: Duration = Duration::from_secs(10);

/// What the index keeps of the VirtualNode.
pub struct Wanted {
    pub spec: VirtualNodeSpec,
    /// Peering takes the Node away: it is not put back.
    pub node_leaves: bool,
}

impl Wanted {
    pub fn of(virtual_node: VirtualNode) -> Self {
        let status = virtual_node.status.unwrap_or_default();
        let unwanted =
            virtual_node.metadata.deletion_timestamp.is_some() || status.effective_create_node == Some(false);
        let node = status.conditions.iter().find(|condition| condition.type_ == Type::Node);
        let emptied = node.is_some_and(|node| matches!(node.status, Status::Deleting | Status::None));
        Self { spec: virtual_node.spec, node_leaves: unwanted && emptied }
    }
}

pub struct NodeKeeper {
    pub client: Client,
    pub facts: Facts,
    pub virtual_nodes: Arc<Index<Wanted>>,
    pub virtual_node: ObjectKey,
    /// Keeps the Node as it was last seen.
    pub nodes: Arc<Index<Node>>,
    pub reach: watch::Receiver<Reach>,
    /// For how long the remote API server may be away before the Node is NotReady.
    pub patience: Duration,
    pub version: watch::Receiver<String>,
    /// Told when the VirtualNode or the Node changed.
    pub changed: Arc<Notify>,
}

impl NodeKeeper {
    /// Waits until no Node of this name is there that is none of ours; false if `stop` came first. Both indexes must be
    /// complete.
    pub async fn owns_name(&self, stop: &CancellationToken) -> bool {
        while self.node().is_some_and(|node| !forge::is_ours(&node, &self.facts)) {
            tracing::error!(
                node = self.facts.name,
                "a Node of this name exists that is no virtual node of this cluster: neither it nor its pods are touched; \
                 delete it, or give the VirtualNode another name"
            );
            tokio::select! {
                () = stop.cancelled() => return false,
                () = self.changed.notified() => {}
            }
        }
        !stop.is_cancelled()
    }

    /// Both indexes must be complete.
    pub async fn run(mut self, stop: CancellationToken) {
        let (mut reported, mut pause) = (None, RETRY);
        while !stop.is_cancelled() {
            let due = reported.is_none_or(|at: Instant| at.elapsed() >= REPORT_INTERVAL);
            self.facts.version.clone_from(&self.version.borrow_and_update());
            let (health, until) =
                health::judge(&self.reach.borrow_and_update(), self.patience, std::time::Instant::now());
            let tried = tokio::time::timeout(TRY_TIMEOUT, self.sync(&health, due)).await;
            let wait = match tried.context("the API server did not answer").and_then(|result| Ok(result?)) {
                Ok(Done::Foreign) => {
                    // The restart waits until the name is free, and leaves the other Node's pods alone meanwhile.
                    tracing::error!(node = self.facts.name, "another Node has taken this name: restarting");
                    stop.cancel();
                    break;
                }
                Ok(done) => {
                    if done == Done::Reported {
                        reported = Some(Instant::now());
                    }
                    pause = RETRY;
                    REPORT_INTERVAL
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(node = self.facts.name, error, "the Node could not be kept up to date");
                    let wait = pause;
                    pause = (pause * 2).min(MAX_BACK_OFF);
                    wait
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(until.map_or(wait, |until| until.min(wait))) => {}
                () = self.changed.notified() => {}
                Ok(()) = self.reach.changed() => {}
                Ok(()) = self.version.changed() => {}
            }
        }
    }

    fn node(&self) -> Option<Arc<Node>> {
        self.nodes.get(&self.key())
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::new("", self.facts.name.as_str())
    }

    async fn sync(&self, health: &Health, due: bool) -> kube::Result<Done> {
        let Some(wanted) = self.virtual_nodes.get(&self.virtual_node) else {
            return Ok(Done::Nothing);
        };
        let (api, name) = (Api::<Node>::all(self.client.clone()), &self.facts.name);
        let Some(node) = self.node() else {
            return if wanted.node_leaves {
                Ok(Done::Nothing)
            } else {
                self.register(&api, &wanted.spec, health).await
            };
        };
        if !forge::is_ours(&node, &self.facts) {
            return Ok(Done::Foreign);
        }
        if let Some(patch) = applied::patch(&node, &wanted.spec, &self.facts) {
            let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
            if !landed(patched)? {
                return Ok(Done::Nothing); // the watch is about to show what it was
            }
        }
        let wanted = status::status(&wanted.spec, &self.facts, health, Some(&node), Timestamp::now());
        if !due && !status::differs(&wanted, &node) {
            return Ok(Done::Nothing);
        }
        let patch = Patch::Strategic(status::patch(wanted, &node, health));
        let patched = api.patch_status(name, &PatchParams::default(), &patch).await;
        Ok(if landed(patched)? { Done::Reported } else { Done::Nothing })
    }

    async fn register(&self, api: &Api<Node>, wanted: &VirtualNodeSpec, health: &Health) -> kube::Result<Done> {
        let last = self.nodes.last(&self.key()).filter(|last| forge::is_ours(last, &self.facts));
        let node = forge::node(wanted, &self.facts, health, last.as_deref(), Timestamp::now());
        let params =
            PostParams { field_manager: Some(field_manager::VIRTUAL_KUBELET.to_owned()), ..PostParams::default() };
        match api.create(&params, &node).await {
            Ok(_) => {
                tracing::info!(node = self.facts.name, again = last.is_some(), "Node registered");
                Ok(Done::Reported)
            }
            Err(error) if is_conflict(&error) => Ok(Done::Nothing), // the watch is about to show it
            Err(error) => Err(error),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Done {
    /// The status was written.
    Reported,
    Nothing,
    /// The Node of this name is none of ours.
    Foreign,
}

/// False if somebody was faster, and an event is on the way.
fn landed<T>(written: kube::Result<T>) -> kube::Result<bool> {
    match written {
        Ok(_) => Ok(true),
        Err(error) if is_conflict(&error) || is_not_found(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::wanted(false, None, Some("Running"), false)]
    #[case::new(false, None, None, false)]
    #[case::blocked(false, Some(true), Some("None"), false)]
    #[case::deleted_but_full(true, None, Some("Draining"), false)]
    #[case::deleted_and_empty(true, None, Some("Deleting"), true)]
    #[case::deleted_and_gone(true, None, Some("None"), true)]
    #[case::not_to_be_made_but_full(false, Some(false), Some("Draining"), false)]
    #[case::not_to_be_made_and_empty(false, Some(false), Some("Deleting"), true)]
    fn a_node_is_put_back_until_peering_has_emptied_it(
        #[case] deleted: bool,
        #[case] create_node: Option<bool>,
        #[case] condition: Option<&str>,
        #[case] leaves: bool,
    ) {
        let conditions: Vec<_> =
            condition.into_iter().map(|status| json!({"type": "Node", "status": status})).collect();
        let mut virtual_node: VirtualNode = serde_json::from_value(json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "VirtualNode", "metadata": {"name": "n"}, "spec": {},
            "status": {"conditions": conditions, "effectiveCreateNode": create_node},
        }))
        .unwrap();
        if deleted {
            virtual_node.metadata.deletion_timestamp = Some(spillway_api::k8s::Time(Timestamp::now()));
        }
        assert_eq!(Wanted::of(virtual_node).node_leaves, leaves);
    }
}
