//! A provider that is overloaded or broken: slower, not lost, and visible.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use spillway_e2e::audit::Audit;
use spillway_e2e::{Namespace, by_hand, wait};

use super::refusals::{no_storm, visible, works};
use crate::pods::{SERVE, pod};
use crate::{offloaded, testbed};

/// Makes pods, so many at once every second, until one of them is answered with this code: when the API server takes a new
/// configuration up, it tells nobody. Gives how many were made.
async fn until_answered(namespace: &Namespace, attempt: &str, code: i64, at_once: usize) -> Result<usize> {
    let audit = Audit::from_now(testbed(), "away")?;
    let begun = Instant::now();
    for made in (at_once..).step_by(at_once) {
        let pods = (made - at_once + 1..=made).map(|number| pod(&format!("web-{number}"), SERVE));
        let create = async |pod| namespace.home_pods().create(&PostParams::default(), &pod).await;
        try_join_all(pods.map(create)).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let requests = audit.requests()?;
        let mut ours =
            requests.iter().filter(|request| request.namespace == namespace.twin && request.what() == attempt);
        if ours.any(|request| request.code == code) {
            return Ok(made);
        }
        ensure!(begun.elapsed() < wait::DEADLINE, "'{attempt}' was never answered with {code}");
    }
    unreachable!()
}

#[tokio::test]
async fn too_many_requests_slow_a_pod_down_and_lose_nothing() -> Result<()> {
    offloaded(async |namespace| {
        let (away, name) = (&namespace.away, namespace.name.as_str());
        let closed = json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}});
        let level = json!({"metadata": {"name": name}, "spec": closed});
        by_hand::apply_cluster::<PriorityLevelConfiguration>(away, level).await?;
        let consumer = json!({"kind": "Group", "group": {"name": namespace.peering.home_id}});
        let what = json!({"verbs": ["create"], "apiGroups": ["offloading.liqo.io"], "resources": ["shadowpods"], "namespaces": [namespace.twin]});
        let schema = json!({"metadata": {"name": name}, "spec": {
            "priorityLevelConfiguration": {"name": name}, "matchingPrecedence": 2,
            "rules": [{"subjects": [consumer], "resourceRules": [what]}]}});
        by_hand::apply_cluster::<FlowSchema>(away, schema).await?;

        // Also a level that is closed lets one request pass when there is no other.
        let made = until_answered(&namespace, "create shadowpods", 429, 10).await?;
        no_storm(&namespace, "create shadowpods", made).await?;
        let params = DeleteParams::default();
        Api::<FlowSchema>::all(away.client.clone()).delete(name, &params).await?;
        Api::<PriorityLevelConfiguration>::all(away.client.clone()).delete(name, &params).await?;
        crate::pods::ready(&namespace, made).await.map(drop)
    })
    .await
}

/// A webhook that nobody serves, for what is created in the twin namespace.
async fn broken_webhook(namespace: &Namespace, group: &str, resource: &str) -> Result<()> {
    let (away, name) = (&namespace.away, namespace.name.as_str());
    let webhook = json!({
        "name": "broken.example.com", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1, "clientConfig": {"url": "https://127.0.0.1:1/"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.twin}},
        "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]}],
    });
    by_hand::apply_cluster::<ValidatingWebhookConfiguration>(
        away,
        json!({"metadata": {"name": name}, "webhooks": [webhook]}),
    )
    .await?;
    let attempt = format!("create {resource}");
    let made = until_answered(namespace, &attempt, 500, 1).await?;
    let stuck = format!("web-{made}");
    visible(namespace, &stuck, "broken.example.com").await?;
    no_storm(namespace, &attempt, made).await?;
    let webhooks = Api::<ValidatingWebhookConfiguration>::all(away.client.clone());
    webhooks.delete(name, &DeleteParams::default()).await?;
    works(namespace, &stuck, "broken.example.com").await?;
    crate::pods::ready(namespace, made).await.map(drop)
}

#[tokio::test]
async fn a_broken_webhook_for_pods_is_told_and_waited_for() -> Result<()> {
    offloaded(async |namespace| broken_webhook(&namespace, "", "pods").await).await
}

#[tokio::test]
async fn a_broken_webhook_for_shadow_pods_is_told_and_waited_for() -> Result<()> {
    offloaded(async |namespace| broken_webhook(&namespace, "offloading.liqo.io", "shadowpods").await).await
}
