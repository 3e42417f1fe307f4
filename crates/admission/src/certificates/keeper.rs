//! Keeps the authority in its Secret, the webhook configuration in trust of it, and a certificate in use.
//!
//! Every replica does this for all, without a leader: who creates the Secret first wins, a renewal names the version that it
//! replaces, and all would write the same into the configuration.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::Api;
use kube::runtime::watcher;
use parking_lot::{Mutex, RwLock};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use spillway_operator::health::{self, Gate, Readiness};
use spillway_operator::metrics::ControllerMetrics;
use spillway_operator::supervise::Supervisor;
use spillway_operator::watches::Watches;
use spillway_operator::workers::{self, Action, Limits};
use spillway_operator::{Index, ObjectKey, Queue};
use tokio_util::sync::CancellationToken;

use super::authority::{Authority, Serving};
use super::plan::{self, Configuration, InUse, Next, Stored};
use super::writes::{Error, Writes};

/// Looked at this often even if nothing changes: a clock may have jumped.
const LONGEST_REST: Duration = Duration::from_secs(3600);

/// The objects that belong to the certificates.
#[derive(Clone, Debug)]
pub struct Names {
    pub namespace: String,
    pub secret: String,
    pub service: String,
    pub configuration: String,
}

impl Names {
    /// The name under which API servers call a Service.
    fn dns(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }

    /// There is only this one thing to keep.
    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_str(), self.secret.as_str())
    }
}

/// The certificate in use; none aborts handshakes.
#[derive(Debug, Default)]
pub struct Current(RwLock<Option<Arc<CertifiedKey>>>);

impl Current {
    pub fn set(&self, serving: Serving) {
        *self.0.write() = Some(serving.key);
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}

pub struct Keeper {
    writes: Writes,
    names: Names,
    secrets: Arc<Index<Stored>>,
    configurations: Arc<Index<Configuration>>,
    queue: Arc<Queue<ObjectKey>>,
    current: Arc<Current>,
    in_use: Mutex<Option<InUse>>,
    gates: Gates,
    synced: [Gate; 2],
}

/// What readiness waits for.
struct Gates {
    configuration: Gate,
    trust: Gate,
    certificate: Gate,
}

impl Gates {
    fn new(readiness: &Readiness, names: &Names) -> Self {
        let configuration = format!("MutatingWebhookConfiguration {}", names.configuration);
        Self {
            trust: readiness.gate(format!("caBundle in the {configuration}")),
            configuration: readiness.gate(format!("{configuration}, which comes with the chart")),
            certificate: readiness.gate(format!("certificate for {}", names.dns())),
        }
    }

    fn show(&self, next: &Next<'_>) {
        self.configuration.set(*next != Next::AwaitConfiguration);
        self.trust.set(matches!(next, Next::Sign { .. } | Next::Rest { .. }));
    }
}

impl Keeper {
    /// Opens the watches: each of one object by its name, so that the right to see just that one is enough.
    pub fn watch(
        watches: &Watches<'_>,
        supervisor: &mut Supervisor,
        names: Names,
        current: Arc<Current>,
    ) -> anyhow::Result<Self> {
        let (secrets, configurations) = (Arc::new(Index::default()), Arc::new(Index::default()));
        let queue = Arc::new(Queue::default());
        let by_name = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let namespace = names.namespace.clone();
        let (told, key) = (queue.clone(), names.key());
        let secret_synced = watches.start(
            supervisor,
            "secrets",
            by_name(&names.secret),
            move |client| Api::namespaced(client, &namespace),
            &secrets,
            |secret| Some(Stored::of(secret)),
            move |_| told.add(key.clone()),
        )?;
        let (told, key) = (queue.clone(), names.key());
        let configuration_synced = watches.start(
            supervisor,
            "mutatingwebhookconfigurations",
            by_name(&names.configuration),
            Api::all,
            &configurations,
            |configuration| Some(Configuration::of(configuration)),
            move |_| told.add(key.clone()),
        )?;
        Ok(Self {
            writes: Writes::new(&watches.cluster.client, names.clone()),
            gates: Gates::new(watches.readiness, &names),
            names,
            secrets,
            configurations,
            queue,
            current,
            in_use: Mutex::default(),
            synced: [secret_synced, configuration_synced],
        })
    }

    pub async fn run(self, metrics: ControllerMetrics, stop: CancellationToken) {
        if !health::all_opened(&self.synced, &stop).await {
            return;
        }
        let queue = self.queue.clone();
        queue.add(self.names.key());
        let keeper = Arc::new(self);
        workers::run(queue, Limits::default(), metrics, stop, move |_| {
            let keeper = keeper.clone();
            async move { keeper.keep(Timestamp::now()).await }
        })
        .await;
    }

    /// One step. After a write the watch tells of it, and the next step follows.
    async fn keep(&self, now: Timestamp) -> Result<Action, Error> {
        let stored = self.secrets.get(&self.names.key());
        let configuration = self.configurations.get(&ObjectKey::new("", self.names.configuration.as_str()));
        let next = plan::next(stored.as_deref(), configuration.as_deref(), self.in_use.lock().as_ref(), now);
        self.gates.show(&next);
        match next {
            Next::AwaitConfiguration => {
                tracing::warn!(name = self.names.configuration, "there is no such MutatingWebhookConfiguration");
            }
            Next::Create { owner } => self.writes.create(owner, &Authority::generate(now)?).await?,
            Next::Replace { resource_version, after } => {
                let authority = match after {
                    Ok(ending) => ending.renewed(now)?,
                    Err(reason) => {
                        tracing::warn!(secret = self.names.secret, reason, "the authority is of no use: made anew");
                        Authority::generate(now)?
                    }
                };
                self.writes.replace(resource_version, &authority).await?;
            }
            Next::Trust { authority, webhooks } => self.writes.trust(authority, &webhooks).await?,
            Next::Sign { authority } => {
                let serving = authority.serving(&self.names.dns(), now)?;
                tracing::info!(name = self.names.dns(), renewed = %serving.renew_at, "a new certificate is served");
                let until = serving.renew_at.min(authority.renew_at());
                *self.in_use.lock() = Some(InUse { authority: authority.clone(), renew_at: serving.renew_at });
                self.current.set(serving);
                self.gates.certificate.open();
                return Ok(rest(until, now));
            }
            Next::Rest { until } => return Ok(rest(until, now)),
        }
        Ok(Action::Await)
    }
}

fn rest(until: Timestamp, now: Timestamp) -> Action {
    let rest = Duration::try_from(until.duration_since(now)).unwrap_or_default();
    Action::LookAgain(rest.clamp(Duration::from_secs(1), LONGEST_REST))
}
