//! A namespace per test, offloaded, removed at the end, with a dump of everything on failure.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use anyhow::{Context, Result};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Namespace as KubeNamespace, Pod};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use spillway_api::offloading::ShadowPod;
use spillway_testbed::Testbed;

use crate::by_hand::{self, Peering};
use crate::cluster::Side;
use crate::{dump, persist};

/// An offloaded namespace and its two clusters.
#[derive(Clone)]
pub struct Namespace {
    pub home: Side,
    pub away: Side,
    pub peering: Peering,
    pub name: String,
    pub twin: String,
}

impl Namespace {
    pub fn home_pods(&self) -> Api<Pod> {
        Api::namespaced(self.home.client.clone(), &self.name)
    }

    pub fn away_pods(&self) -> Api<Pod> {
        Api::namespaced(self.away.client.clone(), &self.twin)
    }

    pub fn shadow_pods(&self) -> Api<ShadowPod> {
        Api::namespaced(self.away.client.clone(), &self.twin)
    }
}

/// Runs a test in a namespace of its own that is offloaded to `away`.
pub async fn offloaded<F>(testbed: &Testbed, test: impl FnOnce(Namespace) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let (home, away) = (Side::connect(testbed, "home").await?, Side::connect(testbed, "away").await?);
    let peering = by_hand::peer(&home, &away).await?;
    let created: KubeNamespace = serde_json::from_value(json!({"metadata": {"generateName": "e2e-"}}))?;
    let created = Api::all(home.client.clone()).create(&PostParams::default(), &created).await?;
    let name = created.metadata.name.context("a namespace without a name")?;
    let twin = by_hand::twin(&home, &away, &peering, &name).await?;
    let namespace = Namespace { home, away, peering, name, twin };

    let outcome = AssertUnwindSafe(test(namespace.clone())).catch_unwind().await;
    if !matches!(outcome, Ok(Ok(()))) {
        dump::print(testbed, &[("home", &namespace.name), ("away", &namespace.twin)]);
    }
    let cleaned = clean(&namespace).await;
    match outcome {
        Ok(result) => result.and(cleaned),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

async fn clean(namespace: &Namespace) -> Result<()> {
    let Namespace { home, away, peering, name, twin } = namespace;
    let params = DeleteParams::default();
    // A test may have deleted them itself.
    persist::delete(&Api::<KubeNamespace>::all(home.client.clone()), name, &params).await?;
    let gone = |namespace: Option<&KubeNamespace>| namespace.is_none();
    crate::wait::until_one("the test's namespace to go", Api::<KubeNamespace>::all(home.client.clone()), name, gone)
        .await?;
    by_hand::untwin(home, peering, name).await?;
    persist::delete(&Api::<KubeNamespace>::all(away.client.clone()), twin, &params).await?;
    crate::wait::until_one("its twin to go", Api::<KubeNamespace>::all(away.client.clone()), twin, gone).await?;
    Ok(())
}
