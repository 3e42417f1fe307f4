//! What a pod leaves behind that the cluster took away: how often its containers had restarted, and, where its user wants
//! that, the status with which it ends for good.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_api::RawObject;
use spillway_api::raw_pod::str_of;

use crate::digest::has_condition;

const CONTAINER_LISTS: [&str; 2] = ["initContainerStatuses", "containerStatuses"];

/// As the kubelet names a container of which nobody knows how it ended.
const UNKNOWN_END: &str = "ContainerStatusUnknown";

/// The statuses of all containers, init containers first.
pub fn containers(status: &RawObject) -> impl Iterator<Item = &Value> {
    let lists = CONTAINER_LISTS.into_iter().filter_map(|list| status.get(list));
    lists.filter_map(Value::as_array).flatten()
}

/// The containers that restarted, and how often.
pub fn restarts(status: &RawObject) -> BTreeMap<String, i64> {
    let counts = containers(status).filter_map(|container| {
        let count = container.get("restartCount").and_then(Value::as_i64).filter(|count| *count > 0)?;
        Some((container.get("name")?.as_str()?.to_owned(), count))
    });
    counts.collect()
}

/// Whether anything of the pod runs or ever ran.
pub fn had_started(status: &RawObject) -> bool {
    containers(status).any(has_run)
}

/// A kubelet that gives a pod up calls also those containers terminated that it never started: an ID or a time tells.
fn has_run(container: &Value) -> bool {
    let text = |pointer| container.pointer(pointer).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    container.pointer("/state/running").is_some()
        || container.pointer("/lastState/terminated").is_some()
        || container.get("restartCount").and_then(Value::as_i64).is_some_and(|count| count > 0)
        || text("/containerID")
        || text("/state/terminated/startedAt")
}

/// Why a pod was taken away, if the cluster itself left no condition that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Deleted,
    NodeLost,
}

impl Cause {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Cause::Deleted => ("DeletedByProvider", "the pod was deleted in the cluster that it ran in"),
            Cause::NodeLost => ("NodeLost", "the node that the pod ran on was lost"),
        }
    }
}

/// The last status of a pod that is not to run again although it was disrupted.
pub fn failed(last: &RawObject, cause: Cause, now: Timestamp) -> RawObject {
    let mut status = last.clone();
    status.insert("phase".to_owned(), json!("Failed"));
    for list in CONTAINER_LISTS {
        for container in status.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            end(container);
        }
    }
    let time = json!(Timestamp::from_second(now.as_second()).unwrap_or(now).to_string());
    let disrupted = has_condition(&status, "DisruptionTarget");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return status };
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        if matches!(str_of(condition, "type"), "Ready" | "ContainersReady") && str_of(condition, "status") != "False" {
            condition.extend(object(json!({"status": "False", "reason": "PodFailed", "lastTransitionTime": time})));
        }
    }
    if !disrupted {
        let (reason, message) = cause.words();
        conditions.retain(|condition| condition.get("type") != Some(&json!("DisruptionTarget")));
        conditions.push(json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
                               "lastProbeTime": null, "lastTransitionTime": time}));
    }
    status
}

/// One that ran until nobody could see it any more.
fn end(container: &mut Value) {
    let unfinished = container.pointer("/state/terminated").is_none();
    let Some(container) = container.as_object_mut() else { return };
    if unfinished && has_run(&Value::Object(container.clone())) {
        let id = container.get("containerID").cloned().unwrap_or_default();
        let mut terminated = json!({"exitCode": 137, "reason": UNKNOWN_END,
                                    "message": "The container could not be located when the pod was terminated"});
        if !id.is_null() {
            terminated["containerID"] = id;
        }
        container.insert("state".to_owned(), json!({"terminated": terminated}));
    }
    for flag in ["ready", "started"] {
        if container.contains_key(flag) {
            container.insert(flag.to_owned(), json!(false));
        }
    }
}

fn object(value: Value) -> RawObject {
    match value {
        Value::Object(object) => object,
        _ => RawObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn status(container: Value) -> RawObject {
        object(json!({"phase": "Running", "containerStatuses": [container]}))
    }

    #[rstest]
    #[case(json!({"state": {"running": {}}}), true)]
    #[case(json!({"state": {"terminated": {"startedAt": "2026-01-01T00:00:00Z"}}}), true)]
    #[case(json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {}}}), true)]
    #[case(json!({"state": {"waiting": {}}, "restartCount": 1}), true)]
    #[case(json!({"state": {"terminated": {"exitCode": 137}}, "containerID": "containerd://1"}), true)]
    #[case(json!({"state": {"waiting": {"reason": "ContainerCreating"}}, "restartCount": 0}), false)]
    #[case(json!({"state": {"terminated": {"exitCode": 137, "startedAt": null}}, "containerID": ""}), false)]
    fn a_pod_has_started_when_a_container_of_it_ever_ran(#[case] container: Value, #[case] started: bool) {
        assert_eq!(had_started(&status(container.clone())), started);
        assert_eq!(
            had_started(&object(json!({"initContainerStatuses": [container]}))),
            started,
            "also an init container"
        );
    }

    #[test]
    fn a_rejected_pod_never_started() {
        assert!(!had_started(&object(json!({"phase": "Failed", "reason": "OutOfcpu"}))));
    }

    #[test]
    fn restarts_of_all_containers_are_counted_by_name() {
        let status = object(json!({
            "initContainerStatuses": [{"name": "setup", "restartCount": 2}],
            "containerStatuses": [{"name": "main", "restartCount": 3}, {"name": "idle", "restartCount": 0}, {"name": "odd"}],
        }));
        assert_eq!(restarts(&status), BTreeMap::from([("setup".to_owned(), 2), ("main".to_owned(), 3)]));
    }

    #[test]
    fn one_that_still_ran_when_its_node_died_ends_as_a_kubelet_would_say() {
        let last = object(json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                           {"type": "Initialized", "status": "True"}],
            "containerStatuses": [
                {"name": "main", "ready": true, "started": true, "containerID": "c://1", "state": {"running": {}}},
                {"name": "done", "ready": false, "state": {"terminated": {"exitCode": 0}}},
                {"name": "new", "ready": false, "state": {"waiting": {"reason": "ContainerCreating"}}}],
        }));
        let now = "2026-01-01T00:01:00.5Z".parse().unwrap();
        assert_eq!(
            Value::Object(failed(&last, Cause::NodeLost, now)),
            json!({
                "phase": "Failed",
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "PodFailed", "lastTransitionTime": "2026-01-01T00:01:00Z"},
                    {"type": "Initialized", "status": "True"},
                    {"type": "DisruptionTarget", "status": "True", "reason": "NodeLost", "lastProbeTime": null,
                     "message": "the node that the pod ran on was lost", "lastTransitionTime": "2026-01-01T00:01:00Z"}],
                "containerStatuses": [
                    {"name": "main", "ready": false, "started": false, "containerID": "c://1", "state": {"terminated": {
                        "exitCode": 137, "reason": "ContainerStatusUnknown", "containerID": "c://1",
                        "message": "The container could not be located when the pod was terminated"}}},
                    {"name": "done", "ready": false, "state": {"terminated": {"exitCode": 0}}},
                    {"name": "new", "ready": false, "state": {"waiting": {"reason": "ContainerCreating"}}}],
            })
        );
    }

    #[test]
    fn what_the_cluster_says_of_the_disruption_is_kept() {
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"});
        let last = object(json!({"phase": "Failed", "reason": "Preempting", "conditions": [condition]}));
        let failed = failed(&last, Cause::Deleted, Timestamp::UNIX_EPOCH);
        assert_eq!(failed["conditions"], json!([condition]));
        assert_eq!(failed["reason"], "Preempting");
    }
}
