//! Run by the chart before this operator is uninstalled: without it, nobody would release what it holds by finalizers.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use kube::api::{Api, DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use spillway_api::RawPod;
use spillway_api::k8s::{ClusterRole, Deployment};
use spillway_api::offloading::ShadowPod;
use spillway_api::well_known::{annotation, finalizer, label};
use spillway_operator::client::{self, Cluster};
use spillway_operator::error::{found, only, settled};
use spillway_operator::metrics::Metrics;
use tokio::time::Instant;

use crate::Args;

/// As the chart names them.
const DEPLOYMENT: &str = "spillway-shadow-pod";
const TENANTS_ROLE: &str = "liqo-virtual-kubelet-remote";

/// Deleted ShadowPods are given this long to go as they should, with this operator at work; then they are let go.
const PATIENCE: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(120);
const PERIOD: Duration = Duration::from_secs(1);

/// Fails while there are ShadowPods; if it was told to use force, removes them first.
pub async fn check(args: Args) -> anyhow::Result<()> {
    let config = client::config(args.common.kubeconfig.as_deref()).await?;
    let client = Cluster::local(&config, &Metrics::default())?.client;
    let left = Left::list(&client).await?;
    if left.is_empty() {
        return Ok(());
    }
    let deployments = Api::<Deployment>::namespaced(client.clone(), &args.namespace);
    let deployment = deployments.get_metadata_opt(DEPLOYMENT).await.context("cannot read the Deployment")?;
    let force = deployment.is_some_and(|deployment| {
        deployment.annotations().get(annotation::FORCE_UNINSTALL).map(String::as_str) == Some("true")
    });
    if !force {
        bail!("{}", left.refusal(&args.namespace));
    }
    remove_all(&client).await
}

async fn remove_all(client: &Client) -> anyhow::Result<()> {
    // Else consumers would make anew what is deleted here.
    let roles = Api::<ClusterRole>::all(client.clone());
    settled(roles.delete(TENANTS_ROLE, &DeleteParams::default()).await)
        .context("cannot take the tenants' rights away")?;
    let begun = Instant::now();
    loop {
        let left = Left::list(client).await?;
        if left.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > LONGEST {
            bail!("some are still there: {}", left.counted());
        }
        left.remove(client, begun.elapsed() > PATIENCE).await?;
        tokio::time::sleep(PERIOD).await;
    }
}

/// What would be left behind. Only metadata: also what this build can't read counts.
struct Left {
    shadows: Vec<PartialObjectMeta<ShadowPod>>,
    pods: Vec<PartialObjectMeta<RawPod>>,
}

impl Left {
    async fn list(client: &Client) -> anyhow::Result<Self> {
        let (shadows, pods) = (Api::<ShadowPod>::all(client.clone()), Api::<RawPod>::all(client.clone()));
        // Where not even the kind is known (any more), there are none.
        let shadows = found(shadows.list_metadata(&ListParams::default()).await).context("cannot list ShadowPods")?;
        let shadows = shadows.map(|list| list.items).unwrap_or_default();
        let ours = ListParams::default().labels(&format!("{}={}", label::MANAGED_BY, label::MANAGED_BY_SHADOW_POD));
        let pods = pods.list_metadata(&ours).await.context("cannot list pods")?.items;
        let held = |pod: &PartialObjectMeta<RawPod>| pod.finalizers().iter().any(|name| name == finalizer::OUTCOME);
        Ok(Self { shadows, pods: pods.into_iter().filter(held).collect() })
    }

    fn is_empty(&self) -> bool {
        self.shadows.is_empty() && self.pods.is_empty()
    }

    async fn remove(&self, client: &Client, by_force: bool) -> anyhow::Result<()> {
        for pod in self.pods.iter().filter(|_| by_force) {
            let (pods, uid) =
                (Api::<RawPod>::namespaced(client.clone(), &namespace(pod)), pod.uid().unwrap_or_default());
            if pod.metadata.deletion_timestamp.is_none() {
                settled(pods.delete(&pod.name_any(), &this(&uid)).await)?;
            }
            let patch = json!({"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [finalizer::OUTCOME]}});
            settled(pods.patch_metadata(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(patch)).await)?;
        }
        for shadow in &self.shadows {
            let shadows = Api::<ShadowPod>::namespaced(client.clone(), &namespace(shadow));
            let (name, uid) = (shadow.name_any(), shadow.uid().unwrap_or_default());
            if shadow.metadata.deletion_timestamp.is_none() {
                settled(shadows.delete(&name, &this(&uid)).await)?;
            } else if by_force {
                let others: Vec<_> = shadow.finalizers().iter().filter(|name| *name != finalizer::SHADOW_POD).collect();
                let version = shadow.resource_version();
                let patch = json!({"metadata": {"uid": uid, "resourceVersion": version, "finalizers": others}});
                settled(shadows.patch_metadata(&name, &PatchParams::default(), &Patch::Merge(patch)).await)?;
            }
        }
        Ok(())
    }

    fn counted(&self) -> String {
        let in_words = |what: &str, namespaces: Vec<String>| {
            let mut counts = BTreeMap::<_, usize>::new();
            for namespace in &namespaces {
                *counts.entry(namespace).or_default() += 1;
            }
            let counts: Vec<_> = counts.iter().map(|(namespace, count)| format!("{namespace}: {count}")).collect();
            (!namespaces.is_empty()).then(|| format!("{} {what} ({})", namespaces.len(), counts.join(", ")))
        };
        let shadows = in_words("ShadowPods", self.shadows.iter().map(namespace).collect());
        let pods = in_words("pods of theirs", self.pods.iter().map(namespace).collect());
        [shadows, pods].into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }

    fn refusal(&self, namespace: &str) -> String {
        format!(
            "there are {}: other clusters run pods here, and without this operator they can't be deleted any more. Have \
             those clusters delete or drain their pods and end the peering, then uninstall again. To delete them all by \
             force: kubectl -n {namespace} annotate deployment {DEPLOYMENT} {}=true, then uninstall again. (helm uninstall \
             --no-hooks skips this check; what is left then hangs in deletion until the finalizers {} and {} are taken off \
             by hand.)",
            self.counted(),
            annotation::FORCE_UNINSTALL,
            finalizer::SHADOW_POD,
            finalizer::OUTCOME
        )
    }
}

fn namespace<K>(object: &PartialObjectMeta<K>) -> String {
    object.metadata.namespace.clone().unwrap_or_default()
}

fn this(uid: &str) -> DeleteParams {
    DeleteParams { preconditions: Some(only(uid.to_owned())), ..DeleteParams::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::PartialObjectMetaExt;
    use spillway_api::k8s::ObjectMeta;

    fn meta(namespace: &str) -> ObjectMeta {
        ObjectMeta { namespace: Some(namespace.to_owned()), ..ObjectMeta::default() }
    }

    #[test]
    fn a_refusal_says_how_many_are_where_and_what_to_do() {
        let shadows = ["a", "b", "b"].map(|namespace| meta(namespace).into_response_partial()).into();
        let left = Left { shadows, pods: vec![meta("b").into_response_partial()] };
        assert_eq!(left.counted(), "3 ShadowPods (a: 1, b: 2) and 1 pods of theirs (b: 1)");
        let refusal = left.refusal("liqo");
        assert!(refusal.contains(
            "kubectl -n liqo annotate deployment spillway-shadow-pod offloading.spillway.dev/force-uninstall=true"
        ));
        assert!(!left.is_empty() && Left { shadows: vec![], pods: vec![] }.is_empty());
    }
}
