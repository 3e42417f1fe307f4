//! What a pod refers to: it waits for it over there as it would here, and its user sees for what.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::json;
use spillway_e2e::{by_hand, wait};

use crate::offloaded;
use crate::pods::{SERVE, is_ready, remote_spec};

fn waiting(pod: &Pod) -> Option<&str> {
    let container = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    container.state.as_ref()?.waiting.as_ref()?.reason.as_deref()
}

#[tokio::test]
async fn a_pod_waits_for_its_configuration_and_secrets_and_runs_when_they_come() -> Result<()> {
    offloaded(async |namespace| {
        let mut spec =
            remote_spec(&format!("[ $GREETING = hello ] && [ $(cat /secret/key) = hush ] || exit 1; {SERVE}"));
        spec["containers"][0]["env"] =
            json!([{"name": "GREETING", "valueFrom": {"configMapKeyRef": {"name": "words", "key": "greeting"}}}]);
        spec["containers"][0]["volumeMounts"] = json!([{"name": "secret", "mountPath": "/secret"}]);
        spec["volumes"] = json!([{"name": "secret", "secret": {"secretName": "keys"}}]);
        let pods = namespace.home_pods();
        let pod = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec}))?;
        pods.create(&PostParams::default(), &pod).await?;
        let creating = |pod: Option<&Pod>| pod.is_some_and(|pod| waiting(pod) == Some("ContainerCreating"));
        let born = wait::until_one("its kubelet to wait for the volume", pods.clone(), "web", creating).await?;
        let twin = &namespace.twin;
        let keys = json!({"metadata": {"name": "keys"}, "stringData": {"key": "hush"}});
        by_hand::apply::<Secret>(&namespace.away, twin, keys).await?;
        let unset = |pod: Option<&Pod>| pod.is_some_and(|pod| waiting(pod) == Some("CreateContainerConfigError"));
        wait::until_one("its kubelet's word on what is missing", pods.clone(), "web", unset).await?;
        let words = json!({"metadata": {"name": "words"}, "data": {"greeting": "hello"}});
        by_hand::apply::<ConfigMap>(&namespace.away, twin, words).await?;
        let runs = wait::until_one("the pod to run", pods, "web", |pod| pod.is_some_and(is_ready)).await?;
        assert_eq!(runs.context("a pod")?.uid(), born.context("a pod")?.uid());
        Ok(())
    })
    .await
}
