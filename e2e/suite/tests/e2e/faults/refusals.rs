//! A provider that refuses: the pod says why, nobody storms, and it works by itself once it may.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use spillway_api::offloading::ShadowPod;
use spillway_e2e::audit::{Audit, counts};
use spillway_e2e::{Namespace, by_hand, wait};

use crate::pods::{SERVE, is_ready, phase, pod};
use crate::{VIRTUAL_NODE, offloaded, testbed};

/// How long a refusal is watched for a storm, and what is none: a back-off that doubles from well below a second.
const WATCHED: Duration = Duration::from_secs(20);
const ATTEMPTS: usize = 12;

/// Everything on a pod that tells its user why it waits.
fn told(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.iter().flatten().filter_map(|condition| condition.message.clone());
    let own = [status.reason, status.message].into_iter().flatten();
    own.chain(conditions).collect::<Vec<_>>().join(" ")
}

/// Waits until the local pod tells the reason, and gives it.
pub async fn visible(namespace: &Namespace, name: &str, reason: &str) -> Result<()> {
    let tells = |pod: Option<&Pod>| pod.is_some_and(|pod| told(pod).contains(reason));
    let seen = wait::until_one(&format!("'{reason}' on the pod"), namespace.home_pods(), name, tells).await?;
    let seen = seen.context("a pod")?;
    ensure!(phase(&seen) == "Pending", "a refused pod is {}", phase(&seen));
    Ok(())
}

/// Waits until the pod runs, and nothing on it speaks of the refusal any more.
pub async fn works(namespace: &Namespace, name: &str, reason: &str) -> Result<()> {
    let works = |pod: Option<&Pod>| pod.is_some_and(|pod| is_ready(pod) && !told(pod).contains(reason));
    wait::until_one("the pod to run by itself", namespace.home_pods(), name, works).await.map(drop)
}

/// Counts what is tried in this namespace while the refusal of so many pods lasts.
pub async fn no_storm(namespace: &Namespace, attempt: &str, pods: usize) -> Result<()> {
    let limit = pods * ATTEMPTS;
    let (away, home) = (Audit::from_now(testbed(), "away")?, Audit::from_now(testbed(), "home")?);
    tokio::time::sleep(WATCHED).await;
    let away: Vec<_> = away.requests()?.into_iter().filter(|request| request.namespace == namespace.twin).collect();
    let home: Vec<_> = home.requests()?.into_iter().filter(|request| request.namespace == namespace.name).collect();
    println!("while '{attempt}' was refused for {WATCHED:?}: away {:?}, home {:?}", counts(&away), counts(&home));
    let attempts = away.iter().filter(|request| request.what() == attempt).count();
    ensure!(attempts <= limit, "a storm: {attempts} attempts in {WATCHED:?}");
    ensure!(away.len() <= 3 * limit, "a storm at the provider: {:?}", counts(&away));
    ensure!(home.len() <= limit, "a storm at home: {:?}", counts(&home));
    Ok(())
}

/// Makes two pods that are refused, deletes one at once, and gives way for the other with `allow`.
async fn refused_then_allowed<F: Future<Output = Result<()>>>(
    namespace: &Namespace,
    reason: &str,
    attempt: &str,
    allow: impl FnOnce() -> F,
) -> Result<()> {
    for name in ["web", "unwanted"] {
        namespace.home_pods().create(&PostParams::default(), &pod(name, SERVE)).await?;
        visible(namespace, name, reason).await?;
    }
    let begun = std::time::Instant::now();
    namespace.home_pods().delete("unwanted", &DeleteParams::default()).await?;
    wait::until_one("the refused pod to go", namespace.home_pods(), "unwanted", |pod| pod.is_none()).await?;
    println!("a pod refused for '{reason}' went within {:.1?}", begun.elapsed());
    ensure!(begun.elapsed() < Duration::from_secs(10), "a refused pod can be deleted at once");
    no_storm(namespace, attempt, 1).await?;
    allow().await?;
    works(namespace, "web", reason).await
}

/// A quota of the twin namespace that is exhausted until it is raised.
async fn quota(namespace: &Namespace, resource: &str, attempt: &str) -> Result<()> {
    let quotas = Api::<ResourceQuota>::namespaced(namespace.away.client.clone(), &namespace.twin);
    let quota = |limit: &str| json!({"metadata": {"name": "full"}, "spec": {"hard": {resource: limit}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota("0"))?).await?;
    let counted = |quota: Option<&ResourceQuota>| {
        quota.and_then(|quota| quota.status.as_ref()?.hard.as_ref()).is_some_and(|hard| hard.contains_key(resource))
    };
    wait::until_one("the quota to be in force", quotas.clone(), "full", counted).await?;
    refused_then_allowed(namespace, "exceeded quota", attempt, || async {
        let raised = Patch::Merge(quota("10"));
        quotas.patch("full", &PatchParams::default(), &raised).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_full_quota_of_pods_is_told_and_waited_for() -> Result<()> {
    offloaded(async |namespace| quota(&namespace, "pods", "create pods").await).await
}

#[tokio::test]
async fn a_full_quota_of_shadow_pods_is_told_and_waited_for() -> Result<()> {
    offloaded(async |namespace| quota(&namespace, "count/shadowpods.offloading.liqo.io", "create shadowpods").await)
        .await
}

/// A policy that refuses to create this resource in the twin namespace, in its own words.
struct Policy<'a> {
    namespace: &'a Namespace,
    group: &'a str,
    resource: &'a str,
}

impl Policy<'_> {
    const WORDS: &'static str = "not on my watch";

    fn name(&self) -> String {
        format!("{}-{}", self.namespace.name, self.resource)
    }

    async fn enact(&self) -> Result<()> {
        let rule = json!({"apiGroups": [self.group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [self.resource]});
        let spec = json!({"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
                          "validations": [{"expression": "false", "message": Self::WORDS}]});
        let away = &self.namespace.away;
        let policy = json!({"metadata": {"name": self.name()}, "spec": spec});
        by_hand::apply_cluster::<ValidatingAdmissionPolicy>(away, policy).await?;
        let here = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace.twin}}});
        let binding = json!({"metadata": {"name": self.name()}, "spec": {
            "policyName": self.name(), "validationActions": ["Deny"], "matchResources": here}});
        by_hand::apply_cluster::<ValidatingAdmissionPolicyBinding>(away, binding).await
    }

    async fn repeal(&self) -> Result<()> {
        let (client, name, params) = (self.namespace.away.client.clone(), self.name(), DeleteParams::default());
        Api::<ValidatingAdmissionPolicyBinding>::all(client.clone()).delete(&name, &params).await?;
        Api::<ValidatingAdmissionPolicy>::all(client).delete(&name, &params).await?;
        Ok(())
    }

    /// The API server takes up policies at its own pace and tells nobody when it has: it is asked until it refuses.
    async fn in_force<K>(&self, api: Api<K>, probe: K) -> Result<()>
    where
        K: kube::Resource + serde::Serialize + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
    {
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let begun = std::time::Instant::now();
        while begun.elapsed() < wait::DEADLINE {
            match api.create(&params, &probe).await {
                Err(kube::Error::Api(status)) if status.message.contains(Self::WORDS) => return Ok(()),
                _ => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
        anyhow::bail!("the policy {} never came into force", self.name())
    }
}

#[tokio::test]
async fn a_policy_against_pods_is_told_and_waited_for() -> Result<()> {
    offloaded(async |namespace| {
        let policy = Policy { namespace: &namespace, group: "", resource: "pods" };
        policy.enact().await?;
        let mut probe = pod("probe", SERVE);
        probe.spec.as_mut().context("a spec")?.node_selector = None;
        policy.in_force(namespace.away_pods(), probe).await?;
        refused_then_allowed(&namespace, Policy::WORDS, "create pods", || policy.repeal()).await
    })
    .await
}

#[tokio::test]
async fn a_policy_against_shadow_pods_is_told_and_waited_for() -> Result<()> {
    offloaded(async |namespace| {
        let policy = Policy { namespace: &namespace, group: "offloading.liqo.io", resource: "shadowpods" };
        policy.enact().await?;
        let probe: ShadowPod = serde_json::from_value(json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod",
            "metadata": {"name": "probe"}, "spec": {"pod": pod("probe", SERVE).spec}}))?;
        policy.in_force(namespace.shadow_pods(), probe).await?;
        refused_then_allowed(&namespace, Policy::WORDS, "create shadowpods", || policy.repeal()).await
    })
    .await
}

#[tokio::test]
async fn a_pod_that_fits_nowhere_tells_what_the_remote_scheduler_says() -> Result<()> {
    offloaded(async |namespace| {
        let mut large = pod("large", SERVE);
        let spec = large.spec.as_mut().context("a spec")?;
        spec.containers[0].resources = Some(serde_json::from_value(json!({"requests": {"cpu": "1000"}}))?);
        spec.node_name = Some(VIRTUAL_NODE.into()); // home's scheduler would say the same
        namespace.home_pods().create(&PostParams::default(), &large).await?;
        visible(&namespace, "large", "Insufficient cpu").await?;
        namespace.home_pods().delete("large", &DeleteParams::default()).await?;
        wait::until_one("it to go", namespace.home_pods(), "large", |pod| pod.is_none()).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_shadow_pod_that_makes_no_sense_stops_nobody() -> Result<()> {
    offloaded(async |namespace| {
        let nonsense: ShadowPod = serde_json::from_value(json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod",
            "metadata": {"name": "nonsense", "labels": {"offloading.liqo.io/origin": namespace.peering.home_id}},
            "spec": {"pod": {"containers": "none", "restartPolicy": 7}}}))?;
        namespace.shadow_pods().create(&PostParams::default(), &nonsense).await?;
        namespace.home_pods().create(&PostParams::default(), &pod("web", SERVE)).await?;
        crate::pods::ready(&namespace, 1).await?;
        let told = |shadow: Option<&ShadowPod>| {
            shadow
                .and_then(|shadow| shadow.status.as_ref()?.message.as_ref())
                .is_some_and(|message| !message.is_empty())
        };
        wait::until_one("what is wrong, on the ShadowPod", namespace.shadow_pods(), "nonsense", told).await?;
        namespace.shadow_pods().delete("nonsense", &DeleteParams::default()).await?;
        wait::until_one("it to go", namespace.shadow_pods(), "nonsense", |shadow| shadow.is_none()).await?;
        Ok(())
    })
    .await
}

/// Nothing of a pod runs whose next life is refused: it takes no traffic, and says why.
#[tokio::test]
async fn a_running_pod_whose_recreation_is_refused_is_unready_until_it_is_back() -> Result<()> {
    offloaded(async |namespace| {
        let pods = namespace.home_pods();
        pods.create(&PostParams::default(), &pod("web", SERVE)).await?;
        let born = wait::until_one("a ready pod", pods.clone(), "web", |pod| pod.is_some_and(is_ready)).await?;
        let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}});
        by_hand::apply::<ResourceQuota>(&namespace.away, &namespace.twin, quota).await?;
        let quotas = Api::<ResourceQuota>::namespaced(namespace.away.client.clone(), &namespace.twin);
        let counted =
            |quota: Option<&ResourceQuota>| quota.and_then(|quota| quota.status.as_ref()?.used.clone()).is_some();
        wait::until_one("the quota to count", quotas.clone(), "none", counted).await?;
        namespace.away_pods().delete("web", &DeleteParams::default()).await?;
        let out = |pod: Option<&Pod>| {
            let address = pod.and_then(|pod| pod.status.as_ref()?.pod_ip.clone());
            pod.is_some_and(|pod| !is_ready(pod) && told(pod).contains("quota")) && address.is_none()
        };
        wait::until_one("it to be unready, without an address, and say why", pods.clone(), "web", out).await?;
        quotas.delete("none", &DeleteParams::default()).await?;
        works(&namespace, "web", "quota").await?;
        let back = pods.get("web").await?;
        ensure!(back.metadata.uid == born.context("a pod")?.metadata.uid, "the local pod was replaced");
        Ok(())
    })
    .await
}
