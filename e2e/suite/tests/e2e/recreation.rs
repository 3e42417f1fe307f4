//! What the provider does by itself.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::watcher::{self, Event};
use spillway_e2e::{Namespace, wait};
use spillway_testbed::Scope;

use crate::pods::{SERVE, is_ready, pod, ready};
use crate::{alone, testbed};

/// How long there was no remote pod of that name, after what is done to it.
pub async fn replaced_after(
    namespace: &Namespace,
    name: &str,
    disrupt: impl AsyncFnOnce() -> Result<()>,
) -> Result<Duration> {
    let before = namespace.away_pods().get(name).await?.uid();
    let (mut gone, mut back, mut disrupt) = (None, None, Some(disrupt));
    let events = watcher::watcher(namespace.away_pods(), watcher::Config::default());
    pin_mut!(events);
    let watching = async {
        while let Some(event) = events.next().await {
            match event? {
                Event::InitDone => match disrupt.take() {
                    Some(disrupt) => disrupt().await?,
                    None => anyhow::bail!("the watch was interrupted"),
                },
                Event::Delete(_) => gone = Some(Instant::now()),
                Event::Apply(pod) if pod.name_any() == name && pod.uid() != before => {
                    back = Some(Instant::now());
                    break;
                }
                _ => {}
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(wait::DEADLINE, watching).await.context("no new pod")??;
    let (gone, back) = (gone.context("the old pod went first")?, back.context("a new pod")?);
    Ok(back.saturating_duration_since(gone))
}

#[tokio::test]
async fn a_remote_pod_deleted_by_hand_is_back_within_a_second_and_its_address_follows() -> Result<()> {
    // Alone, because another test kills the operator that is being timed.
    alone(async |namespace| {
        namespace.home_pods().create(&PostParams::default(), &pod("web", SERVE)).await?;
        let local = ready(&namespace, 1).await?.remove("web").context("the pod")?;
        let took = replaced_after(&namespace, "web", async || {
            namespace.away_pods().delete("web", &DeleteParams::default()).await?;
            Ok(())
        })
        .await?;
        println!("recreated {took:?} after the old pod was gone");
        ensure!(took < Duration::from_secs(1), "recreated only after {took:?}");

        let restarted = |pod: Option<&Pod>| {
            pod.filter(|pod| is_ready(pod))
                .and_then(|pod| pod.status.as_ref())
                .and_then(|status| status.container_statuses.as_ref())
                .is_some_and(|containers| containers[0].restart_count == 1)
        };
        let after = wait::until_one("one restart shown at home", namespace.home_pods(), "web", restarted).await?;
        let after = after.context("the pod")?;
        assert_eq!(after.uid(), local.uid(), "the local pod was not replaced");
        let remote = namespace.away_pods().get("web").await?;
        ensure!(addresses(&remote) != addresses(&local), "the new pod has another address");
        assert_eq!(addresses(&after), addresses(&remote), "and nothing is left of the old one");
        Ok(())
    })
    .await
}

/// A merge by key would keep an old address beside the new one.
fn addresses(pod: &Pod) -> Option<(String, Vec<String>)> {
    let status = pod.status.as_ref()?;
    let all = status.pod_ips.iter().flatten().map(|address| address.ip.clone()).collect();
    Some((status.pod_ip.clone()?, all))
}

/// Also in `partition.rs`, but there the consumer's side is looked at.
#[tokio::test]
async fn the_provider_needs_no_consumer_to_recreate() -> Result<()> {
    alone(async |namespace| {
        namespace.home_pods().create(&PostParams::default(), &pod("web", SERVE)).await?;
        ready(&namespace, 1).await?;
        let before = namespace.away_pods().get("web").await?.uid();
        testbed().cut("home", "away", Scope::All)?;
        namespace.away_pods().delete("web", &DeleteParams::default()).await?;
        let recreated = wait::until_one("a new pod during the cut", namespace.away_pods(), "web", |pod| {
            pod.is_some_and(|pod| pod.uid() != before && is_ready(pod))
        });
        let recreated = recreated.await;
        testbed().mend("home", "away")?;
        recreated.map(drop)
    })
    .await
}
