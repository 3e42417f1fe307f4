//! Container statuses on their way from one cluster to the other.

use serde_json::{Value, json};
use spillway_api::RawObject;
use spillway_api::offloading::ShadowPodStatus;

use super::array;
use crate::pods::digest::{LocalDigest, Restarts};

const THAT_RESTART: &[&str] = &["containerStatuses", "initContainerStatuses"];
const EPHEMERAL: &str = "ephemeralContainerStatuses";
const ALL: &[&str] = &["containerStatuses", "initContainerStatuses", EPHEMERAL];

/// A pod that was made anew counts on: its containers restarted, as far as the local pod is concerned. `remote` is the UID
/// of the pod that the status is of. As long as its provider has not said how many came before it, and also if it has lost
/// count, the number is the one that was shown before: it never shrinks.
pub fn add_restarts(status: &mut RawObject, shadow: &ShadowPodStatus, remote: Option<&str>, now: &RawObject) {
    let is_first = shadow.pod_uid.is_none() && shadow.recreations == 0;
    let is_known = is_first || remote.is_none_or(|uid| shadow.pod_uid.as_deref() == Some(uid));
    for list in THAT_RESTART {
        let before: Vec<_> = now.get(*list).and_then(Value::as_array).into_iter().flatten().collect();
        for container in array(status, list) {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            let shown = before.iter().find(|before| before.get("name").and_then(Value::as_str) == Some(name));
            let shown = shown.and_then(|before| before.get("restartCount")?.as_i64()).unwrap_or(0);
            let former = shadow.former_restarts.get(name).copied().unwrap_or(0) + shadow.recreations;
            let former = if is_known { former } else { 0 };
            if let Some(count) = container.get_mut("restartCount") {
                *count = json!(shown.max(count.as_i64().unwrap_or(0) + former));
            }
        }
    }
}

/// The API server lets no container that is not to be restarted come back from its end: an ephemeral one, or one of a pod
/// that says so. Of a pod that was made anew such a container is shown as it ended before, until it has ended again.
pub fn keep_ended(status: &mut RawObject, now: &RawObject, local: &LocalDigest) {
    for list in ALL {
        let before: Vec<_> = now.get(*list).and_then(Value::as_array).into_iter().flatten().collect();
        for container in array(status, list) {
            let old = before.iter().find(|old| old.get("name") == container.get("name"));
            if let Some(old) = old.filter(|old| is_final(list, old, local) && !is_terminated(container)) {
                *container = (*old).clone();
            }
        }
    }
}

fn is_terminated(container: &Value) -> bool {
    container.pointer("/state/terminated").is_some()
}

fn is_final(list: &str, container: &Value, local: &LocalDigest) -> bool {
    let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
    let stays = match local.restarts {
        _ if list == EPHEMERAL => true,
        // Sidecars among them.
        _ if local.own_rules.iter().any(|own| own == name) => false,
        Restarts::Always => false,
        Restarts::OnFailure => container.pointer("/state/terminated/exitCode") == Some(&json!(0)),
        Restarts::Never => true,
    };
    stays && is_terminated(container)
}

/// It takes no more traffic.
pub fn make_unready(status: &mut RawObject) {
    for list in THAT_RESTART {
        array(status, list).for_each(|container| container["ready"] = json!(false));
    }
}

/// Nothing of it runs any more, and it is waited for.
pub fn wait(status: &mut RawObject, reason: &str) {
    for list in ALL {
        for container in array(status, list).filter(|container| !is_terminated(container)) {
            container["ready"] = json!(false);
            container["started"] = json!(false);
            container["state"] = json!({"waiting": {"reason": reason}});
        }
    }
}

/// Whatever has not ended is said to have, as a kubelet does with what it can't find. True if all ended well.
pub fn end(status: &mut RawObject) -> bool {
    for list in ALL {
        for container in array(status, list).filter(|container| !is_terminated(container)) {
            container["ready"] = json!(false);
            container["started"] = json!(false);
            container["state"] = json!({"terminated": {
                "exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": null, "finishedAt": null,
                "message": "The container could not be located when the pod was terminated",
            }});
        }
    }
    let containers: Vec<_> = array(status, "containerStatuses").collect();
    let well = |container: &&mut Value| container.pointer("/state/terminated/exitCode") == Some(&json!(0));
    !containers.is_empty() && containers.iter().all(well)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn object(value: Value) -> RawObject {
        value.as_object().cloned().unwrap()
    }

    fn ended(code: i64) -> Value {
        json!({"terminated": {"exitCode": code}})
    }

    #[rstest]
    #[case::its_own(json!({}), Some("p1"), 0, 2)]
    #[case::made_anew(json!({"podUID": "p1", "recreations": 1, "formerRestarts": {"c": 4}}), Some("p1"), 5, 7)]
    #[case::of_an_outcome(json!({"podUID": "p1", "recreations": 1, "formerRestarts": {"c": 4}}), None, 0, 7)]
    #[case::those_before_it_are_not_counted_yet(json!({"podUID": "p0"}), Some("p1"), 5, 5)]
    #[case::it_is_counted_itself_already(json!({"recreations": 1, "formerRestarts": {"c": 2}}), Some("p1"), 2, 2)]
    #[case::its_provider_lost_count(json!({"podUID": "p1", "recreations": 1}), Some("p1"), 9, 9)]
    fn restarts_add_up_and_never_shrink(
        #[case] shadow: Value,
        #[case] remote: Option<&str>,
        #[case] shown: i64,
        #[case] expected: i64,
    ) {
        let mut status = object(json!({"containerStatuses": [{"name": "c", "restartCount": 2}]}));
        let now = object(json!({"containerStatuses": [{"name": "c", "restartCount": shown}]}));
        add_restarts(&mut status, &serde_json::from_value(shadow).unwrap(), remote, &now);
        assert_eq!(status["containerStatuses"][0]["restartCount"], expected);
    }

    #[rstest]
    #[case(Restarts::Always, 0, false)]
    #[case(Restarts::Always, 1, false)]
    #[case(Restarts::OnFailure, 0, true)]
    #[case(Restarts::OnFailure, 1, false)]
    #[case(Restarts::Never, 0, true)]
    #[case(Restarts::Never, 1, true)]
    fn what_may_not_come_back_is_shown_as_it_ended(#[case] restarts: Restarts, #[case] code: i64, #[case] kept: bool) {
        let local = LocalDigest { restarts, own_rules: vec!["sidecar".to_owned()], ..LocalDigest::default() };
        for list in ALL {
            let kept = kept || *list == EPHEMERAL;
            let now =
                object(json!({*list: [{"name": "c", "state": ended(code)}, {"name": "d", "state": {"running": {}}}]}));
            let fresh = json!([{"name": "c", "state": {"waiting": {}}}, {"name": "d", "state": {"waiting": {}}}]);
            let mut status = object(json!({*list: fresh}));
            keep_ended(&mut status, &now, &local);
            assert_eq!(status[*list][0]["state"] == ended(code), kept, "{list}");
            assert_eq!(status[*list][1]["state"], json!({"waiting": {}}), "one that had not ended is shown as it is");
            let mut again = object(json!({*list: [{"name": "c", "state": ended(7)}]}));
            keep_ended(&mut again, &now, &local);
            assert_eq!(again[*list][0]["state"], ended(7), "its new end replaces the old one");
        }
        let now = object(json!({"initContainerStatuses": [{"name": "sidecar", "state": ended(code)}]}));
        let mut back = object(json!({"initContainerStatuses": [{"name": "sidecar", "state": {"running": {}}}]}));
        keep_ended(&mut back, &now, &local);
        assert_eq!(
            back["initContainerStatuses"][0]["state"],
            json!({"running": {}}),
            "a sidecar restarts by its own rule"
        );
    }

    #[test]
    fn restarts_of_former_pods_and_recreations_are_added() {
        let shadow = ShadowPodStatus {
            recreations: 2,
            former_restarts: [("c".to_owned(), 5)].into(),
            ..ShadowPodStatus::default()
        };
        let mut status = object(json!({
            "containerStatuses": [{"name": "c", "restartCount": 1}, {"name": "d", "restartCount": 0}],
            "ephemeralContainerStatuses": [{"name": "e", "restartCount": 0}],
        }));
        add_restarts(&mut status, &shadow, None, &RawObject::new());
        let expected = json!({
            "containerStatuses": [{"name": "c", "restartCount": 8}, {"name": "d", "restartCount": 2}],
            "ephemeralContainerStatuses": [{"name": "e", "restartCount": 0}],
        });
        assert_eq!(Value::Object(status), expected);
    }

    #[rstest]
    #[case(json!([{"name": "c", "state": {"terminated": {"exitCode": 0}}}]), true)]
    #[case(json!([{"name": "c", "state": {"running": {}}}]), false)]
    #[case(json!([{"name": "c", "state": {"terminated": {"exitCode": 3}}}]), false)]
    #[case(json!([]), false)]
    fn an_end_that_nobody_saw_is_no_success(#[case] containers: Value, #[case] well: bool) {
        let mut status = object(json!({"containerStatuses": containers}));
        assert_eq!(end(&mut status), well);
        assert!(status["containerStatuses"].as_array().unwrap().iter().all(is_terminated));
    }
}
