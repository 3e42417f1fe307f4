//! The pods that are measured, and how they come and go.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use spillway_api::well_known::{label, taint};
use tokio::task::JoinSet;

use crate::plan::{Load, System};

const NAME: &str = "load";

/// One namespace that pods are created in.
#[derive(Clone)]
pub struct Target {
    pub client: Client,
    pub namespace: String,
    pub system: System,
}

impl Target {
    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn create_deployment(&self, pods: u32) -> Result<()> {
        let labels = json!({"app": NAME});
        let deployment = serde_json::from_value(json!({
            "metadata": {"name": NAME},
            "spec": {
                "replicas": pods, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod_spec(self.system)},
            },
        }))?;
        self.deployments().create(&PostParams::default(), &deployment).await.context("cannot create the Deployment")?;
        Ok(())
    }

    pub async fn create_pod(&self, name: &str) -> Result<()> {
        let pod = serde_json::from_value(
            json!({"metadata": {"name": name, "labels": {"app": NAME}}, "spec": pod_spec(self.system)}),
        )?;
        self.pods().create(&PostParams::default(), &pod).await.with_context(|| format!("cannot create pod {name}"))?;
        Ok(())
    }
}

/// A pause pod that is bound to where the system under test runs it.
fn pod_spec(system: System) -> Value {
    let selector = match system {
        System::Vanilla => json!({"type": "kwok"}),
        System::Spillway => json!({label::NODE_TYPE: label::NODE_TYPE_VIRTUAL}),
    };
    json!({
        "containers": [{"name": "pause", "image": "pause"}],
        "nodeSelector": selector,
        "tolerations": [{"key": taint::NOT_ALLOWED, "operator": "Exists"}],
    })
}

/// Orders so many pods on every target at once; returns when all are ordered.
pub async fn create(targets: &[Target], load: Load, pods: u32) -> Result<()> {
    match load {
        Load::FlatOut => {
            futures::future::try_join_all(targets.iter().map(|target| target.create_deployment(pods))).await?;
        }
        Load::Offered(rate) => {
            let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate.max(1));
            let mut creating = JoinSet::new();
            for index in 0..pods {
                ticks.tick().await;
                for target in targets {
                    let target = target.clone();
                    creating.spawn(async move { target.create_pod(&format!("{NAME}-{index:05}")).await });
                }
            }
            while let Some(created) = creating.join_next().await {
                created??;
            }
        }
    }
    Ok(())
}

/// Orders them away, as a user would.
pub async fn delete(targets: &[Target], load: Load) -> Result<()> {
    for target in targets {
        match load {
            Load::FlatOut => {
                target.deployments().delete(NAME, &DeleteParams::background()).await?;
            }
            Load::Offered(_) => {
                target.pods().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
            }
        }
    }
    Ok(())
}
