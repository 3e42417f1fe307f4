//! What the indexes keep of Deployments, virtual-kubelet pods and Nodes: as much as a condition tells.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use spillway_api::well_known::label;
use spillway_operator::ObjectKey;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    pub available: i32,
    /// What the Deployment's controller complains of.
    pub trouble: Option<String>,
}

impl Rollout {
    pub fn of(deployment: &Deployment) -> Self {
        let status = deployment.status.clone().unwrap_or_default();
        let trouble = status.conditions.unwrap_or_default().into_iter().find(|condition| {
            let state = (condition.type_.as_deref(), condition.status.as_deref());
            state == (Some("ReplicaFailure"), Some("True")) || state == (Some("Progressing"), Some("False"))
        });
        Self {
            available: status.available_replicas.unwrap_or(0),
            trouble: trouble.and_then(|condition| condition.message),
        }
    }
}

/// A pod of a virtual-kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletPod {
    pub virtual_node: ObjectKey,
    pub name: String,
    /// Why it does not run yet, in the kubelet's or the scheduler's words.
    pub waits: Option<String>,
}

impl KubeletPod {
    pub fn of(pod: &Pod, virtual_node: ObjectKey) -> Self {
        Self { virtual_node, name: pod.name_any(), waits: waits(pod) }
    }
}

fn waits(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let waiting = status.container_statuses.iter().flatten().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref().unwrap_or("Waiting");
        Some(match &waiting.message {
            Some(message) => format!("{reason} ({message})"),
            None => reason.to_owned(),
        })
    });
    let unscheduled = || {
        let condition = status
            .conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?;
        Some(format!(
            "{} ({})",
            condition.reason.as_deref().unwrap_or("Unschedulable"),
            condition.message.as_deref().unwrap_or_default()
        ))
    };
    waiting.or_else(unscheduled)
}

/// A Node that is labelled as a virtual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    pub uid: String,
    pub cluster_id: Option<String>,
    pub ready: bool,
    /// What its Ready condition says.
    pub message: Option<String>,
}

impl NodeSeen {
    /// `None` for a Node that is not a virtual one.
    pub fn of(node: &Node) -> Option<Self> {
        let labels = node.labels();
        if labels.get(label::NODE_TYPE).map(String::as_str) != Some(label::NODE_TYPE_VIRTUAL) {
            return None;
        }
        let ready = node
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_ref())
            .and_then(|conditions| conditions.iter().find(|condition| condition.type_ == "Ready"));
        Some(Self {
            uid: node.uid().unwrap_or_default(),
            cluster_id: labels.get(label::REMOTE_CLUSTER_ID).cloned(),
            ready: ready.is_some_and(|condition| condition.status == "True"),
            message: ready.and_then(|condition| condition.message.clone()),
        })
    }
}
