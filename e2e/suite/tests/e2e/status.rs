//! What a local pod shows of its remote one.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{LimitRange, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use spillway_e2e::{by_hand, wait};

use crate::pods::{SERVE, is_ready, phase, pod, ready, remote_spec};
use crate::{offloaded, victims};

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((&found.status, found.reason.as_deref().unwrap_or_default()))
}

#[tokio::test]
async fn a_readiness_gate_is_told_at_home() -> Result<()> {
    offloaded(async |namespace| {
        let mut gated = pod("gated", SERVE);
        let gates = serde_json::from_value(json!([{"conditionType": "example.com/traffic"}]))?;
        gated.spec.as_mut().context("a spec")?.readiness_gates = Some(gates);
        let pods = namespace.home_pods();
        pods.create(&PostParams::default(), &gated).await?;
        let waits = |pod: Option<&Pod>| {
            pod.is_some_and(|pod| {
                condition(pod, "ContainersReady").is_some_and(|(status, _)| status == "True")
                    && condition(pod, "Ready") == Some(("False", "ReadinessGatesNotReady"))
            })
        };
        wait::until_one("containers that are ready, and a closed gate", pods.clone(), "gated", waits).await?;
        let open = json!({"status": {"conditions": [{"type": "example.com/traffic", "status": "True"}]}});
        pods.patch_status("gated", &PatchParams::default(), &Patch::Strategic(open)).await?;
        let opened = wait::until_one("the pod to be Ready", pods, "gated", |pod| pod.is_some_and(is_ready)).await?;
        let gate = opened.as_ref().and_then(|pod| condition(pod, "example.com/traffic"));
        assert_eq!(gate.map(|(status, _)| status), Some("True"), "a condition of others survives");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_limit_range_that_changes_the_remote_qos_class_changes_nothing_here() -> Result<()> {
    offloaded(async |namespace| {
        let limits = json!({"metadata": {"name": "defaults"}, "spec": {"limits": [
            {"type": "Container", "default": {"cpu": "500m", "memory": "64Mi"}, "defaultRequest": {"cpu": "5m", "memory": "8Mi"}}]}});
        by_hand::apply::<LimitRange>(&namespace.away, &namespace.twin, limits).await?;
        let qos = |pod: &Pod| pod.status.as_ref().and_then(|status| status.qos_class.clone());
        // The API server applies a LimitRange only once it has heard of it.
        let probe = pod("probe", SERVE);
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let heard = async {
            while qos(&namespace.away_pods().create(&dry, &probe).await?).as_deref() != Some("Burstable") {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(wait::DEADLINE, heard).await.context("the LimitRange is never applied")??;
        namespace.home_pods().create(&PostParams::default(), &pod("web", SERVE)).await?;
        let local = ready(&namespace, 1).await?.remove("web").context("the pod")?;
        let remote = namespace.away_pods().get("web").await?;
        assert_eq!((qos(&local).as_deref(), qos(&remote).as_deref()), (Some("BestEffort"), Some("Burstable")));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_that_waits_for_its_pods_to_fail_gets_a_replacement_for_a_deleted_one() -> Result<()> {
    offloaded(async |namespace| {
        let jobs = Api::<Job>::namespaced(namespace.home.client.clone(), &namespace.name);
        let mut spec = remote_spec("trap 'exit 3' TERM; sleep 86400 & wait");
        spec["restartPolicy"] = json!("Never");
        let job = json!({"metadata": {"name": "patient"}, "spec": {
            "podReplacementPolicy": "Failed", "backoffLimit": 3, "template": {"spec": spec}}});
        jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
        let first = ready(&namespace, 1).await?.into_values().next().context("a pod")?;
        namespace.home_pods().delete(&first.name_any(), &DeleteParams::default()).await?;
        let replaced = wait::until("a replacement", namespace.home_pods(), Default::default(), |pods| {
            pods.values().any(|pod| pod.uid() != first.uid() && is_ready(pod))
        })
        .await?;
        ensure!(!replaced.contains_key(&first.name_any()), "the first is gone");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_pod_with_devices_of_this_cluster_is_refused_in_words() -> Result<()> {
    offloaded(async |namespace| {
        let mut claims = pod("claims", SERVE);
        let spec = claims.spec.as_mut().context("a spec")?;
        spec.resource_claims = Some(serde_json::from_value(json!([{"name": "gpu", "resourceClaimName": "none"}]))?);
        spec.node_name = Some(crate::VIRTUAL_NODE.into()); // the scheduler would wait for the claim
        namespace.home_pods().create(&PostParams::default(), &claims).await?;
        let told = |pod: Option<&Pod>| {
            let status = pod.and_then(|pod| pod.status.as_ref());
            status.and_then(|status| status.reason.as_deref()) == Some("OffloadingRefused")
        };
        let refused = wait::until_one("the refusal", namespace.home_pods(), "claims", told).await?.context("a pod")?;
        let message = refused.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default();
        ensure!(message.contains("resourceClaims"), "{message}");
        assert_eq!(phase(&refused), "Pending");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_daemon_sets_pod_in_a_namespace_that_is_not_offloaded_waits_and_is_never_replaced() -> Result<()> {
    offloaded(async |namespace| {
        let other = format!("{}-agents", namespace.name);
        let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(namespace.home.client.clone());
        let created = serde_json::from_value(json!({"metadata": {"name": other}}))?;
        namespaces.create(&PostParams::default(), &created).await?;
        let mut spec = remote_spec(SERVE);
        spec["tolerations"] = json!([{"operator": "Exists"}]);
        spec["nodeSelector"] = json!({"kubernetes.io/hostname": crate::VIRTUAL_NODE});
        let agents = json!({"metadata": {"name": "agent"}, "spec": {"selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": spec}}});
        let sets = Api::<DaemonSet>::namespaced(namespace.home.client.clone(), &other);
        sets.create(&PostParams::default(), &serde_json::from_value(agents)?).await?;
        let pods = Api::<Pod>::namespaced(namespace.home.client.clone(), &other);
        let waits = |pod: &Pod| {
            let reason = pod.status.as_ref().and_then(|status| status.reason.as_deref());
            phase(pod) == "Pending" && reason == Some("OffloadingBackOff")
        };
        let first =
            wait::until("a pod that waits", pods.clone(), Default::default(), |pods| pods.values().any(waits)).await?;

        // Everything that could lead to a second thought, and then a pod that crosses: by then it would have been had.
        victims::virtual_kubelet(&namespace).kill(true).await?;
        namespace.home_pods().create(&PostParams::default(), &pod("web", SERVE)).await?;
        ready(&namespace, 1).await?;
        let uids = |pods: Vec<&Pod>| pods.into_iter().filter_map(|pod| pod.uid()).collect::<Vec<_>>();
        let now = pods.list(&Default::default()).await?.items;
        assert_eq!(uids(now.iter().collect()), uids(first.values().collect()), "the same pod");
        ensure!(now.iter().all(waits), "it still waits");
        namespaces.delete(&other, &DeleteParams::default()).await?;
        wait::until_one("the namespace to go", namespaces, &other, |namespace| namespace.is_none()).await?;
        Ok(())
    })
    .await
}
