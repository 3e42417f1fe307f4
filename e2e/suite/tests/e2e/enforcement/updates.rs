//! Changes that a running pod allows.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use spillway_api::offloading::ShadowPodPhase;
use spillway_api::well_known::finalizer;

use super::{Ground, restarts, spec};
use crate::offloaded;
use crate::pods::SERVE;
use crate::updates::ephemeral_runs;

fn container_changes(changes: Value) -> Value {
    let mut container = spec(SERVE)["containers"][0].clone();
    super::merge(&mut container, &changes);
    json!({"containers": [container]})
}

#[tokio::test]
async fn what_may_change_of_a_running_pod_does() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let resources = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let labels = json!({"removed": "1", "changed": "1"});
        let before = ground
            .running("web", json!({"metadata": {"labels": labels}, "spec": {"pod": container_changes(resources("10m"))}}))
            .await?;
        let theirs = json!({"metadata": {"labels": {"of-the-provider": "1"}}});
        ground.pods.patch("web", &PatchParams::default(), &Patch::Merge(theirs)).await?;

        let mut changed = container_changes(resources("20m"));
        changed["activeDeadlineSeconds"] = json!(80_000);
        changed["tolerations"] = json!([{"key": "new", "operator": "Exists"}]);
        changed["ephemeralContainers"] = json!([{"name": "debug", "image": "busybox:testbed", "imagePullPolicy": "Never",
                                                 "command": ["sh", "-c", SERVE]}]);
        let metadata = json!({"labels": {"removed": null, "changed": "2", "added": "1"}, "annotations": {"note": "new"}});
        ground.change("web", json!({"metadata": metadata, "spec": {"pod": changed}})).await?;
        let pod = ground.pod_until("web", "a debug container", ephemeral_runs).await?;
        let seen = ground.pod_until("web", "the note", |pod| pod.annotations().contains_key("note")).await?;
        let label = |key: &str| seen.labels().get(key).map(String::as_str);
        assert_eq!(
            (label("removed"), label("changed"), label("added"), label("of-the-provider")),
            (None, Some("2"), Some("1"), Some("1"))
        );
        let spec = seen.spec.clone().context("a spec")?;
        assert_eq!(spec.active_deadline_seconds, Some(80_000));
        assert_eq!(before.finalizers(), [""; 0], "nothing ends it for good");
        assert_eq!(seen.finalizers(), [finalizer::OUTCOME], "its deadline would");
        let tolerations = spec.tolerations.unwrap_or_default();
        ensure!(tolerations.iter().any(|toleration| toleration.key.as_deref() == Some("new")), "{tolerations:?}");
        let resources = json!(spec.containers[0].resources);
        assert_eq!(resources["requests"]["cpu"], "20m");
        assert_eq!((pod.uid(), restarts(&seen)), (before.uid(), 0), "the same pod, and nothing of it restarted");

        ground.pods.delete("web", &DeleteParams::default()).await?;
        let after = ground.runs_anew("web", Some(&before)).await?;
        let again = ground.pod_until("web", "the debug container again", ephemeral_runs).await?;
        assert_eq!(after.uid(), again.uid());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn another_image_restarts_the_container_in_its_pod() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let before = ground.running("web", json!({})).await?;
        // The same image under its full name.
        let image = "docker.io/library/busybox:testbed";
        ground.change("web", json!({"spec": {"pod": container_changes(json!({"image": image}))}})).await?;
        let after = ground.pod_until("web", "a restart", |pod| restarts(pod) == 1).await?;
        assert_eq!(after.uid(), before.uid());
        assert_eq!(after.spec.context("a spec")?.containers[0].image.as_deref(), Some(image));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_change_that_is_refused_is_told_and_keeps_no_other_change_back() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        ground.running("web", json!({})).await?;
        // A pod without requests may not get any: its QoS class is for life.
        let impossible = container_changes(json!({"resources": {"requests": {"cpu": "10m"}}}));
        ground.change("web", json!({"metadata": {"labels": {"added": "1"}}, "spec": {"pod": impossible}})).await?;
        let refused =
            ground.told("web", "the refusal", |status| status.reason.as_deref() == Some("UpdateRefused")).await?;
        assert_eq!(refused.phase, ShadowPodPhase::Running);
        ensure!(refused.message.is_some_and(|message| message.contains("QOS")), "it says what was wrong");
        ground.pod_until("web", "the label", |pod| pod.labels().contains_key("added")).await?;
        ground.change("web", json!({"spec": {"pod": container_changes(json!({"resources": null}))}})).await?;
        ground.told("web", "that all is well", |status| status.reason.is_none()).await?;
        Ok(())
    })
    .await
}
