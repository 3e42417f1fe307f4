//! 300 watches through the operator's own clients: with one HTTP/2 connection 200 of them would starve in silence.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::runtime::watcher;
use serde_json::json;
use spillway_e2e::{cluster, wait};
use spillway_operator::Index;
use spillway_operator::client::Cluster;
use spillway_operator::health::{self, Gate};
use spillway_operator::index::Scope;
use spillway_operator::metrics::Metrics;
use spillway_operator::peer::Kicks;
use spillway_operator::watch::Watch;
use tokio_util::sync::CancellationToken;

use crate::offloaded;

const WATCHES: usize = 300;

#[tokio::test]
async fn three_hundred_watches_all_see_an_event() -> Result<()> {
    offloaded(async |namespace| {
        let metrics = Metrics::default();
        let config = cluster::config(&namespace.home.kubeconfig).await?;
        let clients = Cluster::local(&config, &metrics)?;
        let (stop, saw) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let told = Arc::new(tokio::sync::Notify::new());
        let (mut tasks, mut lists) = (tokio::task::JoinSet::new(), Vec::new());
        for _ in 0..WATCHES {
            let (lease, synced) = (clients.watches.lease()?, Gate::default());
            lists.push(synced.clone());
            let watch = Watch {
                cluster: "local",
                resource: "configmaps",
                scope: Scope::Cluster,
                config: watcher::Config::default().fields("metadata.name=late"),
                metrics: metrics.clone(),
                kicks: Kicks::default(),
                synced,
                on_refusal: None,
            };
            let api = Api::namespaced(lease.client.clone(), &namespace.name);
            let (saw, told, stop) = (saw.clone(), told.clone(), stop.clone());
            tasks.spawn(async move {
                let _lease = lease;
                let notify = move |_| {
                    saw.fetch_add(1, Ordering::SeqCst);
                    told.notify_one();
                };
                watch.run::<ConfigMap, _>(api, Arc::new(Index::default()), Some, notify, stop).await;
            });
        }
        let synced = tokio::time::timeout(wait::DEADLINE, health::all_opened(&lists, &stop)).await;
        synced.context("not every watch has listed")?;
        let late = serde_json::from_value(json!({"metadata": {"name": "late"}}))?;
        Api::<ConfigMap>::namespaced(namespace.home.client.clone(), &namespace.name)
            .create(&PostParams::default(), &late)
            .await?;
        let all = async {
            while saw.load(Ordering::SeqCst) < WATCHES {
                told.notified().await;
            }
        };
        let reached = tokio::time::timeout(wait::DEADLINE, all).await;
        reached.with_context(|| format!("the event reached {} of {WATCHES} watches", saw.load(Ordering::SeqCst)))?;
        println!("{WATCHES} watches over {} connections", clients.connections.count());
        stop.cancel();
        while tasks.join_next().await.is_some() {}
        Ok(())
    })
    .await
}
