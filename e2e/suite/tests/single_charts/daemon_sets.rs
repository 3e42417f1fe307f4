//! DaemonSets stay off virtual nodes, and the webhook that sees to it keeps its certificates whatever happens to them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Namespace as KubeNamespace, Pod, Secret};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use spillway_e2e::install::{self, NAMESPACE};
use spillway_e2e::{Namespace, process, wait};
use spillway_testbed::Testbed;

const WEBHOOK: &str = "daemonsets.admission.spillway.dev";
const CONFIGURATION: &str = "spillway-admission";
const SECRET: &str = "spillway-admission-ca";
const SKIP: &str = "liqo.io/webhook-skip";

pub async fn stay_off_virtual_nodes(namespace: &Namespace, virtual_node: &str) -> Result<()> {
    let daemon_sets = Api::namespaced(namespace.home.client.clone(), &namespace.name);
    until_called(&daemon_sets).await?;
    placement(namespace, &daemon_sets, virtual_node).await?;
    skipped_namespace(namespace).await?;
    Certificates::of(namespace).survive(&daemon_sets).await
}

/// In the umbrella one setting brings the operator along with its webhook.
pub fn umbrella_has_one_switch(testbed: &Testbed) -> Result<()> {
    let switch = "spillway-admission.daemonSets.keepOffVirtualNodes=true";
    let render = |settings: &[&str]| install::render(testbed, "home", "spillway", settings);
    ensure!(!render(&[])?.contains(CONFIGURATION), "off by default");
    let on = render(&[switch])?;
    ensure!(on.contains("/usr/bin/admission") && on.contains(WEBHOOK), "switched on:\n{on}");
    let useless = render(&[switch, "consumer.enabled=false"]);
    ensure!(useless.is_err_and(|error| error.to_string().contains("needs consumer.enabled")), "no virtual nodes");
    Ok(())
}

/// One that tolerates everything.
fn daemon_set(name: &str, labels: &Value) -> Result<DaemonSet> {
    Ok(serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {
            "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "busybox:testbed", "imagePullPolicy": "Never",
                            "command": ["sleep", "86400"]}],
        }},
    }}))?)
}

/// What the webhook added: all or nothing.
fn is_changed(daemon_set: &DaemonSet) -> bool {
    let affinity = json!(daemon_set.spec.template.spec.as_ref().map(|pod| &pod.affinity));
    let required = affinity.pointer("/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    let off = json!({"key": "liqo.io/type", "operator": "NotIn", "values": ["virtual-node"]});
    required == Some(&json!([{"matchExpressions": [off]}]))
}

async fn would_be_changed(daemon_sets: &Api<DaemonSet>) -> Result<bool> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    Ok(is_changed(&daemon_sets.create(&dry_run, &daemon_set("probe", &json!({}))?).await?))
}

/// Asks again until the API server gets an answer from the webhook: the way there (Service, kube-proxy) can't be watched.
async fn until_called(daemon_sets: &Api<DaemonSet>) -> Result<()> {
    let begun = Instant::now();
    while !would_be_changed(daemon_sets).await? {
        if begun.elapsed() > wait::DEADLINE {
            bail!("the API server does not reach the webhook");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// The nodes of its pods, once there are that many, all ready.
async fn nodes_of(namespace: &Namespace, api: &Api<DaemonSet>, name: &str, pods: i32) -> Result<BTreeSet<String>> {
    let settled = |daemon_set: &DaemonSet| {
        let Some(status) = &daemon_set.status else { return false };
        status.observed_generation == daemon_set.metadata.generation
            && status.desired_number_scheduled == pods
            && status.updated_number_scheduled == Some(pods)
            && status.number_ready == pods
    };
    let what = format!("{pods} ready pods of the DaemonSet");
    wait::until_one(&what, api.clone(), name, |daemon_set| daemon_set.is_some_and(settled)).await?;
    let selected = watcher::Config::default().labels(&format!("app={name}"));
    let all = usize::try_from(pods)?;
    let found = wait::until("no other pod of it", namespace.home_pods(), selected, |found| found.len() == all).await?;
    Ok(found.into_values().filter_map(|pod| pod.spec?.node_name).collect())
}

async fn placement(namespace: &Namespace, api: &Api<DaemonSet>, virtual_node: &str) -> Result<()> {
    let params = PostParams::default();
    let everywhere = api.create(&params, &daemon_set("everywhere", &json!({SKIP: "true"}))?).await?;
    ensure!(!is_changed(&everywhere), "a DaemonSet with the label is left alone");
    let at_home = api.create(&params, &daemon_set("at-home", &json!({}))?).await?;
    ensure!(is_changed(&at_home), "a DaemonSet without the label is changed");
    let nodes = nodes_of(namespace, api, "everywhere", 2).await?;
    ensure!(nodes.contains(virtual_node), "left alone, it goes to the virtual node as well: {nodes:?}");
    let nodes = nodes_of(namespace, api, "at-home", 1).await?;
    ensure!(!nodes.contains(virtual_node), "it has no pod on the virtual node: {nodes:?}");

    // One that was there before the webhook follows with its next rollout, and not before.
    let patch = async |change: Value| api.patch("everywhere", &PatchParams::default(), &Patch::Merge(change)).await;
    let unlabelled = patch(json!({"metadata": {"labels": {SKIP: null}}})).await?;
    ensure!(unlabelled.metadata.generation == everywhere.metadata.generation, "a label starts no rollout");
    let rolled_out = patch(json!({"spec": {"template": {"metadata": {"annotations": {"rollout": "1"}}}}})).await?;
    ensure!(is_changed(&rolled_out), "a new template is changed");
    let nodes = nodes_of(namespace, api, "everywhere", 1).await?;
    ensure!(!nodes.contains(virtual_node), "its pod on the virtual node is gone: {nodes:?}");
    Ok(())
}

async fn skipped_namespace(namespace: &Namespace) -> Result<()> {
    let name = format!("{}-skipped", namespace.name);
    let namespaces = Api::<KubeNamespace>::all(namespace.home.client.clone());
    let labelled = serde_json::from_value(json!({"metadata": {"name": name, "labels": {SKIP: "true"}}}))?;
    namespaces.create(&PostParams::default(), &labelled).await?;
    let changed = would_be_changed(&Api::namespaced(namespace.home.client.clone(), &name)).await?;
    namespaces.delete(&name, &DeleteParams::default()).await?;
    ensure!(!changed, "a DaemonSet in a namespace with the label is left alone");
    Ok(())
}

struct Certificates {
    secrets: Api<Secret>,
    configurations: Api<MutatingWebhookConfiguration>,
    pods: Api<Pod>,
}

impl Certificates {
    fn of(namespace: &Namespace) -> Self {
        let client = &namespace.home.client;
        Self {
            secrets: Api::namespaced(client.clone(), NAMESPACE),
            configurations: Api::all(client.clone()),
            pods: Api::namespaced(client.clone(), NAMESPACE),
        }
    }

    async fn survive(&self, daemon_sets: &Api<DaemonSet>) -> Result<()> {
        let first = self.secrets.get(SECRET).await?;
        self.killed(daemon_sets).await?;
        let after = self.secrets.get(SECRET).await?;
        ensure!(after.data == first.data && after.uid() == first.uid(), "the authority outlives the operator");
        self.wiped(&first, daemon_sets).await?;
        let renewed = self.renewed(&first, daemon_sets).await?;
        self.deleted(&renewed, daemon_sets).await
    }

    /// SIGKILL of the operator.
    async fn killed(&self, daemon_sets: &Api<DaemonSet>) -> Result<()> {
        let config = watcher::Config::default().labels("app.kubernetes.io/name=webhook");
        let before = wait::until("the operator", self.pods.clone(), config, |pods| pods.len() == 1).await?;
        let pod = before.into_values().next().context("a pod")?;
        let processes = process::of_pod(&pod.uid().context("a UID")?, "admission")?;
        ensure!(!processes.is_empty(), "no process of {}", pod.name_any());
        processes.into_iter().try_for_each(process::kill)?;
        let container = |pod: &Pod| pod.status.as_ref()?.container_statuses.as_ref()?.first().cloned();
        let restarts = container(&pod).context("a container")?.restart_count;
        wait::until_one("the operator to be back", self.pods.clone(), &pod.name_any(), |pod| {
            pod.and_then(container).is_some_and(|container| container.ready && container.restart_count > restarts)
        })
        .await?;
        until_called(daemon_sets).await
    }

    /// Without the caBundle the API server trusts nobody; it is restored.
    async fn wiped(&self, authority: &Secret, daemon_sets: &Api<DaemonSet>) -> Result<()> {
        let wipe = json!({"webhooks": [{"name": WEBHOOK, "clientConfig": {"caBundle": null}}]});
        let wiped = self.configurations.patch(CONFIGURATION, &PatchParams::default(), &Patch::Strategic(wipe)).await?;
        ensure!(bundle(Some(&wiped)).is_none(), "the caBundle is gone");
        self.trusted(authority).await?;
        until_called(daemon_sets).await
    }

    /// An authority that nears its end gets a successor, and is trusted until replicas have changed over.
    async fn renewed(&self, old: &Secret, daemon_sets: &Api<DaemonSet>) -> Result<Secret> {
        let soon = ByteString(b"2026-01-01T00:00:00Z".to_vec());
        let age = Patch::Merge(json!({"data": {"expires": soon}}));
        self.secrets.patch(SECRET, &PatchParams::default(), &age).await?;
        let expired = part(old, "tls.crt")?;
        let follows = |secret: &Secret| part(secret, "previous.crt").ok().as_ref() == Some(&expired);
        let new =
            wait::until_one("a new authority", self.secrets.clone(), SECRET, |secret| secret.is_some_and(follows));
        let new = new.await?.context("a Secret")?;
        self.trusted(&new).await?;
        until_called(daemon_sets).await?;
        Ok(new)
    }

    /// A new authority that has nothing to do with the old one: only a certificate of the new one is trusted.
    async fn deleted(&self, old: &Secret, daemon_sets: &Api<DaemonSet>) -> Result<()> {
        self.secrets.delete(SECRET, &DeleteParams::default()).await?;
        let another = |secret: &Secret| secret.uid() != old.uid();
        let new = wait::until_one("another Secret", self.secrets.clone(), SECRET, |secret| secret.is_some_and(another));
        let new = new.await?.context("a Secret")?;
        self.trusted(&new).await?;
        until_called(daemon_sets).await
    }

    /// Waits until the webhook trusts this authority, the one before it, and no other.
    async fn trusted(&self, authority: &Secret) -> Result<()> {
        let mut wanted = part(authority, "tls.crt")?.0;
        wanted.extend(part(authority, "previous.crt").unwrap_or_default().0);
        let wanted = Some(ByteString(wanted));
        let trusts = |configuration: Option<&MutatingWebhookConfiguration>| bundle(configuration) == wanted;
        wait::until_one("the caBundle", self.configurations.clone(), CONFIGURATION, trusts).await?;
        Ok(())
    }
}

fn part(secret: &Secret, key: &str) -> Result<ByteString> {
    secret.data.as_ref().and_then(|data| data.get(key)).cloned().with_context(|| format!("the Secret has no {key}"))
}

fn bundle(configuration: Option<&MutatingWebhookConfiguration>) -> Option<ByteString> {
    configuration?.webhooks.as_ref()?.first()?.client_config.ca_bundle.clone()
}
