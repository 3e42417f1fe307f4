//! Keeps the Node as the VirtualNode and the probe say. A Node that somebody deletes is put back; no pod goes with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use spillway_api::k8s::Node;
use spillway_api::offloading::VirtualNodeSpec;
use spillway_api::well_known::field_manager;
use spillway_operator::error::is_conflict;
use spillway_operator::peer::Reach;
use spillway_operator::queue::MAX_BACK_OFF;
use spillway_operator::{Index, ObjectKey};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::forge::{self, Facts};

/// A status without a change is written this often, as a kubelet does.
const REPORT_INTERVAL: Duration = Duration::from_secs(300);
const RETRY: Duration = Duration::from_secs(1);

pub struct NodeKeeper {
    pub client: Client,
    pub facts: Facts,
    pub virtual_nodes: Arc<Index<VirtualNodeSpec>>,
    pub virtual_node: ObjectKey,
    pub nodes: Arc<Index<Node>>,
    pub reach: watch::Receiver<Reach>,
    /// Told when the VirtualNode or the Node changed.
    pub changed: Arc<Notify>,
}

impl NodeKeeper {
    /// Whether a Node of this name is there that is none of ours. Both indexes must be complete.
    pub fn name_is_taken(&self) -> bool {
        let node = self.nodes.get(&ObjectKey::new("", self.facts.name.as_str()));
        node.is_some_and(|node| !forge::is_ours(&node, &self.facts))
    }

    /// Both indexes must be complete.
    pub async fn run(mut self, stop: CancellationToken) {
        let (mut reported, mut pause) = (None, RETRY);
        while !stop.is_cancelled() {
            let due = reported.is_none_or(|at: Instant| at.elapsed() >= REPORT_INTERVAL);
            let wait = match self.sync(due).await {
                Ok(wrote) => {
                    if wrote {
                        reported = Some(Instant::now());
                    }
                    pause = RETRY;
                    REPORT_INTERVAL
                }
                Err(error) => {
                    tracing::warn!(node = self.facts.name, %error, "the Node could not be kept up to date");
                    let wait = pause;
                    pause = (pause * 2).min(MAX_BACK_OFF);
                    wait
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(wait) => {}
                () = self.changed.notified() => {}
                _ = self.reach.changed() => {}
            }
        }
    }

    /// True if the status was written.
    async fn sync(&self, due: bool) -> kube::Result<bool> {
        let Some(virtual_node) = self.virtual_nodes.get(&self.virtual_node) else {
            return Ok(false);
        };
        let reach = self.reach.borrow().clone();
        let (api, now) = (Api::<Node>::all(self.client.clone()), Timestamp::now());
        let key = ObjectKey::new("", self.facts.name.as_str());
        let Some(node) = self.nodes.get(&key) else {
            let params =
                PostParams { field_manager: Some(field_manager::VIRTUAL_KUBELET.to_owned()), ..PostParams::default() };
            return match api.create(&params, &forge::node(&virtual_node, &self.facts, &reach, now)).await {
                Ok(_) => {
                    tracing::info!(node = self.facts.name, "Node registered");
                    Ok(true)
                }
                Err(error) if is_conflict(&error) => Ok(false), // the watch is about to show it
                Err(error) => Err(error),
            };
        };
        if !forge::is_ours(&node, &self.facts) {
            tracing::error!(node = self.facts.name, "another Node has taken this name; it is left alone");
            return Ok(false);
        }
        if matches!(reach, Reach::Unknown) {
            return Ok(false); // a restart must not make a healthy node NotReady; the first probe's end wakes this up
        }
        if let Some(patch) = metadata_patch(&node, &virtual_node, &self.facts) {
            api.patch_metadata(&self.facts.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        let wanted = forge::status(&virtual_node, &self.facts, &reach, Some(&node), now);
        if !due && !forge::differs(&wanted, &node) {
            return Ok(false);
        }
        let patch = Patch::Strategic(json!({"status": with_removals(wanted, &node)}));
        api.patch_status(&self.facts.name, &PatchParams::default(), &patch).await?;
        Ok(true)
    }
}

/// What of ours the Node lacks; what others put there stays.
fn metadata_patch(node: &Node, virtual_node: &VirtualNodeSpec, facts: &Facts) -> Option<Value> {
    let lacking = |wanted: BTreeMap<String, String>, there: &Option<BTreeMap<String, String>>| -> BTreeMap<_, _> {
        let there = there.clone().unwrap_or_default();
        wanted.into_iter().filter(|(key, value)| there.get(key) != Some(value)).collect()
    };
    let labels = lacking(forge::labels(virtual_node, facts), &node.metadata.labels);
    let annotations = lacking(forge::annotations(virtual_node, facts), &node.metadata.annotations);
    let nothing = labels.is_empty() && annotations.is_empty();
    (!nothing).then(|| json!({"metadata": {"labels": labels, "annotations": annotations}}))
}

/// Maps are merged by the API server: a resource that is no longer offered must be named to be erased.
fn with_removals(mut wanted: spillway_api::RawObject, node: &Node) -> spillway_api::RawObject {
    let status = node.status.clone().unwrap_or_default();
    for (field, there) in [("capacity", status.capacity), ("allocatable", status.allocatable)] {
        if let Some(Value::Object(wanted)) = wanted.get_mut(field) {
            for resource in there.unwrap_or_default().into_keys() {
                wanted.entry(resource).or_insert(Value::Null);
            }
        }
    }
    if let Some(Value::Array(addresses)) = wanted.get_mut("addresses") {
        addresses.push(json!({"$patch": "replace"}));
    }
    wanted
}
