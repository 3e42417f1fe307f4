//! The heartbeat of the node: its Lease in kube-node-lease, renewed as a kubelet does.

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use spillway_api::k8s::{Lease, LeaseSpec, MicroTime, Node, OwnerReference};
use spillway_operator::error::found;
use spillway_operator::{Index, ObjectKey};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "kube-node-lease";
const RETRY: Duration = Duration::from_secs(1);

pub struct Heartbeat {
    pub client: Client,
    pub node_name: String,
    pub duration: Duration,
    pub nodes: Arc<Index<Node>>,
}

impl Heartbeat {
    pub async fn run(self, stop: CancellationToken) {
        let api = Api::<Lease>::namespaced(self.client.clone(), NAMESPACE);
        let mut held: Option<Lease> = None;
        while !stop.is_cancelled() {
            let wait = match self.beat(&api, held.take()).await {
                Ok(lease) => {
                    held = lease;
                    if held.is_some() { self.duration / 4 } else { RETRY }
                }
                Err(error) => {
                    tracing::warn!(node = self.node_name, %error, "the node's lease could not be renewed");
                    RETRY
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Renews what is held, or reads or makes the lease first. `None` while there is no Node to own it.
    async fn beat(&self, api: &Api<Lease>, held: Option<Lease>) -> kube::Result<Option<Lease>> {
        let params = PostParams::default();
        let Some(node) = self.nodes.get(&ObjectKey::new("", self.node_name.as_str())) else {
            return Ok(None);
        };
        let before = match held {
            Some(lease) => Some(lease),
            None => found(api.get(&self.node_name).await)?,
        };
        match before {
            Some(lease) => api.replace(&self.node_name, &params, &self.renewed(lease)).await.map(Some),
            None => {
                let owner = OwnerReference {
                    api_version: "v1".to_owned(),
                    kind: "Node".to_owned(),
                    name: self.node_name.clone(),
                    uid: node.metadata.uid.clone().unwrap_or_default(),
                    ..OwnerReference::default()
                };
                let metadata = ObjectMeta {
                    name: Some(self.node_name.clone()),
                    owner_references: Some(vec![owner]),
                    ..ObjectMeta::default()
                };
                api.create(&params, &self.renewed(Lease { metadata, spec: None })).await.map(Some)
            }
        }
    }

    fn renewed(&self, mut lease: Lease) -> Lease {
        let spec = lease.spec.take().unwrap_or_default();
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.node_name.clone()),
            lease_duration_seconds: i32::try_from(self.duration.as_secs()).ok(),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..spec
        });
        lease
    }
}
