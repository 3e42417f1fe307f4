//! The controller against an API server that keeps what it is given and notes every request.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use spillway_api::offloading::{VirtualNode, VirtualNodeConditionStatus as Status};
use spillway_operator::ObjectKey;
use spillway_operator::workers::Action;
use tokio::sync::watch;

use super::controller::Controller;

mod removal;

pub(super) const VIRTUAL_NODE: &str = "/apis/offloading.liqo.io/v1beta1/namespaces/tenant/virtualnodes/away";
pub(super) const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/tenant/deployments/vk-away";

#[derive(Default)]
pub(super) struct Server {
    pub(super) objects: BTreeMap<String, Value>,
    pub(super) bound_pods: Vec<Value>,
    /// What evictions are refused with.
    pub(super) refuses: Option<&'static str>,
    pub(super) requests: Vec<String>,
}

impl Server {
    fn answer(&mut self, method: &Method, path: &str, body: Value) -> (StatusCode, Value) {
        self.requests.push(format!("{method} {path}"));
        let missing = (
            StatusCode::NOT_FOUND,
            json!({"kind": "Status", "status": "Failure", "code": 404, "message": "not found", "reason": "NotFound"}),
        );
        if path == "/api/v1/pods" {
            let list = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": self.bound_pods});
            return (StatusCode::OK, list);
        }
        if path.ends_with("/eviction") {
            return match &self.refuses {
                Some(message) => (
                    StatusCode::TOO_MANY_REQUESTS,
                    json!({"kind": "Status", "status": "Failure", "code": 429, "message": message}),
                ),
                None => (StatusCode::CREATED, json!({"kind": "Status", "status": "Success", "code": 201})),
            };
        }
        match *method {
            Method::DELETE => match self.objects.remove(path) {
                Some(object) => (StatusCode::OK, object),
                None => missing,
            },
            Method::PATCH => {
                let object = self.objects.entry(path.trim_end_matches("/status").to_owned()).or_default();
                merge(object, &body);
                object["metadata"]["uid"] = json!("uid");
                (StatusCode::OK, object.clone())
            }
            _ => self.objects.get(path).map_or(missing, |object| (StatusCode::OK, object.clone())),
        }
    }
}

fn merge(object: &mut Value, patch: &Value) {
    match (object.as_object_mut(), patch.as_object()) {
        (Some(fields), Some(patch)) => {
            for (key, value) in patch {
                merge(fields.entry(key).or_insert(Value::Null), value);
            }
        }
        _ => *object = patch.clone(),
    }
}

pub(super) struct Bench {
    pub(super) server: Arc<Mutex<Server>>,
    pub(super) controller: Controller,
    key: ObjectKey,
}

impl Bench {
    pub(super) fn new() -> Self {
        let server = Arc::new(Mutex::new(Server::default()));
        let answering = server.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = answering.clone();
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                let body = serde_json::from_slice(&bytes).unwrap_or_default();
                let (status, answer) = server.lock().answer(&parts.method, parts.uri.path(), body);
                let answer = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, Infallible>(answer.expect("an answer"))
            }
        });
        let (_, home) = watch::channel(Some("home".into()));
        let client = Client::new(service, "default");
        let controller = Controller::new(client, home, ObjectKey::new("liqo", "default"));
        let options =
            json!({"createNode": true, "disableNetworkCheck": true, "containerImage": "i:1", "metricsEnabled": true});
        controller.options.insert(ObjectKey::new("liqo", "default"), serde_json::from_value(options).expect("options"));
        let bench = Self { server, controller, key: ObjectKey::new("tenant", "away") };
        let made = json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "VirtualNode",
            "metadata": {"name": "away", "namespace": "tenant", "uid": "uid", "resourceVersion": "1"},
            "spec": {"clusterID": "away-id", "kubeconfigSecretRef": {"name": "s"}},
        });
        bench.server.lock().objects.insert(VIRTUAL_NODE.to_owned(), made);
        bench
    }

    /// What the watch would do, then a reconcile; returns the requests that it took.
    pub(super) async fn look(&self) -> (Result<Action, String>, Vec<String>) {
        let live = self.server.lock().objects.get(VIRTUAL_NODE).cloned().expect("the VirtualNode");
        let live: VirtualNode = serde_json::from_value(live).expect("a VirtualNode");
        self.controller.virtual_nodes.insert(self.key.clone(), live);
        self.server.lock().requests.clear();
        let result = self.controller.reconcile(&self.key).await.map_err(|error| error.to_string());
        (result, std::mem::take(&mut self.server.lock().requests))
    }

    pub(super) fn change(&self, patch: Value) {
        let mut server = self.server.lock();
        merge(server.objects.get_mut(VIRTUAL_NODE).expect("the VirtualNode"), &patch);
    }

    pub(super) fn status(&self, condition: usize) -> (Status, String) {
        let live = self.server.lock().objects[VIRTUAL_NODE].clone();
        let live: VirtualNode = serde_json::from_value(live).expect("a VirtualNode");
        let condition = live.status.expect("a status").conditions.remove(condition);
        (condition.status, condition.reason.expect("a reason"))
    }
}

pub(super) fn writes(requests: &[String]) -> Vec<&str> {
    requests.iter().map(String::as_str).filter(|request| !request.starts_with("GET")).collect()
}

#[tokio::test]
async fn rights_come_before_the_virtual_kubelet_and_then_nothing_is_written() {
    let bench = Bench::new();
    let (result, requests) = bench.look().await;
    assert_eq!(result, Ok(Action::Await));
    let global = "spillway-virtual-kubelet:tenant:away";
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    assert_eq!(
        writes(&requests),
        [
            format!("PATCH {VIRTUAL_NODE}"),
            "PATCH /api/v1/namespaces/tenant/serviceaccounts/vk-away".to_owned(),
            format!("PATCH {rbac}/clusterrolebindings/{global}"),
            format!("PATCH {rbac}/namespaces/tenant/rolebindings/vk-away"),
            format!("PATCH {rbac}/namespaces/kube-node-lease/rolebindings/{global}"),
            format!("PATCH {DEPLOYMENT}"),
            format!("PATCH {VIRTUAL_NODE}/status"),
        ]
    );
    let (_, requests) = bench.look().await;
    assert_eq!(requests, Vec::<String>::new(), "steady state");
}

#[tokio::test]
async fn only_what_changed_is_written() {
    let bench = Bench::new();
    bench.look().await.0.unwrap();
    bench.change(json!({"spec": {"offloadingPatch": {"runtimeClassName": "kata"}}}));
    let (_, requests) = bench.look().await;
    let status = format!("PATCH {VIRTUAL_NODE}/status");
    assert_eq!(requests, [format!("PATCH {DEPLOYMENT}"), status]);

    let key = ObjectKey::new("tenant", "vk-away");
    let mut by_hand = (*bench.controller.deployments.index.get(&key).unwrap()).clone();
    by_hand.content = "scaled by hand".to_owned();
    bench.controller.deployments.index.insert(key, by_hand);
    let (_, requests) = bench.look().await;
    assert_eq!(requests, [format!("PATCH {DEPLOYMENT}")]);
}

#[tokio::test]
async fn a_deployment_of_somebody_else_is_left_alone_and_told_of() {
    let bench = Bench::new();
    let theirs =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vk-away", "uid": "theirs"}});
    bench.server.lock().objects.insert(DEPLOYMENT.to_owned(), theirs.clone());
    let (result, _) = bench.look().await;
    assert!(result.unwrap_err().contains("not made by Spillway"));
    assert_eq!(bench.server.lock().objects[DEPLOYMENT], theirs);
    assert_eq!(bench.status(0), (Status::None, "NameTaken".to_owned()));
}
