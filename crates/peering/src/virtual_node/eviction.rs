//! The pods of a Node that is to go: found, evicted, deleted.

use std::time::Instant;

use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use spillway_operator::error::{is_conflict, is_not_found, only, settled};

use super::controller::Controller;
use super::drain::{self, Bound, Drain};
use super::error::Error;

const PAGE: u32 = 500;
/// Requests at the same time, and in one look: a look is short.
const AT_ONCE: usize = 16;
const PER_LOOK: usize = 1000;

impl Controller {
    pub(super) async fn bound_pods(&self, node: &str) -> Result<Vec<Bound>, Error> {
        let api = Api::<Pod>::all(self.client.clone());
        let mut params = ListParams::default().fields(&format!("spec.nodeName={node}")).limit(PAGE);
        let mut bound = Vec::new();
        loop {
            let page = api.list(&params).await.map_err(Error::request(format!("list the pods of the Node {node}")))?;
            bound.extend(page.items.iter().filter_map(Bound::of));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(bound),
            }
        }
    }

    /// Asks each to leave; those whose disruption budget does not let them are noted, and asked again later.
    pub(super) async fn evict(&self, drain: &mut Drain, pods: Vec<Bound>) -> Result<(), Error> {
        if pods.is_empty() || !drain.may_evict(Instant::now()) {
            return Ok(());
        }
        let asked = pods.len().min(PER_LOOK);
        let answers: Vec<_> = stream::iter(pods.into_iter().take(PER_LOOK))
            .map(|pod| async move { Ok::<_, Error>((pod.key.clone(), self.evict_one(&pod).await?)) })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut refused: Vec<_> = answers.into_iter().filter_map(|(pod, refusal)| Some((pod, refusal?))).collect();
        refused.sort();
        drain.tried(asked, refused, Instant::now());
        Ok(())
    }

    /// Why it was refused, if it was.
    async fn evict_one(&self, pod: &Bound) -> Result<Option<String>, Error> {
        let (namespace, name) = (&*pod.key.namespace, &*pod.key.name);
        let api = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        });
        let answer: kube::Result<serde_json::Value> =
            api.create_subresource("eviction", name, &PostParams::default(), &eviction).await;
        match answer {
            Ok(_) => Ok(None),
            Err(error) if is_not_found(&error) || is_conflict(&error) => Ok(None), // gone, or the next look tells
            Err(kube::Error::Api(status)) => Ok(Some(drain::refusal(&status))),
            Err(error) => Err(Error::request(format!("evict the pod {}", pod.key))(error)),
        }
    }

    pub(super) async fn delete_pods(&self, pods: Vec<Bound>) -> Result<(), Error> {
        let delete = |pod: Bound| async move {
            let params = DeleteParams { preconditions: Some(only(pod.uid.clone())), ..DeleteParams::default() };
            let api = Api::<Pod>::namespaced(self.client.clone(), &pod.key.namespace);
            let deleted = api.delete(&pod.key.name, &params).await;
            settled(deleted).map_err(Error::request(format!("delete the pod {}", pod.key)))
        };
        let pods = pods.into_iter().take(PER_LOOK).map(Ok);
        stream::iter(pods).try_for_each_concurrent(AT_ONCE, delete).await
    }
}
