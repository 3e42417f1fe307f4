//! Container statuses on their way from one cluster to the other.

use serde_json::{Value, json};
use spillway_api::RawObject;
use spillway_api::offloading::ShadowPodStatus;

use super::array;
use crate::pods::digest::Restarts;

const THAT_RESTART: &[&str] = &["containerStatuses", "initContainerStatuses"];
const ALL: &[&str] = &["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// A pod that was made anew counts on: its containers restarted, as far as the local pod is concerned.
pub fn add_restarts(status: &mut RawObject, shadow: &ShadowPodStatus) {
    for list in THAT_RESTART {
        for container in array(status, list) {
            let former =
                container.get("name").and_then(Value::as_str).and_then(|name| shadow.former_restarts.get(name));
            let former = former.copied().unwrap_or(0) + shadow.recreations;
            if let Some(count) = container.get_mut("restartCount") {
                *count = json!(count.as_i64().unwrap_or(0) + former);
            }
        }
    }
}

/// The API server lets no container of a pod that is not to be restarted come back from its end. Of a pod that was made
/// anew such a container is shown as it ended before, until it has ended again.
pub fn keep_ended(status: &mut RawObject, now: &RawObject, restarts: &Restarts) {
    if *restarts == Restarts::Always {
        return;
    }
    for list in THAT_RESTART {
        let before: Vec<_> = now.get(*list).and_then(Value::as_array).into_iter().flatten().collect();
        for container in array(status, list) {
            let old = before.iter().find(|old| old.get("name") == container.get("name"));
            if let Some(old) = old.filter(|old| is_final(old, restarts) && !is_terminated(container)) {
                *container = (*old).clone();
            }
        }
    }
}

fn is_terminated(container: &Value) -> bool {
    container.pointer("/state/terminated").is_some()
}

fn is_final(container: &Value, restarts: &Restarts) -> bool {
    let failed = container.pointer("/state/terminated/exitCode").and_then(Value::as_i64).is_some_and(|code| code != 0);
    is_terminated(container) && !(failed && *restarts == Restarts::OnFailure)
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
    #[case(Restarts::Always, 0, false)]
    #[case(Restarts::Always, 1, false)]
    #[case(Restarts::OnFailure, 0, true)]
    #[case(Restarts::OnFailure, 1, false)]
    #[case(Restarts::Never, 0, true)]
    #[case(Restarts::Never, 1, true)]
    fn what_may_not_come_back_is_shown_as_it_ended(#[case] restarts: Restarts, #[case] code: i64, #[case] kept: bool) {
        for list in THAT_RESTART {
            let now =
                object(json!({*list: [{"name": "c", "state": ended(code)}, {"name": "d", "state": {"running": {}}}]}));
            let fresh = json!([{"name": "c", "state": {"waiting": {}}}, {"name": "d", "state": {"waiting": {}}}]);
            let mut status = object(json!({*list: fresh}));
            keep_ended(&mut status, &now, &restarts);
            assert_eq!(status[*list][0]["state"] == ended(code), kept);
            assert_eq!(status[*list][1]["state"], json!({"waiting": {}}), "one that had not ended is shown as it is");
            let mut again = object(json!({*list: [{"name": "c", "state": ended(7)}]}));
            keep_ended(&mut again, &now, &restarts);
            assert_eq!(again[*list][0]["state"], ended(7), "its new end replaces the old one");
        }
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
        add_restarts(&mut status, &shadow);
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
