use super::*;
use crate::node::forge::tests::{at, facts, made, virtual_node};
use rstest::rstest;

fn away() -> Health {
    Health::Away { reason: "RemoteAPIServerUnreachable", message: "cut".into() }
}

fn now(health: &Health, before: &Node) -> RawObject {
    status(&virtual_node(), &facts(), health, Some(before), at("2026-01-01T01:00:00Z"))
}

#[test]
fn an_unreachable_remote_makes_it_unready_with_a_reason() {
    let ready = &now(&away(), &made())["conditions"][0];
    assert_eq!(
        (&ready["status"], &ready["reason"], &ready["message"]),
        (&json!("False"), &json!("RemoteAPIServerUnreachable"), &json!("cut"))
    );
}

#[test]
fn the_time_of_a_transition_changes_only_with_the_status() {
    let first = made();
    let same = now(&Health::Reachable, &first);
    assert_eq!(same["conditions"][0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
    assert_eq!(same["conditions"][0]["lastHeartbeatTime"], "2026-01-01T01:00:00Z");
    assert!(!differs(&same, &first), "a heartbeat alone is no difference");
    let changed = now(&away(), &first);
    assert_eq!(changed["conditions"][0]["lastTransitionTime"], "2026-01-01T01:00:00Z");
    assert!(differs(&changed, &first));
}

#[rstest]
#[case::healthy("True", "KubeletReady")]
#[case::unhealthy("False", "RemoteAPIServerUnreachable")]
#[case::given_up_by_the_node_controller("Unknown", "NodeStatusUnknown")]
fn while_it_is_undecided_readiness_stays_as_it_is(#[case] status: &str, #[case] reason: &str) {
    let mut shown = made();
    let ready = &mut shown.status.as_mut().unwrap().conditions.as_mut().unwrap()[0];
    (ready.status, ready.reason) = (status.into(), Some(reason.into()));
    let wanted = now(&Health::Undecided, &shown);
    assert!(!differs(&wanted, &shown));
    let patch = patch(wanted, &shown, &Health::Undecided);
    let kinds: Vec<_> = patch["status"]["conditions"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["MemoryPressure", "DiskPressure", "PIDPressure"], "not even written again");
}

#[test]
fn one_that_was_never_reached_begins_unready() {
    let first = status(&virtual_node(), &facts(), &Health::Undecided, None, at("2026-01-01T00:00:00Z"));
    assert_eq!(first["conditions"][0]["status"], "False");
}

#[test]
fn a_resource_that_is_no_longer_offered_is_erased() {
    let first = made();
    let mut smaller = virtual_node();
    smaller.resource_quota.as_mut().unwrap().hard.remove("example.com/gpu");
    let wanted = status(&smaller, &facts(), &Health::Reachable, Some(&first), at("2026-01-01T00:00:00Z"));
    assert!(differs(&wanted, &first));
    let patch = patch(wanted, &first, &Health::Reachable);
    for field in ["capacity", "allocatable"] {
        assert_eq!(patch["status"][field], json!({"cpu": "20", "memory": "8Gi", "example.com/gpu": null}));
    }
}

#[test]
fn the_version_is_shown_once_known_and_kept_while_it_is_not() {
    let first = made();
    let unknown = Facts { version: String::new(), ..facts() };
    let wanted = status(&virtual_node(), &unknown, &Health::Undecided, Some(&first), at("2026-01-01T00:00:00Z"));
    assert_eq!(wanted["nodeInfo"]["kubeletVersion"], "v1.34.4");
    let upgraded = Facts { version: "v1.35.0".into(), ..facts() };
    let wanted = status(&virtual_node(), &upgraded, &Health::Reachable, Some(&first), at("2026-01-01T00:00:00Z"));
    assert!(differs(&wanted, &first));
    assert_eq!(wanted["nodeInfo"]["kubeletVersion"], "v1.35.0");
}
