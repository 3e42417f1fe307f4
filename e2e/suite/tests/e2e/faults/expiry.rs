//! Watches that cannot be resumed: the API server that comes back remembers nothing of the time before.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use spillway_e2e::audit::Audit;
use spillway_e2e::{Observer, persist, wait};

use super::{converged, cut_while, patient};
use crate::pods::{SERVE, is_ready};
use crate::{alone, testbed, victims};

#[tokio::test]
async fn watches_that_expired_during_a_cut_miss_nothing() -> Result<()> {
    alone(async |namespace| {
        let (home, away) = (namespace.home_pods(), namespace.away_pods());
        for name in ["stays", "goes", "lost"] {
            home.create(&PostParams::default(), &patient(name, SERVE)).await?;
        }
        let before = crate::pods::ready(&namespace, 3).await?;
        let seen = Observer::of(away.clone());
        let former = away.get("lost").await?.uid();
        let audit = Audit::from_now(testbed(), "away")?;

        let mended = cut_while(Duration::ZERO, async {
            away.delete("lost", &DeleteParams::default()).await?;
            let again = |pod: Option<&k8s_openapi::api::core::v1::Pod>| {
                pod.is_some_and(|pod| pod.uid() != former && is_ready(pod))
            };
            wait::until_one("the lost pod, made again", away.clone(), "lost", again).await?;
            home.delete("goes", &DeleteParams::default()).await?;
            // The new server's memory begins with its start: older resource versions are answered with 410.
            victims::restart("away/kube-apiserver").await?;
            persist::create(&home, &patient("born", SERVE)).await
        })
        .await?;

        for pods in [&home, &away] {
            wait::until_one("the deleted pod to go", pods.clone(), "goes", |pod| pod.is_none()).await?;
        }
        let after = crate::pods::ready(&namespace, 3).await?;
        converged("all is as it should be", mended)?;
        for name in ["stays", "lost"] {
            ensure!(after[name].uid() == before[name].uid(), "the local pod {name} was replaced");
            let runs = seen.runs();
            let pods = runs.get(&after[name].uid().context("a UID")?).context("a remote pod")?;
            ensure!(pods.len() == if name == "lost" { 2 } else { 1 }, "{name} ran in {pods:?}");
        }
        let requests = audit.requests()?;
        let lists = requests.iter().filter(|request| request.namespace == namespace.twin && request.verb == "list");
        ensure!(lists.count() > 0, "no watch had expired: nothing was listed anew");
        Ok(())
    })
    .await
}
