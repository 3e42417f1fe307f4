//! `make demo`: from nothing to a Deployment of 3 that runs in another cluster.

use std::process::Command;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use spillway_e2e::{Side, by_hand, install, wait};
use spillway_testbed::{Spec, Testbed};

const TESTBED: &str = "demo";
const NAMESPACE: &str = "demo";

#[tokio::main]
async fn main() -> Result<()> {
    step("Building Spillway's image (the first time about 10 minutes)");
    let image = tokio::task::spawn_blocking(install::build_image).await??;
    step("Bringing up two clusters, home and away (the first time, Kubernetes itself is built: about 20 minutes)");
    let testbed = tokio::task::spawn_blocking(move || -> Result<Testbed> {
        let testbed = install::clusters(TESTBED, &Spec::default(), &image)?;
        step("Installing Spillway with Helm: home is the consumer, away the provider");
        install::umbrella(&testbed, "home", &image, true, false)?;
        install::umbrella(&testbed, "away", &image, false, true)?;
        Ok(testbed)
    })
    .await??;
    let (home, away) = (Side::connect(&testbed, "home").await?, Side::connect(&testbed, "away").await?);
    step("Making the clusters known to each other, and away a virtual node of home");
    let peering = by_hand::peer(&home, &away).await?;
    by_hand::virtual_node(&home, &peering, "away").await?;
    wait::until_one("the virtual node to be Ready", Api::<Node>::all(home.client.clone()), "away", |node| {
        let conditions = node.and_then(|node| node.status.as_ref()).and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
    .await?;
    step("Offloading the namespace 'demo' and running a Deployment of 3 in it");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let apply = PatchParams::apply("demo").force();
    Api::<Namespace>::all(home.client.clone()).patch(NAMESPACE, &apply, &Patch::Apply(&namespace)).await?;
    let twin = by_hand::twin(&home, &away, &peering, NAMESPACE).await?;
    let deployments = Api::<Deployment>::namespaced(home.client.clone(), NAMESPACE);
    deployments.patch("web", &apply, &Patch::Apply(&deployment())).await?;
    wait::until_one("3 available pods", deployments, "web", |deployment| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.and_then(|status| status.available_replicas) == Some(3)
    })
    .await?;

    show(&testbed, "home", &["get", "nodes", "-o", "wide"])?;
    show(&testbed, "home", &["get", "pods", "-n", NAMESPACE, "-o", "wide"])?;
    show(&testbed, "away", &["get", "nodes", "-o", "wide"])?;
    show(&testbed, "away", &["get", "pods", "-n", &twin, "-o", "wide"])?;
    println!(
        "\nThe three pods are Running in home and really run in away.\n\n\
         Play on:\n  \
           export KUBECONFIG={}\n  \
           kubectl -n {NAMESPACE} scale deployment web --replicas 5\n  \
           kubectl --kubeconfig {} -n {twin} delete pod --all    # they come back, and home's pods stay\n  \
           cargo run -p spillway-testbed -- --name {TESTBED} cut home away    # and mend\n\n\
         Stop:\n  cargo run -p spillway-testbed -- --name {TESTBED} down",
        home.kubeconfig.display(),
        away.kubeconfig.display(),
    );
    Ok(())
}

fn deployment() -> serde_json::Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
            "nodeSelector": {"liqo.io/type": "virtual-node"},
            "tolerations": [{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}],
            "containers": [{"name": "web", "image": "busybox:testbed", "imagePullPolicy": "Never",
                            "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 86400 & wait"]}],
        }},
    }})
}

fn step(what: &str) {
    println!("\n==> {what}");
}

fn show(testbed: &Testbed, cluster: &str, args: &[&str]) -> Result<()> {
    println!("\n[{cluster}]$ kubectl {}", args.join(" "));
    let mut kubectl: Command = testbed.kubectl(cluster)?;
    let status = kubectl.args(args).status().context("kubectl cannot be run")?;
    if !status.success() {
        bail!("kubectl failed");
    }
    Ok(())
}
