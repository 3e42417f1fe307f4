//! Remote pod status → local pod status. Pure: the time is given.

mod containers;
mod patch;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_api::RawObject;
use spillway_api::offloading::ShadowPodStatus;
use spillway_api::raw_pod::str_of;
use spillway_api::well_known::{condition, reason};

use super::digest::LocalDigest;
use crate::addresses::Addresses;
use crate::time::seconds;
pub use patch::patch;

/// Never written: they belong to the API server, the resource claim controller and the scheduler.
const NOT_OURS: &[&str] = &["qosClass", "resourceClaimStatuses", "nominatedNodeName"];

/// How a remote status is translated.
#[derive(Clone, Copy)]
pub struct Mirror<'a> {
    /// The address of this virtual node.
    pub node_ip: Option<&'a str>,
    pub addresses: &'a Addresses,
    /// When a condition that changes now has changed.
    pub at: Timestamp,
}

impl Mirror<'_> {
    /// The status that the local pod should have, for what the remote one of this UID has (none for an outcome); `seen` is
    /// the generation of the local pod that the remote one has come to know.
    pub fn status(
        &self,
        remote: &RawObject,
        uid: Option<&str>,
        shadow: &ShadowPodStatus,
        local: &LocalDigest,
        now: &RawObject,
        seen: Option<i64>,
    ) -> RawObject {
        let mut status = ours(remote);
        set_generation(&mut status, seen);
        self.set_addresses(&mut status);
        containers::add_restarts(&mut status, shadow, uid, now);
        containers::keep_ended(&mut status, now, local);
        let shown = conditions(&status, shadow, local, now, seen);
        status.insert("conditions".to_owned(), Value::Array(shown));
        explain_unschedulable(&mut status);
        status
    }

    /// The status of a pod that is held up, before it could start or on its way back.
    pub fn waiting(&self, reason: &str, message: &str, local: &LocalDigest, now: &RawObject) -> RawObject {
        let mut status = ours(now);
        if local.never_started {
            status.insert("phase".to_owned(), json!("Pending"));
        } else {
            self.make_unready(&mut status, reason);
            containers::wait(&mut status, reason);
            containers::keep_ended(&mut status, now, local);
            status.retain(|field, _| !matches!(field.as_str(), "podIP" | "podIPs"));
        }
        explain(&mut status, reason, message);
        status
    }

    /// The status of a pod whose remote one is being taken away: it takes no more traffic, and what comes next is shown.
    pub fn interrupted(&self, now: &RawObject) -> RawObject {
        let mut status = ours(now);
        self.make_unready(&mut status, reason::REMOTE_POD_TERMINATING);
        containers::make_unready(&mut status);
        explain(
            &mut status,
            reason::REMOTE_POD_TERMINATING,
            "the remote cluster takes the pod away; another one follows there",
        );
        status
    }

    /// The status of a pod that is being deleted and of which nothing is left to ask: as a kubelet words it.
    pub fn ended(&self, now: &RawObject) -> RawObject {
        let mut status = ours(now);
        let succeeded = containers::end(&mut status);
        status.insert("phase".to_owned(), json!(if succeeded { "Succeeded" } else { "Failed" }));
        self.make_unready(&mut status, if succeeded { "PodCompleted" } else { "PodFailed" });
        status
    }

    /// Says of a running pod that a change of it was refused: nothing else would tell.
    pub fn refused_update(&self, status: &mut RawObject, message: &str, now: &RawObject) {
        let before = find(now, condition::UPDATE_REFUSED).map(|before| str_of(before, "lastTransitionTime").to_owned());
        let since = before.unwrap_or_else(|| seconds(self.at));
        let refused = json!({"type": condition::UPDATE_REFUSED, "status": "True", "reason": reason::UPDATE_REFUSED,
                             "message": message, "lastTransitionTime": since});
        if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
            conditions.push(refused);
        }
    }

    fn set_addresses(&self, status: &mut RawObject) {
        if let Some(Value::String(ip)) = status.get_mut("podIP") {
            *ip = self.addresses.local(ip);
        }
        for entry in array(status, "podIPs") {
            if let Some(Value::String(ip)) = entry.get_mut("ip") {
                *ip = self.addresses.local(ip);
            }
        }
        match self.node_ip {
            Some(ip) if status.contains_key("hostIP") => {
                status.insert("hostIP".to_owned(), json!(ip));
                status.insert("hostIPs".to_owned(), json!([{"ip": ip}]));
            }
            _ => status.retain(|field, _| !matches!(field.as_str(), "hostIP" | "hostIPs")),
        }
    }

    fn make_unready(&self, status: &mut RawObject, reason: &str) {
        for condition in array(status, "conditions") {
            let kind = condition.get("type").and_then(Value::as_str);
            if matches!(kind, Some("Ready" | "ContainersReady")) && condition.get("status") != Some(&json!("False")) {
                condition["status"] = json!("False");
                condition["reason"] = json!(reason);
                condition["lastTransitionTime"] = json!(seconds(self.at));
            }
        }
    }
}

fn ours(status: &RawObject) -> RawObject {
    let mut status = status.clone();
    status.retain(|field, _| !NOT_OURS.contains(&field.as_str()));
    status
}

fn array<'a>(status: &'a mut RawObject, field: &str) -> impl Iterator<Item = &'a mut Value> {
    status.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// The same status with a reason why nothing happens.
pub fn explained(reason: &str, message: &str, now: &RawObject) -> RawObject {
    let mut status = ours(now);
    explain(&mut status, reason, message);
    status
}

fn explain(status: &mut RawObject, reason: &str, message: &str) {
    status.insert("reason".to_owned(), json!(reason));
    status.insert("message".to_owned(), json!(message));
}

/// The generation that the remote saw is that of another object.
fn set_generation(object: &mut RawObject, generation: Option<i64>) {
    if object.remove("observedGeneration").is_some()
        && let Some(generation) = generation
    {
        object.insert("observedGeneration".to_owned(), json!(generation));
    }
}

/// The remote conditions, but for those that mean something else here.
fn conditions(
    status: &RawObject,
    shadow: &ShadowPodStatus,
    local: &LocalDigest,
    now: &RawObject,
    seen: Option<i64>,
) -> Vec<Value> {
    let remote = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let mut conditions = Vec::new();
    for condition in remote.filter_map(Value::as_object) {
        match str_of(condition, "type") {
            // What the provider takes away it brings back, unless it is the end of it.
            "DisruptionTarget" if shadow.outcome.is_none() => continue,
            // It was scheduled here; only what keeps it from being scheduled there is news.
            "PodScheduled" if str_of(condition, "status") != "False" => continue,
            _ => {}
        }
        let mut condition = condition.clone();
        set_generation(&mut condition, seen);
        conditions.push(Value::Object(condition));
    }
    if !conditions.iter().any(|condition| condition["type"] == "PodScheduled") {
        let told = find(status, "PodScheduled").is_some_and(|condition| condition.contains_key("observedGeneration"));
        conditions
            .extend(find(now, "PodScheduled").map(|condition| scheduled(condition, told.then_some(seen).flatten())));
    }
    if !local.gates.is_empty() {
        count_gates_in(&mut conditions, local, now);
    }
    conditions
}

/// The local condition, as a kubelet leaves it: True, with the generation that it has seen, once it has seen any.
fn scheduled(condition: &RawObject, seen: Option<i64>) -> Value {
    let mut condition = condition.clone();
    condition.insert("status".to_owned(), json!("True"));
    condition.retain(|field, _| !matches!(field.as_str(), "reason" | "message"));
    if let Some(generation) = seen {
        condition.insert("observedGeneration".to_owned(), json!(generation));
    }
    Value::Object(condition)
}

/// The pod's own gates are told at home: it is Ready when its containers are and every gate is open, as a kubelet says it.
fn count_gates_in(conditions: &mut [Value], local: &LocalDigest, now: &RawObject) {
    let containers = conditions.iter().find(|condition| condition["type"] == "ContainersReady").cloned();
    let Some(ready) = conditions.iter_mut().find(|condition| condition["type"] == "Ready") else { return };
    let closed = local.gates.iter().find_map(|gate| match find(now, gate) {
        None => Some(format!("corresponding condition of pod readiness gate \"{gate}\" does not exist.")),
        Some(condition) => match str_of(condition, "status") {
            "True" => None,
            other => Some(format!("the status of pod readiness gate \"{gate}\" is not \"True\", but {other}")),
        },
    });
    if let (Some(message), Some("True")) =
        (closed, containers.as_ref().and_then(|condition| condition["status"].as_str()))
    {
        ready["status"] = json!("False");
        ready["reason"] = json!("ReadinessGatesNotReady");
        ready["message"] = json!(message);
    }
    // Ready changes with its gates as well, of which the remote knows nothing.
    let gates = local.gates.iter().filter_map(|gate| find(now, gate));
    let times = gates.map(|gate| str_of(gate, "lastTransitionTime").to_owned());
    let latest = times.chain([ready["lastTransitionTime"].as_str().unwrap_or_default().to_owned()]).max();
    let unchanged = find(now, "Ready").filter(|before| before.get("status") == ready.get("status"));
    let since = unchanged.map(|before| str_of(before, "lastTransitionTime").to_owned()).or(latest);
    ready["lastTransitionTime"] = json!(since);
}

fn find<'a>(status: &'a RawObject, kind: &str) -> Option<&'a RawObject> {
    let conditions = status.get("conditions").and_then(Value::as_array)?;
    conditions.iter().filter_map(Value::as_object).find(|condition| str_of(condition, "type") == kind)
}

/// Where `kubectl` shows it: the local pod has long been scheduled, so nobody would look at that condition.
fn explain_unschedulable(status: &mut RawObject) {
    let Some(unscheduled) = find(status, "PodScheduled").filter(|condition| str_of(condition, "status") == "False")
    else {
        return;
    };
    let message = format!("the remote cluster cannot schedule it: {}", str_of(unscheduled, "message"));
    explain(status, "RemoteUnschedulable", &message);
}

#[cfg(test)]
mod tests;
