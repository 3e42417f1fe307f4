use super::*;
use crate::daemonsets::{KeepOffVirtualNodes, PATH};
use axum::body::Body;
use http::Request as HttpRequest;
use http_body_util::BodyExt;
use rstest::rstest;
use serde_json::{Value, json};
use spillway_operator::metrics::Metrics;
use tower::ServiceExt;

fn review(object: Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u1", "operation": "CREATE", "dryRun": false, "name": "agent", "namespace": "apps",
        "kind": {"group": "apps", "version": "v1", "kind": "DaemonSet"},
        "resource": {"group": "apps", "version": "v1", "resource": "daemonsets"},
        "userInfo": {"username": "admin"}, "object": object, "oldObject": null,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }})
}

fn agent() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "creationTimestamp": null},
           "spec": {"template": {"metadata": {"creationTimestamp": null}, "spec": {"containers": []}}}})
}

async fn post(path: &str, body: impl Into<Body>) -> (StatusCode, String, String) {
    let metrics = Metrics::default();
    let router = router(vec![Arc::new(KeepOffVirtualNodes)], &ReviewMetrics::new(&metrics).unwrap());
    let request = HttpRequest::post(path).header("Content-Type", "application/json").body(body.into()).unwrap();
    let answer = router.oneshot(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap(), metrics.render())
}

#[tokio::test]
async fn a_changed_object_is_answered_with_its_patch() {
    let (status, body, metrics) = post(PATH, review(agent()).to_string()).await;
    assert_eq!(status, StatusCode::OK);
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&answer["apiVersion"], &answer["kind"]), (&json!("admission.k8s.io/v1"), &json!("AdmissionReview")));
    let response = &answer["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("u1"), &json!(true)));
    assert_eq!(response["patchType"], "JSONPatch");
    let counted = format!(r#"spillway_admission_reviews_total{{outcome="changed",webhook="{PATH}"}} 1"#);
    assert!(metrics.contains(&counted), "{metrics}");
}

#[rstest]
#[case::selects_virtual_nodes("/spec/template/spec/nodeSelector", json!({"liqo.io/type": "virtual-node"}))]
#[case::being_deleted("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))]
#[tokio::test]
async fn what_needs_no_change_passes_without_a_patch(#[case] field: &str, #[case] value: Value) {
    let mut object = agent();
    let (parent, key) = field.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key] = value;
    let (status, body, _) = post(PATH, review(object).to_string()).await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &answer["response"]["allowed"]), (StatusCode::OK, &json!(true)));
    assert_eq!(answer["response"].get("patch"), None);
}

#[rstest]
#[case::nothing("", "not an AdmissionReview")]
#[case::no_json("{", "not an AdmissionReview")]
#[case::no_text("\u{0}\u{1}", "not an AdmissionReview")]
#[case::another_kind(r#"{"apiVersion": "v1", "kind": "Pod"}"#, "a Pod of v1")]
#[case::another_version(r#"{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}"#, "v1beta1")]
#[case::no_request(r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#, "no request")]
#[case::request_of_nothing(
    r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}}"#,
    "missing field"
)]
#[tokio::test]
async fn what_is_no_review_is_refused_with_the_reason(#[case] body: &'static str, #[case] said: &str) {
    let (status, answer, metrics) = post(PATH, body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(answer.contains(said), "{answer}");
    assert!(metrics.contains(r#"outcome="malformed""#));
}

#[tokio::test]
async fn a_body_beyond_the_limit_a_missing_path_and_a_slow_client_are_refused() {
    assert_eq!(post(PATH, vec![b' '; LARGEST_BODY + 1]).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(post("/mutate/nothing", "").await.0, StatusCode::NOT_FOUND);
    tokio::time::pause();
    let never = Body::from_stream(futures::stream::pending::<std::io::Result<Bytes>>());
    assert_eq!(post(PATH, never).await.0, StatusCode::SERVICE_UNAVAILABLE);
}
