//! What the provider makes of ShadowPods, with no consumer behind them: each is written here by hand, for a consumer that
//! does not exist.

mod ends;
mod marks;
mod nodes;
mod orphans;
mod preemption;
mod updates;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace as KubeNamespace, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::Config;
use serde_json::{Value, json};
use spillway_api::offloading::{ShadowPod, ShadowPodPhase, ShadowPodStatus};
use spillway_e2e::{Namespace, install, wait};

use crate::pods::{SERVE, is_ready};
use crate::{alone, offloaded, testbed};

/// Only a SIGKILL ends it.
const STUBBORN: &str = "trap '' TERM; while true; do sleep 1; done";

/// The ShadowPods and pods of a namespace at the provider.
#[derive(Clone)]
struct Ground {
    shadows: Api<ShadowPod>,
    pods: Api<Pod>,
    name: String,
}

impl Ground {
    fn of(namespace: &Namespace) -> Self {
        Self::named(namespace, &namespace.twin)
    }

    fn named(namespace: &Namespace, name: &str) -> Self {
        let client = &namespace.away.client;
        let (shadows, pods) = (Api::namespaced(client.clone(), name), Api::namespaced(client.clone(), name));
        Self { shadows, pods, name: name.to_owned() }
    }

    /// A ShadowPod with these changes to the simplest one.
    async fn order(&self, name: &str, changes: Value) -> Result<ShadowPod> {
        let mut shadow = json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod",
            "metadata": {
                "name": name, "labels": {"app": name, "offloading.liqo.io/origin": "nowhere"},
                "annotations": {"offloading.spillway.dev/origin-uid": format!("local-{name}")},
            },
            "spec": {"pod": spec(SERVE)},
        });
        merge(&mut shadow, &changes);
        Ok(self.shadows.create(&PostParams::default(), &serde_json::from_value(shadow)?).await?)
    }

    /// The same, and waits until its pod runs and says so.
    async fn running(&self, name: &str, changes: Value) -> Result<Pod> {
        self.order(name, changes).await?;
        self.runs_anew(name, None).await
    }

    /// Waits until a pod runs that is not `before`, and its ShadowPod tells.
    async fn runs_anew(&self, name: &str, before: Option<&Pod>) -> Result<Pod> {
        let before = before.and_then(|pod| pod.uid());
        let other = |pod: Option<&Pod>| pod.is_some_and(|pod| is_ready(pod) && pod.uid() != before);
        let pod = wait::until_one("a pod that runs", self.pods.clone(), name, other).await?.context("a pod")?;
        self.told(name, "that it runs", |status| {
            status.phase == ShadowPodPhase::Running && status.pod_uid == pod.uid()
        })
        .await?;
        Ok(pod)
    }

    /// Waits for what a ShadowPod tells.
    async fn told(
        &self,
        name: &str,
        what: &str,
        condition: impl Fn(&ShadowPodStatus) -> bool,
    ) -> Result<ShadowPodStatus> {
        let holds =
            |shadow: Option<&ShadowPod>| shadow.and_then(|shadow| shadow.status.as_ref()).is_some_and(&condition);
        let shadow = wait::until_one(what, self.shadows.clone(), name, holds).await?;
        shadow.and_then(|shadow| shadow.status).context("a status")
    }

    async fn change(&self, name: &str, changes: Value) -> Result<()> {
        self.shadows.patch(name, &PatchParams::default(), &Patch::Merge(changes)).await?;
        Ok(())
    }

    async fn pod_until(&self, name: &str, what: &str, condition: impl Fn(&Pod) -> bool) -> Result<Pod> {
        let holds = |pod: Option<&Pod>| pod.is_some_and(&condition);
        wait::until_one(what, self.pods.clone(), name, holds).await?.context("a pod")
    }

    /// Waits until shadow-pod has made a pod that was ordered now: whatever it was told before, it has long heard.
    async fn catch_up(&self) -> Result<()> {
        self.running("after", json!({})).await.map(drop)
    }
}

fn spec(command: &str) -> Value {
    json!({
        "terminationGracePeriodSeconds": 2,
        "containers": [{"name": "main", "image": "busybox:testbed", "imagePullPolicy": "Never",
                        "command": ["sh", "-c", command]}],
    })
}

/// Its first container in each pod fails, the second stays.
fn fails_once() -> Value {
    let command = format!("if [ -e /data/second ]; then {SERVE}; fi; touch /data/second; exit 1");
    let mut spec = spec(&command);
    spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    spec
}

/// A merge as of RFC 7386.
fn merge(target: &mut Value, changes: &Value) {
    let Value::Object(changes) = changes else {
        *target = changes.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (field, change) in changes {
        if change.is_null() {
            target.as_object_mut().unwrap().remove(field);
        } else {
            merge(&mut target[field], change);
        }
    }
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|status| status.restart_count).sum()
}

#[tokio::test]
async fn restarts_of_lost_pods_add_up() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        ground.order("web", json!({"spec": {"pod": fails_once()}})).await?;
        for lost in 0..3 {
            let settled = |pod: &Pod| is_ready(pod) && restarts(pod) == 1 && pod.metadata.deletion_timestamp.is_none();
            let pod = ground.pod_until("web", "a pod whose container restarted", settled).await?;
            let counted = |status: &ShadowPodStatus| status.pod_uid == pod.uid() && status.recreations == lost;
            let status = ground.told("web", "its number", counted).await?;
            let former = status.former_restarts.get("main").copied().unwrap_or_default();
            ensure!(former == lost, "{former} restarts in {lost} lost pods");
            ground.pods.delete("web", &DeleteParams::default()).await?;
            wait::until_one("another pod", ground.pods.clone(), "web", |now| {
                now.is_some_and(|now| now.uid() != pod.uid())
            })
            .await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_pod_that_its_node_rejects_is_made_anew_slower_and_slower() -> Result<()> {
    // Alone, because another test kills the operator that counts.
    alone(async |namespace| {
        let ground = Ground::of(&namespace);
        // Bound past the scheduler to a node that it does not match: the kubelet rejects it each time.
        let bound = json!({"nodeName": "away-0", "nodeSelector": {"no-such": "label"}});
        ground.order("web", json!({"spec": {"pod": bound}})).await?;
        let mut made = BTreeMap::new();
        let fifth = |pod: Option<&Pod>| {
            if let Some(pod) = pod {
                let count = made.len();
                made.entry(pod.uid().unwrap()).or_insert((count, std::time::Instant::now()));
            }
            made.len() == 5
        };
        let told = ground.told("web", "the reason", |status| status.reason.as_deref() == Some("RecreationBackOff"));
        let fifth = wait::until_one("a fifth pod", ground.pods.clone(), "web", fifth);
        let (told, _) = tokio::try_join!(told, fifth)?;
        let message = told.message.unwrap_or_default();
        ensure!(message.contains("NodeAffinity") && message.contains("next try at"), "{message}");
        let at = |which: usize| made.values().find(|(count, _)| *count == which).map(|(_, at)| *at);
        let (second, fifth) = (at(1).context("a second")?, at(4).context("a fifth")?);
        let took = fifth - second;
        ensure!(took.as_secs_f64() > 6.5, "three pods in {took:?}, with pauses of 1, 2 and 4 s between them");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_refused_pod_says_why_and_comes_when_it_may() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}});
        let quotas =
            Api::<k8s_openapi::api::core::v1::ResourceQuota>::namespaced(namespace.away.client.clone(), &ground.name);
        quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
        ground.order("web", json!({})).await?;
        let refused =
            ground.told("web", "the refusal", |status| status.reason.as_deref() == Some("PodRefused")).await?;
        ensure!(refused.message.as_ref().is_some_and(|message| message.contains("quota")), "{refused:?}");
        assert_eq!(refused.phase, ShadowPodPhase::Pending);
        quotas.delete("none", &DeleteParams::default()).await?;
        let runs = ground.runs_anew("web", None).await?;
        let status = ground.told("web", "a clean status", |status| status.pod_uid == runs.uid()).await?;
        assert_eq!((status.reason, status.message), (None, None));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_namespace_full_of_pods_is_deleted_without_a_rest() -> Result<()> {
    const PODS: usize = 20;
    offloaded(async |namespace| {
        let name = format!("{}-doomed", namespace.name);
        let namespaces = Api::<KubeNamespace>::all(namespace.away.client.clone());
        let created = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        namespaces.create(&PostParams::default(), &created).await?;
        let ground = Ground::named(&namespace, &name);
        for i in 0..PODS {
            ground.order(&format!("web-{i}"), json!({})).await?;
        }
        let all = |pods: &BTreeMap<String, Pod>| pods.values().filter(|pod| is_ready(pod)).count() == PODS;
        wait::until("pods that run", ground.pods.clone(), Config::default(), all).await?;
        namespaces.delete(&name, &DeleteParams::default()).await?;
        wait::until_one("the namespace to go", namespaces, &name, |namespace| namespace.is_none()).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_pod_that_someone_deletes_patiently_gets_the_grace_that_its_consumer_wants() -> Result<()> {
    offloaded(async |namespace| {
        let ground = Ground::of(&namespace);
        let stubborn = spec(STUBBORN);
        ground.running("web", json!({"spec": {"pod": stubborn}})).await?;
        ground.pods.delete("web", &DeleteParams::default().grace_period(3600)).await?;
        ground
            .change(
                "web",
                json!({"metadata": {"annotations": {"offloading.spillway.dev/deletion-grace-seconds": "1"}}}),
            )
            .await?;
        ground.shadows.delete("web", &DeleteParams::default()).await?;
        let shortened = |pod: &Pod| pod.metadata.deletion_grace_period_seconds == Some(1);
        ground.pod_until("web", "the shorter grace", shortened).await?;
        // A kubelet that has begun with the longer grace may stay with it; the test does not.
        ground.pods.delete("web", &DeleteParams::default().grace_period(0)).await?;
        wait::until_one("the pod to go", ground.pods.clone(), "web", |pod| pod.is_none()).await?;
        wait::until_one("its ShadowPod to go", ground.shadows, "web", |shadow| shadow.is_none()).await?;
        Ok(())
    })
    .await
}

/// Runs a program in the container of a pod.
async fn exec(namespace: &str, pod: &str, command: &[&str]) -> Result<()> {
    let mut kubectl = testbed().kubectl("away")?;
    kubectl.args(["exec", "-n", namespace, pod, "--"]).args(command);
    tokio::task::spawn_blocking(move || install::succeed(&mut kubectl)).await?
}

async fn no_pod_was_made(ground: &Ground, name: &str) -> Result<()> {
    ground.catch_up().await?;
    let pods = ground.pods.list(&ListParams::default().fields(&format!("metadata.name={name}"))).await?;
    ensure!(pods.items.is_empty(), "{name} runs again");
    Ok(())
}
