//! Stock `kubectl drain` on a virtual node.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use kube::runtime::watcher::Config;
use serde_json::json;
use spillway_e2e::{install, wait};

use crate::node::{own_ready, remove, spec_on};
use crate::pods::{SERVE, is_ready, ready};
use crate::{offloaded, testbed};

#[tokio::test]
async fn kubectl_drains_and_uncordons_the_virtual_node() -> Result<()> {
    offloaded(async |namespace| {
        let name = "away-kubectl";
        own_ready(&namespace, name, json!({})).await?;
        let (client, params) = (&namespace.home.client, PostParams::default());
        let mut spec = spec_on(name, SERVE);
        spec["volumes"] = json!([{"name": "scratch", "emptyDir": {}}]);
        spec["containers"][0]["volumeMounts"] = json!([{"name": "scratch", "mountPath": "/scratch"}]);
        let of = |app: &str| {
            json!({"selector": {"matchLabels": {"app": app}},
                   "template": {"metadata": {"labels": {"app": app}}, "spec": spec}})
        };
        let mut web = of("web");
        web["replicas"] = json!(2);
        let deployment = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": web}))?;
        Api::<Deployment>::namespaced(client.clone(), &namespace.name).create(&params, &deployment).await?;
        let daemon_set = serde_json::from_value(json!({"metadata": {"name": "daemon"}, "spec": of("daemon")}))?;
        Api::<DaemonSet>::namespaced(client.clone(), &namespace.name).create(&params, &daemon_set).await?;
        let before = ready(&namespace, 3).await?;

        let mut kubectl = testbed().kubectl("home")?;
        let drain = ["drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=100s"];
        install::succeed(kubectl.args(drain))?;
        let drained = |pods: &BTreeMap<String, Pod>| {
            let kept = |pod: &Pod| before.contains_key(&pod.name_any());
            pods.len() == 3 && pods.values().all(|pod| kept(pod) == pod.name_any().starts_with("daemon-"))
        };
        let pods = wait::until("others in their place", namespace.home_pods(), Config::default(), drained).await?;
        let waiting = pods.values().filter(|pod| !is_ready(pod)).count();
        ensure!(waiting == 2, "{waiting} of the new ones wait for the node, and the DaemonSet's pod runs on");

        let mut kubectl = testbed().kubectl("home")?;
        install::succeed(kubectl.args(["uncordon", name]))?;
        ready(&namespace, 3).await?;
        remove(&namespace, name).await
    })
    .await
}
