//! What the indexes keep of Deployments, virtual-kubelet pods and Nodes: as much as a condition tells.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use kube::ResourceExt;
use spillway_api::node::NodeKind;
use spillway_operator::ObjectKey;

use super::cordon;

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
    /// Why it does not run yet, in its own words, or the kubelet's or the scheduler's.
    pub waits: Option<String>,
}

impl KubeletPod {
    pub fn of(pod: &Pod, virtual_node: ObjectKey) -> Self {
        Self { virtual_node, name: pod.name_any(), waits: waits(pod) }
    }
}

fn waits(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let containers = || status.container_statuses.iter().flatten().filter(|container| !container.ready);
    let waiting = |container: &ContainerStatus| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref().unwrap_or("Waiting");
        Some(match &waiting.message {
            Some(message) => format!("{reason} ({message})"),
            None => reason.to_owned(),
        })
    };
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
    containers().find_map(last_words).or_else(|| containers().find_map(waiting)).or_else(unscheduled)
}

/// The last line that a container wrote before it failed. Told in the same words whether it is just failing, waits to be
/// started again or has been, so that the condition does not change with every try.
fn last_words(container: &ContainerStatus) -> Option<String> {
    let states = [container.state.as_ref(), container.last_state.as_ref()];
    let ended = states.into_iter().flatten().find_map(|state| state.terminated.as_ref())?;
    let line = ended.message.as_deref()?.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(format!("it ends with: {}", line.chars().take(500).collect::<String>()))
}

/// A Node of any kind: also a real one can have the name of a virtual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    pub uid: String,
    pub kind: NodeKind,
    pub ready: bool,
    /// What its Ready condition says.
    pub message: Option<String>,
    /// Cordoned and tainted by us.
    pub draining: bool,
}

impl NodeSeen {
    pub fn of(node: &Node) -> Self {
        let ready = node
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_ref())
            .and_then(|conditions| conditions.iter().find(|condition| condition.type_ == "Ready"));
        Self {
            uid: node.uid().unwrap_or_default(),
            kind: NodeKind::of(node),
            ready: ready.is_some_and(|condition| condition.status == "True"),
            message: ready.and_then(|condition| condition.message.clone()),
            draining: cordon::is_draining(node),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    const PANIC: &str = "2026-01-01T00:00:00Z  INFO starting\n\nError: the kubeconfig is not usable: no clusters\n";

    #[rstest]
    #[case::ready(json!({"ready": true, "lastState": {"terminated": {"exitCode": 1, "message": PANIC}}}), None)]
    #[case::pulling(
        json!({"ready": false, "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}),
        Some("ErrImagePull (no such image)")
    )]
    #[case::crashed(
        json!({"ready": false, "state": {"terminated": {"exitCode": 1, "message": PANIC}}}),
        Some("it ends with: Error: the kubeconfig is not usable: no clusters")
    )]
    #[case::backing_off(
        json!({"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
               "lastState": {"terminated": {"exitCode": 1, "message": PANIC}}}),
        Some("it ends with: Error: the kubeconfig is not usable: no clusters")
    )]
    #[case::without_words(
        json!({"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
               "lastState": {"terminated": {"exitCode": 137}}}),
        Some("CrashLoopBackOff (back-off 10s)")
    )]
    fn a_pod_that_does_not_run_says_why(#[case] mut container: Value, #[case] waits: Option<&str>) {
        for (field, value) in
            [("name", json!("vk")), ("image", json!("")), ("imageID", json!("")), ("restartCount", json!(1))]
        {
            container[field] = value;
        }
        let pod =
            serde_json::from_value(json!({"metadata": {}, "status": {"containerStatuses": [container]}})).unwrap();
        assert_eq!(super::waits(&pod).as_deref(), waits);
    }
}
