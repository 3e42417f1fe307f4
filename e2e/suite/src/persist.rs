//! Requests that outlast the death of the API server they are made to, for tests that kill it.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kube::api::{Api, DeleteParams, PostParams, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wait::DEADLINE;

/// Asks again while there is no answer, or one that says that the server is not well.
pub async fn ask<T, F: Future<Output = kube::Result<T>>>(mut request: impl FnMut() -> F) -> Result<T> {
    let begun = Instant::now();
    loop {
        match request().await {
            Err(error) if is_outage(&error) && begun.elapsed() < DEADLINE => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            result => return result.context("the API server refuses"),
        }
    }
}

fn is_outage(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => {
            // Admission says the latter with 403 while the server has just started.
            status.code >= 500 || status.code == 429 || status.message.contains("not yet ready")
        }
        _ => true,
    }
}

/// Creates an object; that an attempt whose answer was lost had created it is fine.
pub async fn create<K>(api: &Api<K>, object: &K) -> Result<()>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Clone + Debug,
{
    let params = PostParams::default();
    ask(|| async {
        match api.create(&params, object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            result => result.map(drop),
        }
    })
    .await
}

/// Deletes an object; that it is gone already is fine.
pub async fn delete<K>(api: &Api<K>, name: &str, params: &DeleteParams) -> Result<()>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
{
    ask(|| async {
        match api.delete(name, params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            result => result.map(drop),
        }
    })
    .await
}
