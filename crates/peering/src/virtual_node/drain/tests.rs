use super::*;
use rstest::rstest;
use serde_json::{Value, json};

fn bound(name: &str, role: Role, leaving: bool) -> Bound {
    Bound { key: ObjectKey::new("shop", name), uid: name.to_owned(), role, leaving }
}

fn of(metadata: Value, tolerations: Value) -> Option<Bound> {
    let pod = json!({"metadata": metadata, "spec": {"containers": [], "tolerations": tolerations}});
    Bound::of(&serde_json::from_value(pod).unwrap())
}

#[test]
fn pods_are_told_apart_by_who_makes_them() {
    let owned = |kind: &str| {
        json!({"name": "p", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": true}]})
    };
    let role = |metadata, tolerations| of(metadata, tolerations).map(|pod| pod.role);
    assert_eq!(role(json!({"name": "p"}), json!([])), Some(Role::Moves));
    assert_eq!(role(owned("ReplicaSet"), json!([{"operator": "Exists"}])), Some(Role::Moves));
    assert_eq!(role(owned("DaemonSet"), json!([])), Some(Role::OfNode));
    assert_eq!(role(owned("DaemonSet"), json!([{"operator": "Exists"}])), Some(Role::ComesBack));
    assert_eq!(of(json!({"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}), json!([])), None);
}

#[test]
fn others_leave_first_then_those_of_the_node_then_the_node_then_those_that_come_back() {
    let (moves, leaving) = (bound("m", Role::Moves, false), bound("l", Role::Moves, true));
    let (of_node, back) = (bound("d", Role::OfNode, false), bound("b", Role::ComesBack, false));
    let all = [moves.clone(), leaving.clone(), of_node.clone(), back.clone()];
    assert_eq!(next(&all, true), Next::Evict(vec![moves]));
    assert_eq!(next(&[leaving.clone(), of_node.clone()], true), Next::Evict(vec![]), "waited for");
    assert_eq!(next(&[of_node.clone(), back.clone()], true), Next::Delete(vec![of_node]));
    assert_eq!(next(&[bound("d", Role::OfNode, true), back.clone()], true), Next::Delete(vec![]), "waited for");
    assert_eq!(next(std::slice::from_ref(&back), true), Next::NodeMayGo { pods: 1 });
    assert_eq!(next(std::slice::from_ref(&back), false), Next::Delete(vec![back]), "nobody puts it back any more");
    assert_eq!(next(&[], true), Next::NodeMayGo { pods: 0 });
    assert_eq!(next(&[], false), Next::NodeMayGo { pods: 0 });
}

#[test]
fn refused_evictions_are_tried_ever_less_often_and_a_success_resets_that() {
    let (mut drain, mut now) = (Drain::default(), Instant::now());
    let refused = || vec![(ObjectKey::new("shop", "web"), "budget".to_owned())];
    let mut pauses = Vec::new();
    for _ in 0..6 {
        assert!(drain.may_evict(now));
        drain.tried(1, refused(), now);
        let pause = (0..60).find(|seconds| drain.may_evict(now + Duration::from_secs(*seconds))).unwrap();
        pauses.push(pause);
        now += Duration::from_secs(pause);
    }
    assert_eq!(pauses, [4, 8, 16, 30, 30, 30]);
    drain.tried(2, refused(), now);
    assert!(drain.may_evict(now + LOOK_AGAIN), "one of two went");
    drain.tried(1, vec![], now);
    assert!(drain.may_evict(now));
}

#[test]
fn a_look_is_not_repeated_before_its_time() {
    let (mut drain, now) = (Drain::default(), Instant::now());
    assert_eq!(drain.rests(now), None);
    drain.rest(Duration::from_secs(2), now);
    assert_eq!(drain.rests(now + Duration::from_millis(1500)), Some(Duration::from_millis(500)));
    assert_eq!(drain.rests(now + Duration::from_secs(2)), None);
}

#[test]
fn the_first_few_that_stay_are_named() {
    let mut drain = Drain::default();
    let names = ["a", "b", "c", "d", "gone", "leaving"];
    drain.tried(6, names.map(|name| (ObjectKey::new("shop", name), "budget".to_owned())).into(), Instant::now());
    let mut pods: Vec<_> = names[..4].iter().map(|name| bound(name, Role::Moves, false)).collect();
    pods.push(bound("leaving", Role::Moves, true));
    let progress = drain.progress(&pods);
    assert_eq!((progress.pods, progress.leaving, progress.refused), (5, 1, 4));
    assert_eq!(progress.named, ["shop/a: budget", "shop/b: budget", "shop/c: budget"]);
}

#[rstest]
#[case(0, 2)]
#[case(199, 2)]
#[case(1000, 7)]
#[case(100_000, 30)]
fn many_pods_are_listed_less_often(#[case] pods: usize, #[case] seconds: u64) {
    assert_eq!(interval(pods), Duration::from_secs(seconds));
}

#[test]
fn a_refusal_names_the_budget() {
    let status = serde_json::from_value(json!({
        "kind": "Status", "status": "Failure", "code": 429, "reason": "TooManyRequests",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": {"causes": [{"reason": "DisruptionBudget",
                                "message": "The disruption budget web needs 1 healthy pods and has 1 currently"}]},
    }))
    .unwrap();
    assert_eq!(
        refusal(&status),
        "Cannot evict pod as it would violate the pod's disruption budget. \
         The disruption budget web needs 1 healthy pods and has 1 currently"
    );
}
