//! What is seen of a pod is not all there is: a label by which it is watched may be taken from it, and one that was just
//! made has not been shown yet.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use spillway_api::well_known::{annotation, finalizer, label};
use spillway_e2e::wait;

use super::{Ground, fails_once, restarts};
use crate::offloaded;
use crate::pods::is_ready;

#[tokio::test]
async fn a_pod_that_lost_a_label_gets_it_back_and_counts_as_the_same() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let labels = json!({label::NODE_NAME: "nowhere-1"});
        ground.order("web", json!({"metadata": {"labels": labels}, "spec": {"pod": fails_once()}})).await?;
        let settled = |pod: &Pod| is_ready(pod) && restarts(pod) == 1;
        let before = ground.pod_until("web", "a pod whose container restarted", settled).await?;
        ground.told("web", "that it runs", |status| status.pod_uid == before.uid()).await?;
        for lost in [label::MANAGED_BY, label::NODE_NAME, label::ORIGIN] {
            let strip = Patch::Merge(json!({"metadata": {"labels": {lost: null}}}));
            ground.pods.patch("web", &PatchParams::default(), &strip).await?;
            let same = |pod: &Pod| pod.labels() == before.labels();
            let after = ground.pod_until("web", &format!("its label {lost} again"), same).await?;
            assert_eq!((after.uid(), after.finalizers()), (before.uid(), before.finalizers()), "{lost}");
        }
        ground.catch_up().await?;
        let status = ground.shadows.get("web").await?.status.context("a status")?;
        ensure!(status.recreations == 0 && status.former_restarts.is_empty(), "{status:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_shadow_pod_goes_after_its_pod_also_if_it_is_deleted_at_once() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let fleeting = async |number: u64| {
            let (name, ground) = (format!("fleeting-{number}"), ground.clone());
            let metadata = json!({"finalizers": [finalizer::SHADOW_POD], "annotations": {annotation::DELETION_GRACE_SECONDS: "1"}});
            ground.order(&name, json!({"metadata": metadata})).await?;
            tokio::time::sleep(Duration::from_millis(number)).await;
            ground.shadows.delete(&name, &DeleteParams::default()).await?;
            wait::until_one("its ShadowPod to go", ground.shadows.clone(), &name, |shadow| shadow.is_none()).await?;
            ensure!(ground.pods.get_opt(&name).await?.is_none(), "{name} is still there, and its ShadowPod is gone");
            anyhow::Ok(())
        };
        try_join_all((0..32).map(fleeting)).await.map(drop)
    })
    .await
}
