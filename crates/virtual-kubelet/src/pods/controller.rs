//! Carries out the plan for one pod.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde_json::json;
use spillway_api::RawObject;
use spillway_api::well_known::reason;
use spillway_operator::error::{RequestError, is_conflict, while_trying, words};
use spillway_operator::index::Scope;
use spillway_operator::patience::Patience;
use spillway_operator::peer::Reach;
use spillway_operator::{Action, Categorised, Category, Index, ObjectKey};
use tokio::sync::watch;

use super::digest::{LocalDigest, RemoteDigest, ShadowDigest};
use super::forge::{Context, Refusal};
use super::plan::{self, Step, Twin};
use super::status::Mirror;
use super::writes::Writes;
use crate::addresses::Addresses;
use crate::remote::Troubles;
use crate::twins::Twins;

/// What was refused is tried again after this, and then ever more seldom.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The API server has long removed a pod by then that nothing holds.
const FINISHED_WITHIN: Duration = Duration::from_secs(2);

pub struct Controller {
    pub writes: Writes,
    pub context: Arc<Context>,
    pub node_ip: Option<String>,
    pub addresses: Arc<RwLock<Addresses>>,
    pub locals: Arc<Index<LocalDigest>>,
    pub shadows: Arc<Index<ShadowDigest>>,
    pub remotes: Arc<Index<RemoteDigest>>,
    pub twins: Arc<Twins>,
    pub troubles: Arc<Troubles>,
    pub reach: watch::Receiver<Reach>,
    /// ShadowPods of our making that no watch has shown yet, with the UID of their local pod.
    pub unseen: Mutex<HashMap<ObjectKey, String>>,
    /// Local pods that were let go, by UID, and when.
    pub finished: Mutex<HashMap<ObjectKey, (String, Instant)>>,
    /// How often in a row nothing could be done about a pod.
    pub failures: Mutex<HashMap<ObjectKey, Failures>>,
    pub refusals: Arc<Refusals>,
}

/// How often something failed in a row, and what was last told of it.
#[derive(Default)]
pub struct Failures {
    count: u32,
    told: Option<(&'static str, Instant)>,
}

/// What the provider refused of late: ShadowPods, and changes of them.
pub struct Refusals {
    pub(super) creations: Patience,
    updates: Patience,
    /// Why an update was not carried over.
    reasons: Mutex<HashMap<ObjectKey, String>>,
}

impl Default for Refusals {
    fn default() -> Self {
        let patience = || Patience::new(FIRST_PAUSE, LONGEST_PAUSE);
        Self { creations: patience(), updates: patience(), reasons: Mutex::default() }
    }
}

impl Refusals {
    /// What the provider refused before it was away it may take now.
    pub fn forget_all(&self) {
        self.creations.forget_all();
        self.updates.forget_all();
        self.reasons.lock().clear();
    }

    fn forget_update(&self, key: &ObjectKey) {
        self.updates.forget(key);
        self.reasons.lock().remove(key);
    }
}

impl Controller {
    /// `key` is the local pod's. The indexes of local pods and of twin namespaces must be complete before the first call.
    pub async fn reconcile(&self, key: ObjectKey) -> Result<Action, RequestError> {
        let local = self.locals.get(&key);
        let addresses = self.addresses.read().clone();
        let mirror = Mirror { node_ip: self.node_ip.as_deref(), addresses: &addresses, at: Timestamp::now() };
        let outcome = self.attend(&key, local.as_deref(), &mirror).await;
        if let (Some((reason, message)), Some(local)) = (self.obstacle(&key, &outcome), local.as_deref())
            && let Step::WriteStatus { uid, patch } = plan::held_up(local, reason, &message, &mirror)
        {
            self.write_status(&key, local, &uid, patch).await?;
        }
        outcome
    }

    /// What its user should know of a failure: that the remote cluster is away, or what it says, once it is no hiccup.
    fn obstacle(&self, key: &ObjectKey, outcome: &Result<Action, RequestError>) -> Option<(&'static str, String)> {
        let mut failures = self.failures.lock();
        let Err(error) = outcome else {
            failures.remove(key);
            return None;
        };
        let failures = failures.entry(key.clone()).or_default();
        failures.count += 1;
        let repeated = || (failures.count > 1).then(|| (reason::OFFLOADING_FAILING, error.to_string()));
        let (reason, message) = self.absence().or_else(repeated)?;
        // To tell is an event, which ends the pause before the next try: words that vary must not make a storm.
        if failures.told.is_some_and(|(told, at)| told == reason && at.elapsed() < LONGEST_PAUSE) {
            return None;
        }
        failures.told = Some((reason, Instant::now()));
        Some((reason, message))
    }

    /// Why nothing can be heard of the remote cluster, if so.
    fn absence(&self) -> Option<(&'static str, String)> {
        match &*self.reach.borrow() {
            Reach::Away { reason, message, .. } => Some((*reason, message.clone())),
            Reach::Unknown | Reach::Reachable => None,
        }
    }

    async fn attend(
        &self,
        key: &ObjectKey,
        local: Option<&LocalDigest>,
        mirror: &Mirror<'_>,
    ) -> Result<Action, RequestError> {
        if local.is_none() {
            self.finished.lock().remove(key);
        }
        let Some(namespace) = self.twins.away(&key.namespace) else {
            let step = plan::without_twin(local, self.twins.mapping(&key.namespace), mirror, &key.namespace);
            return self.carry_out(key, key, local, mirror, step).await;
        };
        let scope = Scope::Namespace(namespace.clone());
        let away = ObjectKey { namespace, name: key.name.clone() };
        // Read before it is asked whether absence means anything: the watches may just be closing.
        let (shadow, pod) = (self.shadows.get(&away), self.remotes.get(&away));
        let trouble = self.troubles.of(&away.namespace);
        if !(self.shadows.is_synced(&scope) && self.remotes.is_synced(&scope)) {
            let step = self.explain_unread(local, trouble, &away, mirror);
            return self.carry_out(key, &away, local, mirror, step).await; // the end of the lists wakes everything
        }
        let unreadable = self.shadows.is_unreadable(&away) || self.remotes.is_unreadable(&away);
        if unreadable || self.locals.is_unreadable(key) {
            return Ok(Action::Await); // the watch has said so; nothing is done on half a picture
        }
        if shadow.is_some() {
            self.unseen.lock().remove(&away);
            if let Some(local) = local {
                local.forged.lock().take();
            }
        }
        if local.is_none() {
            self.remotes.forget_last(&away);
            self.refusals.creations.forget(key);
            self.refusals.forget_update(key);
        }
        let held = local.and_then(|local| self.refusals.updates.wait(key, &local.live));
        let refusal = held.and_then(|_| self.refusals.reasons.lock().get(key).cloned());
        let last = self.remotes.last(&away);
        let twin = Twin {
            shadow: shadow.as_deref(),
            pod: pod.as_deref(),
            last: last.as_deref(),
            updates_held: held.is_some(),
            refusal: refusal.as_deref(),
        };
        let step = plan::plan(local, twin, mirror);
        if matches!(step, Step::WriteStatus { .. }) && self.absence().is_some() {
            // What is known may be outdated, and the node controller knows better; the peer's return wakes every pod.
            return Ok(Action::Await);
        }
        // What was last seen of a namespace that can't be read any more still tells what is gone, but nothing new.
        if matches!(step, Step::Nothing | Step::WriteStatus { .. }) && trouble.is_some() {
            let step = self.explain_unread(local, trouble, &away, mirror);
            return self.carry_out(key, &away, local, mirror, step).await;
        }
        if let Step::FinishLocal { uid } = &step
            && self.may_exist(&away, uid).await?
        {
            return Ok(Action::LookAgain(Duration::from_secs(1)));
        }
        let action = self.carry_out(key, &away, local, mirror, step).await?;
        Ok(match (action, held) {
            (Action::Await, Some(held)) => Action::LookAgain(held),
            (action, _) => action,
        })
    }

    fn explain_unread(
        &self,
        local: Option<&LocalDigest>,
        trouble: Option<String>,
        away: &ObjectKey,
        mirror: &Mirror<'_>,
    ) -> Step {
        let namespace = &away.namespace;
        let told = trouble.map(|trouble| {
            ("RemoteNamespaceUnreadable", format!("the remote namespace {namespace} cannot be read: {trouble}"))
        });
        match (local, self.absence().or(told)) {
            (Some(local), Some((reason, message))) => plan::held_up(local, reason, &message, mirror),
            _ => Step::Nothing,
        }
    }

    /// Whether a ShadowPod that was created moments ago for this pod may be there although no watch has shown it.
    async fn may_exist(&self, away: &ObjectKey, local_uid: &str) -> Result<bool, RequestError> {
        if self.unseen.lock().get(away).is_none_or(|uid| uid != local_uid) {
            return Ok(false);
        }
        let there = self.writes.shadow(away).await?;
        if there.is_none() {
            self.unseen.lock().remove(away);
        }
        Ok(there.is_some())
    }

    async fn carry_out(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        local: Option<&LocalDigest>,
        mirror: &Mirror<'_>,
        step: Step,
    ) -> Result<Action, RequestError> {
        match (step, local) {
            (Step::CreateShadow, Some(local)) => return self.create_shadow(home, away, local, mirror).await,
            (Step::UpdateShadow, Some(local)) => return self.update_shadow(home, away, local).await,
            (Step::DeleteShadow { uid, grace }, _) => self.writes.delete_shadow(away, uid, grace).await?,
            (Step::DeleteFormer { uid, origin_uid }, _) => {
                self.writes.delete_former(home, away, uid, origin_uid).await?;
            }
            (Step::ReleaseShadow { uid, origin_uid, held }, local) => {
                let noted = local.is_some_and(|local| Some(&local.uid) == origin_uid.as_ref());
                self.writes.release_shadow(home, away, (uid, origin_uid, held), noted).await?;
            }
            (Step::ShortenGrace { uid, grace }, _) => self.writes.pass_on_grace(away, &uid, grace).await?,
            (Step::FinishLocal { uid }, _) => return self.finish_local(home, uid).await,
            (Step::WriteStatus { uid, patch }, Some(local)) => self.write_status(home, local, &uid, patch).await?,
            (Step::Nothing | Step::CreateShadow | Step::UpdateShadow | Step::WriteStatus { .. }, _) => {}
        }
        Ok(Action::Await)
    }

    /// What was written once is not written again before something else is seen of the pod.
    pub(super) async fn write_status(
        &self,
        home: &ObjectKey,
        local: &LocalDigest,
        uid: &str,
        patch: RawObject,
    ) -> Result<(), RequestError> {
        let mut hasher = DefaultHasher::new();
        json!(patch).to_string().hash(&mut hasher);
        let hash = hasher.finish();
        if local.written.load(Ordering::Relaxed) == hash {
            return Ok(());
        }
        self.writes.write_status(home, uid, patch).await?;
        local.written.store(hash, Ordering::Relaxed);
        Ok(())
    }

    /// The API server says that it takes the last of a pod's grace away before it says that the pod is gone: no reason to ask
    /// it again, unless nothing follows.
    async fn finish_local(&self, home: &ObjectKey, uid: String) -> Result<Action, RequestError> {
        let asked = self.finished.lock().get(home).filter(|(other, _)| *other == uid).map(|(_, at)| at.elapsed());
        if let Some(left) = asked.and_then(|asked| FINISHED_WITHIN.checked_sub(asked)) {
            return Ok(Action::LookAgain(left));
        }
        self.writes.finish_local(home, uid.clone()).await?;
        self.finished.lock().insert(home.clone(), (uid, Instant::now()));
        Ok(Action::LookAgain(FINISHED_WITHIN))
    }

    async fn update_shadow(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        local: &LocalDigest,
    ) -> Result<Action, RequestError> {
        let (why, for_certain) = match self.writes.update_shadow(home, away, &local.uid, &self.context).await {
            Ok(None) => {
                self.refusals.forget_update(home);
                return Ok(Action::Await);
            }
            Ok(Some(Refusal(why))) => (why, true),
            Err(error) if is_conflict(&error) => {
                return Err(while_trying("carry over what changed of the pod")(error));
            }
            Err(error) => (words(&error), error.category() == Category::Permanent),
        };
        let pause = self.refusals.updates.failed(home, &local.live);
        tracing::warn!(pod = %home, error = why, ?pause, "a change of the pod is not carried over");
        if for_certain || pause > self.refusals.updates.first() {
            self.refusals.reasons.lock().insert(home.clone(), why);
        }
        Ok(Action::LookAgain(Duration::ZERO)) // its status goes on being shown
    }
}
