//! What changes of a pod while it runs.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use spillway_e2e::{Namespace, by_hand, wait};

use crate::offloaded;
use crate::pods::{SERVE, is_ready, pod, ready};

fn merge(patch: Value) -> Patch<Value> {
    Patch::Merge(patch)
}

async fn away(namespace: &Namespace, what: &str, seen: impl Fn(&Pod) -> bool) -> Result<Pod> {
    let found = wait::until_one(what, namespace.away_pods(), "web", |pod| pod.is_some_and(&seen)).await?;
    found.context("a pod")
}

async fn home(namespace: &Namespace, what: &str, seen: impl Fn(&Pod) -> bool) -> Result<Pod> {
    let found = wait::until_one(what, namespace.home_pods(), "web", |pod| pod.is_some_and(&seen)).await?;
    found.context("a pod")
}

/// Whether an ephemeral container named `debug` runs in it.
pub fn ephemeral_runs(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref().and_then(|status| status.ephemeral_container_statuses.as_ref());
    statuses
        .into_iter()
        .flatten()
        .any(|status| status.name == "debug" && status.state.as_ref().is_some_and(|state| state.running.is_some()))
}

#[tokio::test]
async fn labels_annotations_images_and_tolerations_follow_a_running_pod() -> Result<()> {
    offloaded(async |namespace| {
        let mut web = pod("web", SERVE);
        web.labels_mut().insert("track".into(), "stable".into());
        namespace.home_pods().create(&PostParams::default(), &web).await?;
        ready(&namespace, 1).await?;
        let before = namespace.away_pods().get("web").await?;
        // The provider's own label must survive everything that follows.
        let theirs = json!({"metadata": {"labels": {"provider.example.com/cost": "low"}}});
        namespace.away_pods().patch("web", &PatchParams::default(), &merge(theirs)).await?;

        let change = json!({"metadata": {
            "labels": {"track": null, "quarantine": "true"}, "annotations": {"note": "changed"},
        }});
        namespace.home_pods().patch("web", &PatchParams::default(), &merge(change)).await?;
        let after = away(&namespace, "the labels to follow", |pod| pod.labels().contains_key("quarantine")).await?;
        assert_eq!(after.labels().get("track"), None, "a label taken away at home goes there as well");
        assert_eq!(after.labels().get("provider.example.com/cost").map(String::as_str), Some("low"));
        assert_eq!(after.annotations().get("note").map(String::as_str), Some("changed"));

        let tolerations = namespace.home_pods().get("web").await?.spec.and_then(|spec| spec.tolerations);
        let mut tolerations = json!(tolerations.unwrap_or_default());
        tolerations.as_array_mut().context("a list")?.push(json!({"key": "later", "operator": "Exists"}));
        let params = PatchParams::default();
        namespace.home_pods().patch("web", &params, &merge(json!({"spec": {"tolerations": tolerations}}))).await?;
        away(&namespace, "the toleration to follow", |pod| {
            let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
            tolerations.into_iter().flatten().any(|toleration| toleration.key.as_deref() == Some("later"))
        })
        .await?;

        // Another name of the same image: the kubelet restarts the container with it.
        let image = json!({"spec": {"containers": [{"name": "main", "image": "docker.io/library/busybox:testbed"}]}});
        namespace.home_pods().patch("web", &params, &Patch::Strategic(image)).await?;
        let named = |pod: &Pod| {
            let spec = pod.spec.as_ref().map(|spec| &spec.containers[0]);
            spec.and_then(|container| container.image.as_deref()) == Some("docker.io/library/busybox:testbed")
        };
        let after = away(&namespace, "the image to follow", named).await?;
        assert_eq!(after.uid(), before.uid(), "all that to the same pod");
        let restarted = |pod: &Pod| {
            let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
            is_ready(pod) && statuses.is_some_and(|statuses| statuses[0].restart_count == 1)
        };
        home(&namespace, "the restart with the new image", restarted).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn kubectl_debug_puts_a_container_into_a_running_pod_and_it_survives_a_recreation() -> Result<()> {
    offloaded(async |namespace| {
        namespace.home_pods().create(&PostParams::default(), &pod("web", SERVE)).await?;
        ready(&namespace, 1).await?;
        let mut kubectl = crate::testbed().kubectl("home")?;
        kubectl.args(["debug", "web", "-n", &namespace.name, "--image=busybox:testbed", "--container=debug"]);
        kubectl.args(["--profile=general", "--", "sleep", "86400"]);
        spillway_e2e::install::succeed(&mut kubectl)?;
        home(&namespace, "the debug container to run", ephemeral_runs).await?;

        let before = namespace.away_pods().get("web").await?;
        ensure!(ephemeral_runs(&before), "it runs over there");
        namespace.away_pods().delete("web", &DeleteParams::default()).await?;
        away(&namespace, "another pod with the debug container", |pod| {
            pod.uid() != before.uid() && ephemeral_runs(pod)
        })
        .await?;
        home(&namespace, "and at home again", |pod| is_ready(pod) && ephemeral_runs(pod)).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_pod_is_resized_in_place() -> Result<()> {
    offloaded(async |namespace| {
        let mut web = pod("web", SERVE);
        let resources = |cpu: &str| json!({"requests": {"cpu": cpu, "memory": "16Mi"}, "limits": {"cpu": "200m", "memory": "32Mi"}});
        web.spec.as_mut().context("a spec")?.containers[0].resources = Some(serde_json::from_value(resources("10m"))?);
        namespace.home_pods().create(&PostParams::default(), &web).await?;
        ready(&namespace, 1).await?;
        let before = namespace.away_pods().get("web").await?;
        let patch = json!({"spec": {"containers": [{"name": "main", "resources": resources("30m")}]}});
        let pods: Api<Pod> = namespace.home_pods();
        pods.patch_subresource("resize", "web", &PatchParams::default(), &Patch::Strategic(patch)).await?;
        let allocated = |pod: &Pod| {
            let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
            let resources = statuses.and_then(|statuses| statuses[0].resources.as_ref());
            let cpu = resources.and_then(|resources| resources.requests.as_ref()).and_then(|requests| requests.get("cpu"));
            cpu.is_some_and(|cpu| cpu.0 == "30m")
        };
        let after = away(&namespace, "the kubelet to resize it", allocated).await?;
        assert_eq!(after.uid(), before.uid());
        let local = home(&namespace, "the new size at home", allocated).await?;
        let restarts = local.status.and_then(|status| status.container_statuses).context("statuses")?[0].restart_count;
        assert_eq!(restarts, 0, "in place");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_change_that_the_provider_refuses_is_told_at_home_until_it_is_taken() -> Result<()> {
    offloaded(async |namespace| {
        namespace.home_pods().create(&PostParams::default(), &pod("web", SERVE)).await?;
        ready(&namespace, 1).await?;
        // Of the pod itself, and not of its ShadowPod: the longer way.
        let refuses = json!({
            "failurePolicy": "Fail", "validations": [{"expression": "!('forbidden' in object.metadata.?labels.orValue({}))",
            "message": "that label is not for tenants"}],
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["UPDATE"],
            "resources": ["pods"]}], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.twin}}},
        });
        let name = &namespace.name;
        let policy = json!({"metadata": {"name": name}, "spec": refuses});
        by_hand::apply_cluster::<ValidatingAdmissionPolicy>(&namespace.away, policy).await?;
        let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
        by_hand::apply_cluster::<ValidatingAdmissionPolicyBinding>(&namespace.away, binding).await?;
        in_force(&namespace).await?;

        let label = |value: Value| merge(json!({"metadata": {"labels": {"forbidden": value}}}));
        namespace.home_pods().patch("web", &PatchParams::default(), &label(json!("1"))).await?;
        let refusal = |pod: &Pod| {
            let conditions = pod.status.as_ref()?.conditions.as_ref()?;
            let refused = conditions.iter().find(|one| one.type_ == "offloading.spillway.dev/UpdateRefused")?;
            refused.message.clone()
        };
        let told = |pod: &Pod| is_ready(pod) && refusal(pod).is_some_and(|why| why.contains("not for tenants"));
        home(&namespace, "the refusal on a pod that runs on", told).await?;
        namespace.home_pods().patch("web", &PatchParams::default(), &label(Value::Null)).await?;
        home(&namespace, "nothing more of it", |pod| is_ready(pod) && refusal(pod).is_none()).await?;
        let params = DeleteParams::default();
        let client = namespace.away.client.clone();
        Api::<ValidatingAdmissionPolicyBinding>::all(client.clone()).delete(name, &params).await?;
        Api::<ValidatingAdmissionPolicy>::all(client).delete(name, &params).await?;
        Ok(())
    })
    .await
}

/// The API server tells nobody when it has taken a policy up: a change that changes nothing is tried until it is refused.
async fn in_force(namespace: &Namespace) -> Result<()> {
    let forbidden = merge(json!({"metadata": {"labels": {"forbidden": "1"}}}));
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let refused = async {
        while namespace.away_pods().patch("web", &dry, &forbidden).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(wait::DEADLINE, refused).await.context("the policy is never in force")
}
