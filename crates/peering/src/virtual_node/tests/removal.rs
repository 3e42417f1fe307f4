//! How a Node, its pods and its virtual-kubelet are taken back.

use serde_json::{Value, json};
use spillway_api::offloading::VirtualNodeConditionStatus as Status;
use spillway_operator::ObjectKey;
use spillway_operator::workers::Action;

use super::super::observe::NodeSeen;
use super::{Bench, DEPLOYMENT, VIRTUAL_NODE, writes};

const NODE: &str = "/api/v1/nodes/away";

fn virtual_node() -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "away", "uid": "node",
        "labels": {"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "away-id"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
}

fn bound(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "shop", "uid": name}})
}

fn of_daemon_set(name: &str, tolerations: Value) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true});
    json!({"metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]},
           "spec": {"containers": [], "tolerations": tolerations}})
}

impl Bench {
    fn add_node(&self, node: Value) {
        let seen = NodeSeen::of(&serde_json::from_value(node.clone()).unwrap());
        self.controller.nodes.insert(ObjectKey::new("", "away"), seen);
        self.server.lock().objects.insert(NODE.to_owned(), node);
    }

    /// The time of the next look has come.
    fn later(&self) {
        self.controller.drains.lock().clear();
    }

    fn delete(&self) {
        self.change(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    }

    fn forget_deployment(&self) {
        self.controller.deployments.index.remove(&ObjectKey::new("tenant", "vk-away"));
    }

    fn message(&self) -> String {
        self.server.lock().objects[VIRTUAL_NODE]["status"]["conditions"][1]["message"].as_str().unwrap().to_owned()
    }
}

async fn made() -> Bench {
    let bench = Bench::new();
    bench.look().await.0.unwrap();
    bench.add_node(virtual_node());
    bench.look().await.0.unwrap();
    bench
}

#[tokio::test]
async fn deletion_drains_then_takes_everything_back_in_order() {
    let bench = made().await;
    bench.server.lock().bound_pods = vec![bound("work"), of_daemon_set("daemon", json!([]))];
    bench.delete();

    let (result, requests) = bench.look().await;
    assert!(matches!(result, Ok(Action::LookAgain(_))));
    let eviction = "POST /api/v1/namespaces/shop/pods/work/eviction";
    assert_eq!(
        writes(&requests),
        [format!("PATCH {NODE}").as_str(), eviction, &format!("PATCH {VIRTUAL_NODE}/status")]
    );
    let spec = bench.server.lock().objects[NODE]["spec"].clone();
    assert_eq!((&spec["unschedulable"], &spec["taints"][0]["effect"]), (&json!(true), &json!("NoSchedule")));
    assert_eq!(bench.status(1), (Status::Draining, "RemoteUnreachable".to_owned()), "no virtual-kubelet runs here");

    bench.server.lock().bound_pods.remove(0);
    assert_eq!(bench.look().await.1, Vec::<String>::new(), "not before its time");
    bench.later();
    let (_, requests) = bench.look().await;
    assert_eq!(writes(&requests)[0], "DELETE /api/v1/namespaces/shop/pods/daemon");

    bench.server.lock().bound_pods.clear();
    bench.later();
    let (result, requests) = bench.look().await;
    assert_eq!(result, Ok(Action::Await), "its own event tells that the virtual-kubelet was told");
    assert_eq!(writes(&requests), [format!("PATCH {VIRTUAL_NODE}/status")]);
    assert_eq!(bench.status(1).0, Status::Deleting);
    let (_, requests) = bench.look().await;
    assert_eq!(writes(&requests), [format!("DELETE {NODE}")]);

    bench.controller.nodes.remove(&ObjectKey::new("", "away"));
    let (_, requests) = bench.look().await;
    assert_eq!(writes(&requests)[0], format!("DELETE {DEPLOYMENT}"));
    assert_eq!(bench.status(0).0, Status::Deleting);
    bench.forget_deployment();

    let (_, requests) = bench.look().await;
    assert_eq!(writes(&requests).len(), 4, "two bindings, the third, the account: {requests:?}");
    for children in
        [&bench.controller.service_accounts, &bench.controller.role_bindings, &bench.controller.cluster_bindings]
    {
        for key in children.index.keys() {
            children.index.remove(&key);
        }
    }
    let (result, requests) = bench.look().await;
    assert_eq!(result, Ok(Action::Await));
    assert_eq!(writes(&requests), [format!("PATCH {VIRTUAL_NODE}")], "the finalizer comes last");
    assert_eq!(bench.server.lock().objects[VIRTUAL_NODE]["metadata"]["finalizers"], json!([]));
}

#[tokio::test]
async fn a_refused_eviction_is_shown_and_not_repeated_at_once() {
    let bench = made().await;
    bench.server.lock().bound_pods = vec![bound("work")];
    bench.server.lock().refuses = Some("Cannot evict pod as it would violate the pod's disruption budget.");
    bench.delete();
    bench.look().await.0.unwrap();
    assert!(bench.message().contains("shop/work: Cannot evict"), "{}", bench.message());
    let (result, requests) = bench.look().await;
    assert!(matches!(result, Ok(Action::LookAgain(_))));
    assert_eq!(requests, Vec::<String>::new(), "it waits");
}

#[tokio::test]
async fn a_pod_that_comes_back_goes_after_the_node_but_only_while_the_remote_can_be_reached() {
    let bench = made().await;
    bench.server.lock().bound_pods = vec![of_daemon_set("daemon", json!([{"operator": "Exists"}]))];
    let mut unready = virtual_node();
    unready["status"]["conditions"][0]["status"] = json!("False");
    bench.add_node(unready);
    bench.delete();
    for _ in 0..3 {
        bench.later();
        let (_, requests) = bench.look().await;
        assert!(!requests.iter().any(|request| request.starts_with("DELETE")), "{requests:?}");
    }
    bench.add_node(virtual_node());
    let mut all = Vec::new();
    for _ in 0..4 {
        bench.later();
        all.extend(bench.look().await.1);
    }
    let deletes: Vec<_> = all.iter().filter(|request| request.starts_with("DELETE")).collect();
    assert_eq!(deletes[..2], [&format!("DELETE {NODE}"), "DELETE /api/v1/namespaces/shop/pods/daemon"]);
    assert!(!all.iter().any(|request| request.contains("deployments")), "the virtual-kubelet is still needed");
    assert_eq!(bench.status(1).0, Status::Deleting);
}

#[tokio::test]
async fn a_node_that_is_not_to_be_made_any_more_is_drained_and_wanted_again_is_opened() {
    let bench = made().await;
    bench.server.lock().bound_pods = vec![bound("work")];
    bench.change(json!({"spec": {"createNode": false}}));
    let (_, requests) = bench.look().await;
    assert!(!writes(&requests).contains(&format!("PATCH {DEPLOYMENT}").as_str()), "it keeps the Node for now");
    assert_eq!(bench.status(1).0, Status::Draining);
    bench.add_node({
        let mut closed = virtual_node();
        closed["spec"] = bench.server.lock().objects[NODE]["spec"].clone();
        closed
    });
    bench.change(json!({"spec": {"createNode": true}}));
    bench.look().await.0.unwrap();
    assert_eq!(bench.server.lock().objects[NODE]["spec"], json!({"unschedulable": false, "taints": []}));

    bench.change(json!({"spec": {"createNode": false}}));
    bench.server.lock().bound_pods.clear();
    for _ in 0..3 {
        bench.later();
        bench.look().await.0.unwrap();
    }
    assert!(!bench.server.lock().objects.contains_key(NODE));
    bench.controller.nodes.remove(&ObjectKey::new("", "away"));
    let (_, requests) = bench.look().await;
    assert!(writes(&requests).contains(&format!("PATCH {DEPLOYMENT}").as_str()), "now without a Node: {requests:?}");
    assert_eq!(bench.status(1), (Status::None, "NotWanted".to_owned()));
}

#[tokio::test]
async fn a_real_node_of_the_same_name_is_never_touched() {
    let real = || json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "away", "uid": "real"}});
    let bench = Bench::new();
    bench.add_node(real());
    bench.server.lock().bound_pods = vec![bound("not-ours")];
    let (result, requests) = bench.look().await;
    assert_eq!(result, Ok(Action::Await));
    assert_eq!(writes(&requests), [format!("PATCH {VIRTUAL_NODE}/status")], "nothing is made");
    assert_eq!(bench.status(0), (Status::None, "NodeNameTaken".to_owned()));

    bench.controller.nodes.remove(&ObjectKey::new("", "away"));
    bench.server.lock().objects.remove(NODE);
    bench.look().await.0.unwrap();
    assert!(bench.server.lock().objects.contains_key(DEPLOYMENT), "the name is free");

    bench.add_node(real());
    bench.delete();
    for _ in 0..3 {
        let (_, requests) = bench.look().await;
        assert!(
            !requests
                .iter()
                .any(|request| request.contains("eviction") || request.ends_with(NODE) && !request.starts_with("GET"))
        );
        bench.forget_deployment();
    }
    assert_eq!(bench.server.lock().objects[NODE], real());
}
