//! Pods that must make room for more important ones.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use spillway_api::offloading::{ShadowPodPhase, ShadowPodStatus};
use spillway_e2e::wait;

use super::{Ground, spec};
use crate::offloaded;
use crate::pods::{SERVE, is_ready};

/// Of which the node has one: whoever gets it keeps everybody else off, and no other test asks for it.
const SEAT: &str = "spillway.test/seat";

fn seated() -> Value {
    let mut spec = spec(SERVE);
    spec["containers"][0]["resources"] = json!({"limits": {SEAT: "1"}});
    spec
}

#[tokio::test]
async fn a_preempted_pod_waits_for_room_and_runs_again() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let client = namespace.away.client.clone();
        let one = Patch::Merge(json!({"status": {"capacity": {SEAT: "1"}, "allocatable": {SEAT: "1"}}}));
        Api::<Node>::all(client.clone()).patch_status("away-0", &PatchParams::default(), &one).await?;
        let classes = Api::<PriorityClass>::all(client);
        let class = json!({"metadata": {"name": namespace.name}, "value": 1000});
        classes.create(&PostParams::default(), &serde_json::from_value(class)?).await?;

        let first = ground.running("web", json!({"spec": {"pod": seated()}})).await?;
        let mut important = seated();
        important["priorityClassName"] = json!(namespace.name);
        let important = json!({"metadata": {"name": "important"}, "spec": important});
        ground.pods.create(&PostParams::default(), &serde_json::from_value(important)?).await?;
        ground.pod_until("important", "the important pod to run", is_ready).await?;

        let waits = |pod: &Pod| pod.uid() != first.uid() && unscheduled(pod).is_some_and(|why| why.contains(SEAT));
        let second = ground.pod_until("web", "another pod that waits for room", waits).await?;
        let told = |status: &ShadowPodStatus| status.pod_uid == second.uid();
        let status = ground.told("web", "that it waits", told).await?;
        ensure!((status.phase, status.recreations) == (ShadowPodPhase::Pending, 1), "{status:?}");

        ground.pods.delete("important", &DeleteParams::default()).await?;
        let after = ground.runs_anew("web", Some(&first)).await?;
        assert_eq!(after.uid(), second.uid(), "it was made anew once");
        ground.shadows.delete("web", &DeleteParams::default()).await?;
        wait::until_one("the pod to go", ground.pods, "web", |pod| pod.is_none()).await?;
        classes.delete(&namespace.name, &DeleteParams::default()).await.context("cannot remove the class")?;
        Ok(())
    })
    .await
}

/// What the scheduler says of a pod that it has no place for.
fn unscheduled(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    (scheduled.status == "False").then(|| scheduled.message.as_deref().unwrap_or_default())
}
