use super::*;
use serde_json::{Value, json};
use spillway_api::node::NodeKind;

fn at(seconds: i64) -> Time {
    Time(jiff::Timestamp::from_second(seconds).expect("a time"))
}

fn virtual_node(spec: Value) -> VirtualNode {
    serde_json::from_value(json!({
        "apiVersion": "offloading.liqo.io/v1beta1", "kind": "VirtualNode",
        "metadata": {"name": "away", "namespace": "t"}, "spec": spec,
    }))
    .expect("a VirtualNode")
}

fn plain() -> VirtualNode {
    virtual_node(json!({"clusterID": "a", "kubeconfigSecretRef": {"name": "kubeconfig-a"}}))
}

fn node(ready: bool) -> NodeSeen {
    NodeSeen {
        uid: "n".to_owned(),
        kind: NodeKind::Virtual { cluster_id: Some("a".to_owned()) },
        ready,
        message: Some("the peer does not answer".to_owned()),
        draining: false,
    }
}

fn observed<'a>(virtual_node: &'a VirtualNode, stage: Stage) -> Observation<'a> {
    Observation { virtual_node, options: None, rollout: None, pods: &[], node: None, stage }
}

fn told(observation: &Observation<'_>) -> [(Status, String, String); 2] {
    let status = forge(observation, at(1));
    assert_eq!(status.conditions.len(), 2, "one of each type");
    [0, 1].map(|i| {
        let condition = &status.conditions[i];
        (condition.status, condition.reason.clone().expect("a reason"), condition.message.clone().expect("a message"))
    })
}

#[test]
fn running_only_when_pods_are_available_and_the_node_is_ready() {
    let virtual_node = plain();
    let mut seen = observed(&virtual_node, Stage::Made);
    let [kubelet, of_node] = told(&seen);
    assert_eq!((kubelet.0, of_node.0), (Status::Creating, Status::Creating));

    let rollout = Rollout { available: 1, trouble: None };
    seen.rollout = Some(&rollout);
    let not_ready = node(false);
    seen.node = Some(&not_ready);
    let [kubelet, of_node] = told(&seen);
    assert_eq!((kubelet.0, of_node.0), (Status::Running, Status::Creating));
    assert_eq!(of_node.2, "the peer does not answer");

    let ready = node(true);
    seen.node = Some(&ready);
    assert_eq!(told(&seen)[1].0, Status::Running);
}

#[test]
fn the_message_says_what_is_missing() {
    let virtual_node = plain();
    let mut seen = observed(
        &virtual_node,
        Stage::Blocked { reason: "VkOptionsTemplateNotFound", message: "no template".to_owned() },
    );
    let [kubelet, of_node] = told(&seen);
    assert_eq!(kubelet, (Status::None, "VkOptionsTemplateNotFound".to_owned(), "no template".to_owned()));
    assert_eq!(of_node.1, "NoVirtualKubelet");

    seen.stage = Stage::Made;
    let pods = [KubeletPod {
        virtual_node: spillway_operator::ObjectKey::new("t", "away"),
        name: "vk-away-1".to_owned(),
        waits: Some("ContainerCreating".to_owned()),
    }];
    let rollout = Rollout::default();
    seen.rollout = Some(&rollout);
    seen.pods = &pods;
    let message = &told(&seen)[0].2;
    assert!(message.contains("vk-away-1") && message.contains("'kubeconfig-a'"), "{message}");
}

#[test]
fn a_working_virtual_kubelet_stays_running_when_a_later_change_is_refused() {
    let virtual_node = plain();
    let rollout = Rollout { available: 1, trouble: None };
    let mut seen = observed(&virtual_node, Stage::Blocked { reason: "Refused", message: "quota".to_owned() });
    seen.rollout = Some(&rollout);
    let [kubelet, _] = told(&seen);
    assert_eq!((kubelet.0, kubelet.1.as_str()), (Status::Running, "Refused"));
}

#[test]
fn draining_tells_how_many_who_refuses_and_what_is_stuck() {
    let virtual_node = plain();
    let (rollout, ready) = (Rollout { available: 1, trouble: None }, node(true));
    let progress = Progress { pods: 5, leaving: 1, refused: 4, named: vec!["shop/web: budget".to_owned()] };
    let mut seen = observed(&virtual_node, Stage::Draining(Progress { pods: 5, leaving: 1, ..Progress::default() }));
    (seen.rollout, seen.node) = (Some(&rollout), Some(&ready));
    let expected = |reason: &str, message: &str| (Status::Draining, reason.to_owned(), message.to_owned());
    assert_eq!(told(&seen)[1], expected("PodsBound", "pods left on this node: 5, terminating: 1"));

    seen.stage = Stage::Draining(progress);
    let message =
        "pods left on this node: 5, terminating: 1; evictions refused: 4 (shop/web: budget, …); they are tried again";
    assert_eq!(told(&seen)[1], expected("EvictionRefused", message));

    let not_ready = node(false);
    seen.node = Some(&not_ready);
    let of_node = &told(&seen)[1];
    assert_eq!(of_node.1, "RemoteUnreachable");
    assert!(of_node.2.ends_with("but the peer does not answer"), "{}", of_node.2);

    seen.rollout = None;
    let of_node = &told(&seen)[1];
    assert!(of_node.2.contains("the virtual-kubelet does not run"), "{}", of_node.2);
}

#[test]
fn a_node_that_is_taken_away_is_deleting_until_all_its_pods_are_gone() {
    let virtual_node = plain();
    let seen = observed(&virtual_node, Stage::EndingNode(Progress { pods: 2, ..Progress::default() }));
    let of_node = &told(&seen)[1];
    assert_eq!(of_node.0, Status::Deleting, "also without a Node: the virtual-kubelet must not put it back");
    assert!(of_node.2.contains(": 2"), "{}", of_node.2);
}

#[test]
fn no_node_where_none_is_wanted() {
    let virtual_node = virtual_node(json!({"clusterID": "a", "createNode": false}));
    let options: VkOptionsTemplateSpec = serde_json::from_value(json!({
        "createNode": true, "disableNetworkCheck": true, "containerImage": "i", "metricsEnabled": true,
        "labelsNotReflected": ["secret"],
    }))
    .unwrap();
    let mut seen = observed(&virtual_node, Stage::Made);
    seen.options = Some(&options);
    assert_eq!(told(&seen)[1].0, Status::None);
    let status = forge(&seen, at(1));
    assert_eq!(status.effective_create_node, Some(false));
    assert_eq!(status.effective_disable_network_check, Some(true));
    assert_eq!(status.effective_offloading_patch.unwrap().labels_not_reflected, ["secret"]);
}

#[test]
fn the_time_moves_only_with_the_status() {
    let mut virtual_node = plain();
    let first = forge(&observed(&virtual_node, Stage::Made), at(1));
    virtual_node.status = Some(first.clone());
    let mut seen = observed(&virtual_node, Stage::Made);
    assert_eq!(forge(&seen, at(2)), first, "nothing changed, nothing to write");
    let rollout = Rollout { available: 0, trouble: Some("quota exceeded".to_owned()) };
    seen.rollout = Some(&rollout);
    let second = forge(&seen, at(3));
    assert_eq!(second.conditions[0].message.as_deref(), Some("quota exceeded"));
    assert_eq!(second.conditions[0].last_transition_time, Some(at(1)));
    let rollout = Rollout { available: 1, trouble: None };
    seen.rollout = Some(&rollout);
    assert_eq!(forge(&seen, at(4)).conditions[0].last_transition_time, Some(at(4)));
}
