//! The status of a VirtualNode, from what was seen. Pure: the time is given.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use spillway_api::offloading::{
    VirtualNode, VirtualNodeCondition, VirtualNodeConditionStatus as Status, VirtualNodeConditionType as Type,
    VirtualNodeStatus, VkOptionsTemplateSpec,
};

use super::forge::{creates_node, effective_patch};
use super::observe::{KubeletPod, NodeSeen, Rollout};

/// How far the controller has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Everything is made; the rest is up to the cluster.
    Made,
    /// Something stands in the way, which a user can mend.
    Blocked { reason: &'static str, message: String },
    /// No Node is wanted or the VirtualNode is being deleted, and pods are still bound to the Node.
    Draining(Progress),
    /// The Node is being deleted, and then the pods that come back for as long as it is there. From here on the
    /// virtual-kubelet does not put it back.
    EndingNode(Progress),
    /// The VirtualNode is being deleted: its virtual-kubelet ends.
    EndingKubelet,
}

/// How far the pods of a Node that is to go have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub pods: usize,
    /// Of these, so many are terminating.
    pub leaving: usize,
    /// Of these, so many could not be evicted.
    pub refused: usize,
    /// The first few of those, and why.
    pub named: Vec<String>,
}

pub struct Observation<'a> {
    pub virtual_node: &'a VirtualNode,
    pub options: Option<&'a VkOptionsTemplateSpec>,
    pub rollout: Option<&'a Rollout>,
    pub pods: &'a [KubeletPod],
    pub node: Option<&'a NodeSeen>,
    pub stage: Stage,
}

struct Verdict {
    status: Status,
    reason: &'static str,
    message: String,
}

fn verdict(status: Status, reason: &'static str, message: impl Into<String>) -> Verdict {
    Verdict { status, reason, message: message.into() }
}

pub fn forge(observation: &Observation<'_>, now: Time) -> VirtualNodeStatus {
    let before = observation.virtual_node.status.clone().unwrap_or_default();
    let kubelet = condition(&before, Type::VirtualKubelet, kubelet(observation), &now);
    let node = condition(&before, Type::Node, node(observation), &now);
    let mut status = VirtualNodeStatus { conditions: vec![kubelet, node], ..before };
    if let Some(options) = observation.options {
        let spec = &observation.virtual_node.spec;
        status.effective_create_node = Some(creates_node(observation.virtual_node, options));
        status.effective_disable_network_check =
            Some(spec.disable_network_check.unwrap_or(options.disable_network_check));
        status.effective_offloading_patch = Some(effective_patch(observation.virtual_node, options));
    }
    status
}

fn kubelet(observation: &Observation<'_>) -> Verdict {
    if observation.stage == Stage::EndingKubelet {
        return verdict(
            Status::Deleting,
            "VirtualNodeDeleted",
            "waiting for the virtual-kubelet's Deployment and pods to end",
        );
    }
    let running = observation.rollout.is_some_and(|rollout| rollout.available > 0);
    if let Stage::Blocked { reason, message } = &observation.stage {
        let status = match observation.rollout {
            Some(_) if running => Status::Running,
            Some(_) => Status::Creating,
            None => Status::None,
        };
        return verdict(status, reason, message.clone());
    }
    if running {
        return verdict(Status::Running, "Available", "the virtual-kubelet is ready");
    }
    verdict(Status::Creating, "NotAvailable", waiting_for(observation))
}

/// In the words of whoever knows most: the pod, else the Deployment.
fn waiting_for(observation: &Observation<'_>) -> String {
    let pod = observation.pods.iter().find_map(|pod| Some((&pod.name, pod.waits.as_ref()?)));
    let trouble = observation.rollout.and_then(|rollout| rollout.trouble.as_ref());
    match (pod, trouble) {
        (Some((name, waits)), _) if waits.starts_with("ContainerCreating") => format!(
            "pod {name}: {waits}; if it stays so, is there a Secret '{}' with the key 'kubeconfig'? (kubectl describe pod says)",
            secret(observation.virtual_node)
        ),
        (Some((name, waits)), _) => format!("pod {name}: {waits}"),
        (None, Some(trouble)) => trouble.clone(),
        (None, None) => "the virtual-kubelet is not ready yet".to_owned(),
    }
}

fn secret(virtual_node: &VirtualNode) -> &str {
    let reference = virtual_node.spec.kubeconfig_secret_ref.as_ref();
    reference.map_or("", |reference| &reference.name)
}

fn node(observation: &Observation<'_>) -> Verdict {
    match &observation.stage {
        Stage::Draining(progress) => return draining(observation, progress),
        Stage::EndingNode(progress) => {
            let pods = match progress.pods {
                0 => String::new(),
                pods => format!("; pods of DaemonSets that go after it: {pods}"),
            };
            return verdict(Status::Deleting, "NotWanted", format!("the Node is being deleted{pods}"));
        }
        Stage::EndingKubelet if observation.node.is_some() => {
            return verdict(Status::Deleting, "VirtualNodeDeleted", "waiting for the virtual-kubelet to end");
        }
        _ => {}
    }
    let wanted = observation.options.is_none_or(|options| creates_node(observation.virtual_node, options));
    match observation.node {
        Some(node) if node.ready => verdict(Status::Running, "Ready", "the Node is Ready"),
        Some(node) => verdict(
            Status::Creating,
            "NotReady",
            node.message.clone().unwrap_or_else(|| "the Node is not Ready yet".to_owned()),
        ),
        None if deleted(observation) => verdict(Status::None, "VirtualNodeDeleted", "there is no Node any more"),
        None if !wanted => verdict(Status::None, "NotWanted", "createNode is false: no Node is made"),
        None => match &observation.stage {
            Stage::Blocked { .. } if observation.rollout.is_none() => {
                verdict(Status::None, "NoVirtualKubelet", "the virtual-kubelet that registers the Node cannot be made")
            }
            _ => verdict(Status::Creating, "NotRegistered", "the virtual-kubelet has not registered the Node yet"),
        },
    }
}

/// How many are left, who does not let them go, and why those that are going take so long.
fn draining(observation: &Observation<'_>, progress: &Progress) -> Verdict {
    let Progress { pods, leaving, refused, named } = progress;
    let mut message = format!("pods left on this node: {pods}, terminating: {leaving}");
    let mut reason = "PodsBound";
    if *refused > 0 {
        reason = "EvictionRefused";
        let more = if *refused > named.len() { ", …" } else { "" };
        message += &format!("; evictions refused: {refused} ({}{more}); they are tried again", named.join("; "));
    }
    let running = observation.rollout.is_some_and(|rollout| rollout.available > 0);
    let stuck = match observation.node {
        _ if !running => Some(format!("the virtual-kubelet does not run: {}", waiting_for(observation))),
        Some(node) if !node.ready => node.message.clone(),
        _ => None,
    };
    if let Some(stuck) = stuck.filter(|_| refused < pods) {
        reason = "RemoteUnreachable";
        message += &format!("; a pod goes only when the remote cluster says that it has ended, but {stuck}");
    }
    verdict(Status::Draining, reason, message)
}

fn deleted(observation: &Observation<'_>) -> bool {
    observation.virtual_node.metadata.deletion_timestamp.is_some()
}

fn condition(before: &VirtualNodeStatus, type_: Type, verdict: Verdict, now: &Time) -> VirtualNodeCondition {
    let old = before.conditions.iter().find(|condition| condition.type_ == type_);
    let since = old
        .filter(|condition| condition.status == verdict.status)
        .and_then(|condition| condition.last_transition_time.clone());
    VirtualNodeCondition {
        type_,
        status: verdict.status,
        last_transition_time: Some(since.unwrap_or_else(|| now.clone())),
        reason: Some(verdict.reason.to_owned()),
        message: Some(verdict.message),
    }
}

#[cfg(test)]
mod tests;
