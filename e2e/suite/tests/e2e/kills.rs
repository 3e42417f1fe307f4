//! Operators that die while pods are made.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use futures::try_join;
use kube::ResourceExt;
use kube::api::PostParams;
use spillway_e2e::{Observer, observe, wait};

use crate::pods::{SERVE, pod, ready};
use crate::{alone, victims};

const PODS: usize = 50;
const KILLS: usize = 10;

#[tokio::test]
async fn ten_kills_of_each_operator_lose_and_duplicate_no_pod() -> Result<()> {
    // Alone: what others count of an operator's attempts would begin anew with each of its lives.
    alone(async |namespace| {
        let remote = Observer::of(namespace.away_pods());
        let victims = victims::operators(&namespace);
        for round in 0..KILLS {
            // All three die while pods are being made; what was made must have crossed before the next round.
            let killing = try_join_all(victims.iter().map(|victim| victim.kill(round % 2 == 0)));
            let creating = async {
                for i in 0..PODS / KILLS {
                    let name = format!("p{round}-{i}");
                    namespace.home_pods().create(&PostParams::default(), &pod(&name, SERVE)).await?;
                    wait::until_one("a pod to cross", namespace.away_pods(), &name, |pod| pod.is_some()).await?;
                }
                anyhow::Ok(())
            };
            try_join!(killing, creating).with_context(|| format!("in round {round}"))?;
        }
        let home = ready(&namespace, PODS).await?;

        let away = namespace.away_pods().list(&Default::default()).await?;
        let origins: BTreeSet<_> = away.iter().map(observe::origin).collect();
        let locals: BTreeSet<_> = home.values().filter_map(|pod| pod.uid()).collect();
        ensure!(away.items.len() == PODS && origins == locals, "one remote pod for each local one");
        let runs = remote.runs();
        let rerun: Vec<_> = runs.iter().filter(|(_, pods)| pods.len() != 1).collect();
        ensure!(rerun.is_empty() && runs.len() == PODS, "each was made once: {rerun:?}");
        Ok(())
    })
    .await
}
