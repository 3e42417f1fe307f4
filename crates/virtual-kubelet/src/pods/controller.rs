//! Carries out the plan for one pod.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use spillway_operator::error::{RequestError, while_trying, words};
use spillway_operator::index::Scope;
use spillway_operator::patience::Patience;
use spillway_operator::peer::Reach;
use spillway_operator::{Action, Categorised, Category, Index, ObjectKey};
use tokio::sync::watch;

use super::digest::{LocalDigest, RemoteDigest, ShadowDigest};
use super::forge::Context;
use super::plan::{self, Step, Twin};
use super::status::Mirror;
use super::writes::Writes;
use crate::addresses::Addresses;
use crate::remote::Troubles;
use crate::twins::Twins;

/// What was refused is tried again after this, and then ever more seldom.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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
    pub refusals: Arc<Refusals>,
}

/// What the provider refused of late: ShadowPods, and changes of them.
pub struct Refusals {
    pub(super) creations: Patience,
    updates: Patience,
}

impl Default for Refusals {
    fn default() -> Self {
        let patience = || Patience::new(FIRST_PAUSE, LONGEST_PAUSE);
        Self { creations: patience(), updates: patience() }
    }
}

impl Refusals {
    /// What the provider refused before it was away it may take now.
    pub fn forget_all(&self) {
        self.creations.forget_all();
        self.updates.forget_all();
    }
}

impl Controller {
    /// `key` is the local pod's. The indexes of local pods and of twin namespaces must be complete before the first call.
    pub async fn reconcile(&self, key: ObjectKey) -> Result<Action, RequestError> {
        let local = self.locals.get(&key);
        let addresses = self.addresses.read().clone();
        let mirror = Mirror { node_ip: self.node_ip.as_deref(), addresses: &addresses, at: Timestamp::now() };
        let outcome = self.attend(&key, local.as_deref(), &mirror).await;
        let away = match &*self.reach.borrow() {
            Reach::Away { reason, message, .. } => Some((*reason, message.clone())),
            Reach::Unknown | Reach::Reachable => None,
        };
        if let (Err(_), Some(local), Some((reason, message))) = (&outcome, local.as_deref(), away)
            && let Step::WriteStatus { uid, patch } = plan::held_up(local, reason, &message, &mirror)
        {
            self.writes.write_status(&key, &uid, patch).await?;
        }
        outcome
    }

    async fn attend(
        &self,
        key: &ObjectKey,
        local: Option<&LocalDigest>,
        mirror: &Mirror<'_>,
    ) -> Result<Action, RequestError> {
        let Some(namespace) = self.twins.away(&key.namespace) else {
            let step = plan::without_twin(local, self.twins.is_wanted(&key.namespace), mirror, &key.namespace);
            return self.carry_out(key, key, local, mirror, step).await;
        };
        let scope = Scope::Namespace(namespace.clone());
        let away = ObjectKey { namespace, name: key.name.clone() };
        // Read before it is asked whether absence means anything: the watches may just be closing.
        let (shadow, pod) = (self.shadows.get(&away), self.remotes.get(&away));
        if !(self.shadows.is_synced(&scope) && self.remotes.is_synced(&scope)) {
            let step = self.explain_unread(local, &away, mirror);
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
            self.refusals.updates.forget(key);
        }
        let held = local.and_then(|local| self.refusals.updates.wait(key, &local.live));
        let last = self.remotes.last(&away);
        let twin = Twin {
            shadow: shadow.as_deref(),
            pod: pod.as_deref(),
            last: last.as_deref(),
            updates_held: held.is_some(),
        };
        let step = plan::plan(local, twin, mirror);
        if matches!(step, Step::WriteStatus { .. }) && matches!(*self.reach.borrow(), Reach::Away { .. }) {
            // What is known may be outdated, and the node controller knows better; the peer's return wakes every pod.
            return Ok(Action::Await);
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

    fn explain_unread(&self, local: Option<&LocalDigest>, away: &ObjectKey, mirror: &Mirror<'_>) -> Step {
        let (Some(local), Some(trouble)) = (local, self.troubles.of(&away.namespace)) else { return Step::Nothing };
        let message = format!("the remote namespace {} cannot be read: {trouble}", away.namespace);
        plan::held_up(local, "RemoteNamespaceUnreadable", &message, mirror)
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
            (Step::ShortenGrace { uid, grace }, _) => self.writes.pass_on_grace(away, &uid, grace).await?,
            (Step::FinishLocal { uid }, _) => self.writes.finish_local(home, uid).await?,
            (Step::WriteStatus { uid, patch }, _) => self.writes.write_status(home, &uid, patch).await?,
            (Step::Nothing | Step::CreateShadow | Step::UpdateShadow, _) => {}
        }
        Ok(Action::Await)
    }

    async fn update_shadow(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        local: &LocalDigest,
    ) -> Result<Action, RequestError> {
        match self.writes.update_shadow(home, away, &local.uid, &self.context).await {
            Ok(()) => {
                self.refusals.updates.forget(home);
                Ok(Action::Await)
            }
            Err(error) if error.category() == Category::Permanent => {
                let pause = self.refusals.updates.failed(home, &local.live);
                tracing::warn!(pod = %home, error = words(&error), ?pause, "the provider refuses a change of the pod");
                Ok(Action::LookAgain(Duration::ZERO)) // its status goes on being shown
            }
            Err(error) => Err(while_trying("carry over what changed of the pod")(error)),
        }
    }
}
