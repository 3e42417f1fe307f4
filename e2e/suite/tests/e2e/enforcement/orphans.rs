//! Pods that lost their owner.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use spillway_api::well_known::finalizer;
use spillway_e2e::wait;

use super::{Ground, spec};
use crate::offloaded;
use crate::pods::SERVE;

#[tokio::test]
async fn a_pod_that_its_shadow_left_behind_goes_too() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        ground.running("web", json!({})).await?;
        ground.shadows.delete("web", &DeleteParams::orphan()).await?;
        wait::until_one("the pod to go", ground.pods.clone(), "web", |pod| pod.is_none()).await?;
        wait::until_one("its ShadowPod to go", ground.shadows.clone(), "web", |shadow| shadow.is_none()).await?;

        // As one that was left while shadow-pod was away: nothing but its own marks tells whose it was.
        let labels = json!({"liqo.io/managed-by": "shadowpod", "offloading.liqo.io/origin": "nowhere"});
        let left = json!({"metadata": {"name": "left", "labels": labels, "finalizers": [finalizer::OUTCOME]}, "spec": spec(SERVE)});
        ground.pods.create(&PostParams::default(), &serde_json::from_value(left)?).await?;
        wait::until_one("the pod that was left to go", ground.pods.clone(), "left", |pod| pod.is_none()).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_pod_whose_owner_was_stripped_gets_it_back() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let before = ground.running("web", json!({})).await?;
        let strip = json!({"metadata": {"ownerReferences": null}});
        ground.pods.patch("web", &PatchParams::default(), &Patch::Merge(strip)).await?;
        let owned = |pod: &Pod| pod.owner_references() == before.owner_references();
        let after = ground.pod_until("web", "its owner", owned).await?;
        assert_eq!(after.uid(), before.uid());
        Ok(())
    })
    .await
}

/// Each mark alone may stand on anyone's pod.
#[tokio::test]
async fn a_pod_that_only_looks_like_one_of_ours_is_left_alone() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let labelled = json!({"labels": {"liqo.io/managed-by": "shadowpod", "offloading.liqo.io/origin": "nowhere"}});
        let held = json!({"labels": {"liqo.io/managed-by": "shadowpod"}, "finalizers": [finalizer::OUTCOME]});
        for (name, mut metadata) in [("labelled", labelled), ("held", held)] {
            metadata["name"] = json!(name);
            let pod = json!({"metadata": metadata, "spec": spec(SERVE)});
            ground.pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        }
        ground.catch_up().await?;
        for name in ["labelled", "held"] {
            let pod = ground.pods.get_opt(name).await?.context("the pod")?;
            assert!(pod.metadata.deletion_timestamp.is_none(), "{name}");
        }
        let release = json!({"metadata": {"finalizers": null}});
        ground.pods.patch("held", &PatchParams::default(), &Patch::Merge(release)).await?;
        Ok(())
    })
    .await
}
