//! What the clusters' Prometheus sees.

use std::process::Command;

use anyhow::{Context, Result, bail};
use kube::api::PostParams;
use serde_json::{Value, json};
use spillway_e2e::wait;

use crate::pods::ready;
use crate::{node, offloaded, testbed};

/// The samples of an instant query, as label sets with their value.
fn query(cluster: &str, query: &str) -> Result<Vec<(Value, f64)>> {
    let url = testbed().cluster(cluster)?.prometheus_url.clone().context("no Prometheus")?;
    let output = Command::new("curl")
        .args(["-sf", "-G", &format!("{url}/api/v1/query"), "--data-urlencode", &format!("query={query}")])
        .output()?;
    let answer: Value = serde_json::from_slice(&output.stdout).context("Prometheus gives no JSON")?;
    let samples = answer["data"]["result"].as_array().context("no result")?;
    let parsed = samples.iter().map(|sample| {
        let value = sample["value"][1].as_str().and_then(|value| value.parse().ok()).context("no value")?;
        Ok((sample["metric"].clone(), value))
    });
    parsed.collect()
}

/// Asks again until there is a sample above zero: Prometheus scrapes at its own pace, and has no watch to wait on.
async fn until_positive(cluster: &str, promql: &str) -> Result<()> {
    let begun = std::time::Instant::now();
    loop {
        let seen = query(cluster, promql)?;
        if seen.iter().any(|(_, value)| *value > 0.0) {
            return Ok(());
        }
        if begun.elapsed() > wait::DEADLINE {
            bail!("{cluster}: no sample above zero of {promql}; last answer: {seen:?}");
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
}

#[tokio::test]
async fn prometheus_scrapes_every_operator_also_one_made_later() -> Result<()> {
    offloaded(async |namespace| {
        let later = "away-later";
        node::own_ready(&namespace, later, json!({})).await?;
        namespace.home_pods().create(&PostParams::default(), &node::pod_on(later, "web")).await?;
        ready(&namespace, 1).await?;

        until_positive("away", r#"spillway_reconcile_total{controller="shadow-pod",outcome="ok"}"#).await?;
        until_positive("away", r#"spillway_reconcile_duration_seconds_count{controller="shadow-pod"}"#).await?;
        until_positive("home", r#"spillway_reconcile_total{controller="virtual-nodes",outcome="ok"}"#).await?;
        let kubelets = |name: &str| {
            format!(r#"spillway_reconcile_total{{controller="pods",outcome="ok",pod=~"vk-{name}-[^-]+-[^-]+"}}"#)
        };
        until_positive("home", &kubelets(crate::VIRTUAL_NODE)).await?;
        until_positive("home", &kubelets(later)).await?;
        for operator in ["spillway_leader", "spillway_watches_open", "spillway_api_requests_total"] {
            until_positive("home", operator).await?;
            until_positive("away", operator).await?;
        }
        until_positive("home", "spillway_peer_reachable").await?;

        namespace.home_pods().delete("web", &Default::default()).await?;
        wait::until("no pod", namespace.home_pods(), Default::default(), |pods| pods.is_empty()).await?;
        node::remove(&namespace, later).await
    })
    .await
}
