//! Waiting for conditions: by watches, with a deadline, and with what was last seen in the error.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, pin_mut};
use kube::ResourceExt;
use kube::api::{Api, Resource};
use kube::runtime::watcher::{self, Event};
use serde::de::DeserializeOwned;

/// Generous: the machines are small and noisy. Figures belong into benchmarks.
pub const DEADLINE: Duration = Duration::from_secs(240);

/// Waits until what the watch shows satisfies `condition`, and returns it, by name.
pub async fn until<K>(
    what: &str,
    api: Api<K>,
    config: watcher::Config,
    mut condition: impl FnMut(&BTreeMap<String, K>) -> bool,
) -> Result<BTreeMap<String, K>>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
{
    let mut seen = BTreeMap::new();
    let watching = async {
        let events = watcher::watcher(api, config);
        pin_mut!(events);
        let mut listed = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => {
                    seen.clear();
                    listed = false;
                }
                Ok(Event::InitApply(object) | Event::Apply(object)) => drop(seen.insert(object.name_any(), object)),
                Ok(Event::Delete(object)) => drop(seen.remove(&object.name_any())),
                Ok(Event::InitDone) => listed = true,
                Err(_) => {
                    // The API server may be what the test kills.
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    continue;
                }
            }
            if listed && condition(&seen) {
                return;
            }
        }
    };
    if tokio::time::timeout(DEADLINE, watching).await.is_err() {
        let names: Vec<_> = seen.keys().collect();
        bail!("waited {DEADLINE:?} in vain for {what}; there are {names:?}");
    }
    Ok(seen)
}

/// Waits until one object satisfies `condition`; `None` means that it is not there.
pub async fn until_one<K>(
    what: &str,
    api: Api<K>,
    name: &str,
    mut condition: impl FnMut(Option<&K>) -> bool,
) -> Result<Option<K>>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
{
    let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut seen = until(what, api.clone(), only, |seen| condition(seen.get(name)))
        .await
        .with_context(|| format!("object {name}"))?;
    Ok(seen.remove(name))
}
