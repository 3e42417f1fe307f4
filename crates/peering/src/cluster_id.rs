//! The identity of this cluster: a ConfigMap that is made once, put back when it is deleted, and never changed.

use std::sync::Arc;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::watcher;
use sha2::{Digest, Sha256};
use spillway_api::core::ClusterId;
use spillway_api::well_known::{field_manager, label, name};
use spillway_operator::error::{found, is_conflict};
use spillway_operator::metrics::ControllerMetrics;
use spillway_operator::workers::{self, Action, Limits};
use spillway_operator::{Categorised, Category, Index, ObjectKey, Queue};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::watches::{Selection, Watching};

/// The ConfigMap has the name that its label carries.
const CONFIG_MAP: &str = label::APP_NAME_CLUSTER_ID;
const LABEL_LIMIT: usize = 63;
const DERIVED_DIGITS: usize = 10;

/// A name that peers can know this cluster by: a DNS label.
pub fn parse(text: &str) -> Result<ClusterId, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = (1..=LABEL_LIMIT).contains(&text.len())
        && text.chars().all(|c| allowed(c) || c == '-')
        && text.starts_with(allowed)
        && text.ends_with(allowed);
    if fits {
        Ok(ClusterId::new(text))
    } else {
        Err(format!(
            "'{text}' is not a DNS label: 1 to 63 lower-case letters, digits and hyphens, a letter or digit at both ends"
        ))
    }
}

/// The same for every installation in this cluster, and no other cluster's.
pub fn derive(cluster_uid: &str) -> ClusterId {
    let digest = format!("{:x}", Sha256::digest(cluster_uid));
    ClusterId::new(format!("cluster-{}", &digest[..DERIVED_DIGITS]))
}

fn forge(id: &ClusterId) -> ConfigMap {
    let labels = [(label::APP_NAME, label::APP_NAME_CLUSTER_ID), ("app.kubernetes.io/managed-by", "spillway")];
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(CONFIG_MAP.to_owned()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        },
        data: Some([(name::CLUSTER_ID_KEY.to_owned(), id.to_string())].into()),
        ..ConfigMap::default()
    }
}

/// What a ConfigMap that exists says; an error tells what to do about it.
fn read(config_map: &ConfigMap) -> Result<ClusterId, String> {
    let id = config_map.data.as_ref().and_then(|data| data.get(name::CLUSTER_ID_KEY)).ok_or_else(|| {
        format!(
            "the ConfigMap {CONFIG_MAP} has no key {}: add it, or delete the ConfigMap to have it made anew",
            name::CLUSTER_ID_KEY
        )
    })?;
    parse(id).map_err(|error| format!("the ConfigMap {CONFIG_MAP} is not usable: {error}"))
}

pub struct Identity {
    client: Client,
    namespace: String,
    wanted: Option<ClusterId>,
}

impl Identity {
    pub fn new(client: Client, namespace: &str, wanted: Option<ClusterId>) -> Self {
        Self { client, namespace: namespace.to_owned(), wanted }
    }

    /// An ID that is in use is never changed: peers know the cluster by it.
    pub async fn refuse_contradiction(&self) -> anyhow::Result<()> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let Some(config_map) = found(api.get(CONFIG_MAP).await)
            .with_context(|| format!("cannot read the ConfigMap {}/{CONFIG_MAP}", self.namespace))?
        else {
            return Ok(());
        };
        if let (Ok(id), Some(wanted)) = (read(&config_map), &self.wanted)
            && id != *wanted
        {
            bail!(
                "--cluster-id={wanted}, but this cluster is '{id}' already (ConfigMap {}/{CONFIG_MAP}), and its peers know \
                 it by that ID. Leave the flag out or set it to '{id}'; to rename the cluster, remove all peerings and \
                 delete the ConfigMap first",
                self.namespace
            );
        }
        Ok(())
    }

    pub fn watch(self, watching: &mut Watching<'_>) -> anyhow::Result<Keeper> {
        let key = ObjectKey::new(self.namespace.as_str(), CONFIG_MAP);
        let index = Arc::new(Index::default());
        let queue = Arc::new(Queue::default());
        let known = watch::Sender::new(None);
        let gate = watching.watches.readiness.gate(format!("the cluster's ID in the ConfigMap {key}"));
        // By name, so that the right to read just this one is enough.
        let by_name = watcher::Config::default().fields(&format!("metadata.name={CONFIG_MAP}"));
        let namespace = self.namespace.clone();
        let selection = Selection {
            resource: "configmaps",
            config: by_name,
            api: move |client| Api::namespaced(client, &namespace),
        };
        let (seen, woken, tell) = (index.clone(), queue.clone(), known.clone());
        watching.open(
            selection,
            &index,
            |config_map: ConfigMap| Some(read(&config_map)),
            move |key| {
                if let Some(Ok(id)) = seen.get(&key).as_deref() {
                    tell.send_if_modified(|known| known.replace(id.clone()).as_ref() != Some(id));
                    gate.open();
                }
                woken.add(key);
            },
        )?;
        Ok(Keeper { identity: self, key, index, queue, known })
    }
}

/// Keeps the ConfigMap there.
pub struct Keeper {
    identity: Identity,
    key: ObjectKey,
    index: Arc<Index<Result<ClusterId, String>>>,
    queue: Arc<Queue<ObjectKey>>,
    known: watch::Sender<Option<ClusterId>>,
}

impl Keeper {
    /// The ID, as soon as it is known; the last one while the ConfigMap is away.
    pub fn known(&self) -> watch::Receiver<Option<ClusterId>> {
        self.known.subscribe()
    }

    pub async fn run(self, metrics: ControllerMetrics, stop: CancellationToken) {
        let queue = self.queue.clone();
        queue.add(self.key.clone());
        let keeper = Arc::new(self);
        workers::run(queue, Limits::default(), metrics, stop, move |_| {
            let keeper = keeper.clone();
            async move { keeper.keep().await }
        })
        .await;
    }

    async fn keep(&self) -> Result<Action, Error> {
        match self.index.get(&self.key).as_deref() {
            Some(Ok(_)) => return Ok(Action::Await),
            Some(Err(message)) => return Err(Error::Unusable(message.clone())),
            None => {}
        }
        let id = self.choose().await?;
        let api = Api::<ConfigMap>::namespaced(self.identity.client.clone(), &self.identity.namespace);
        let params = PostParams { field_manager: Some(field_manager::PEERING.to_owned()), ..PostParams::default() };
        match api.create(&params, &forge(&id)).await {
            Ok(_) => tracing::info!(%id, config_map = %self.key, "this is the ID of the cluster"),
            // Somebody made it first; the watch is about to show it.
            Err(error) if is_conflict(&error) => {}
            Err(source) => return Err(Error::Create { source }),
        }
        Ok(Action::Await)
    }

    /// What it was before comes first: a ConfigMap deleted by mistake must not rename the cluster.
    async fn choose(&self) -> Result<ClusterId, Error> {
        if let Some(id) = self.known.borrow().clone().or_else(|| self.identity.wanted.clone()) {
            return Ok(id);
        }
        let namespace = Api::<Namespace>::all(self.identity.client.clone())
            .get("kube-system")
            .await
            .map_err(|source| Error::Derive { source })?;
        Ok(derive(namespace.metadata.uid.as_deref().unwrap_or_default()))
    }
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}")]
    Unusable(String),
    #[error(
        "cannot read the namespace kube-system, from whose UID the cluster's ID is derived (or give --cluster-id): {source}"
    )]
    Derive { source: kube::Error },
    #[error("cannot create the ConfigMap {CONFIG_MAP}: {source}")]
    Create { source: kube::Error },
}

impl Categorised for Error {
    fn category(&self) -> Category {
        match self {
            Error::Unusable(_) => Category::Permanent,
            Error::Derive { source } | Error::Create { source } => source.category(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_derived_id_is_stable_and_valid() {
        let id = derive("2f1b6b0e-5f0e-4b0e-9c1e-0123456789ab");
        assert_eq!(id, derive("2f1b6b0e-5f0e-4b0e-9c1e-0123456789ab"));
        assert_ne!(id, derive("another"));
        assert_eq!(id.as_str().len(), "cluster-".len() + DERIVED_DIGITS);
        assert_eq!(parse(id.as_str()), Ok(id));
    }

    #[test]
    fn only_dns_labels_are_ids() {
        let longest = "a".repeat(63);
        for good in ["a", "home", "eu-1", "1st", &longest] {
            assert!(parse(good).is_ok(), "{good}");
        }
        let too_long = "a".repeat(64);
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ä", &too_long] {
            assert!(parse(bad).unwrap_err().contains("DNS label"), "{bad}");
        }
    }

    #[test]
    fn what_is_made_can_be_read_and_found_by_its_label() {
        let made = forge(&"home".into());
        assert_eq!(read(&made), Ok("home".into()));
        let labels = made.metadata.labels.clone().unwrap_or_default();
        assert_eq!(labels[label::APP_NAME], "clusterid-configmap");
        assert_eq!(made.metadata.name.as_deref(), Some("clusterid-configmap"));
    }

    #[test]
    fn an_unusable_config_map_says_what_to_do() {
        assert!(read(&ConfigMap::default()).unwrap_err().contains("has no key CLUSTER_ID"));
        let mut bad = forge(&"home".into());
        bad.data = Some([("CLUSTER_ID".to_owned(), "Not One".to_owned())].into());
        assert!(read(&bad).unwrap_err().contains("not a DNS label"));
    }
}
