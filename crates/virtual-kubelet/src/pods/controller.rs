//! Carries out the plan for one pod: the only place of this module with a client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;
use spillway_api::offloading::ShadowPod;
use spillway_api::well_known::{annotation, field_manager};
use spillway_api::{RawObject, RawPod};
use spillway_operator::error::{RequestError, found, is_conflict, only, settled, while_trying};
use spillway_operator::index::Scope;
use spillway_operator::peer::Reach;
use spillway_operator::{Action, Index, ObjectKey};
use tokio::sync::watch;

use super::digest::{LocalDigest, RemoteDigest, ShadowDigest};
use super::forge::{self, Context};
use super::plan::{self, Step, Twin};
use super::status::Mirror;
use crate::twins::Twins;

pub struct Controller {
    pub home: Client,
    pub away: Client,
    pub context: Arc<Context>,
    pub mirror: Mirror,
    pub locals: Arc<Index<LocalDigest>>,
    pub shadows: Arc<Index<ShadowDigest>>,
    pub remotes: Arc<Index<RemoteDigest>>,
    pub twins: Arc<Twins>,
    pub reach: watch::Receiver<Reach>,
    /// ShadowPods of our making that no watch has shown yet, with the UID of their local pod.
    pub unseen: Mutex<HashMap<ObjectKey, String>>,
}

impl Controller {
    /// `key` is the local pod's. The indexes of local pods and of twin namespaces must be complete before the first call.
    pub async fn reconcile(&self, key: ObjectKey) -> Result<Action, RequestError> {
        let local = self.locals.get(&key);
        let local = local.as_deref();
        let Some(namespace) = self.twins.away(&key.namespace) else {
            let step = plan::without_twin(local, &self.mirror, &key.namespace);
            return self.carry_out(&key, &key, local, step).await;
        };
        let scope = Scope::Namespace(namespace.clone());
        let away = ObjectKey { namespace, name: key.name.clone() };
        // Read before it is asked whether absence means anything: the watches may just be closing.
        let (shadow, pod) = (self.shadows.get(&away), self.remotes.get(&away));
        if !(self.shadows.is_synced(&scope) && self.remotes.is_synced(&scope)) {
            return Ok(Action::Await); // the end of the lists wakes everything in the namespace
        }
        if shadow.is_some() {
            self.unseen.lock().remove(&away);
            if let Some(local) = local {
                local.forged.lock().take();
            }
        }
        let step = plan::plan(local, Twin { shadow: shadow.as_deref(), pod: pod.as_deref() }, &self.mirror);
        if matches!(step, Step::WriteStatus { .. }) && matches!(*self.reach.borrow(), Reach::Away { .. }) {
            // What is known may be outdated, and the node controller knows better; the peer's return wakes every pod.
            return Ok(Action::Await);
        }
        if let Step::FinishLocal { uid } = &step
            && self.may_exist(&away, uid).await?
        {
            return Ok(Action::LookAgain(Duration::from_secs(1)));
        }
        self.carry_out(&key, &away, local, step).await
    }

    /// Whether a ShadowPod that was created moments ago for this pod may be there although no watch has shown it.
    async fn may_exist(&self, away: &ObjectKey, local_uid: &str) -> Result<bool, RequestError> {
        if self.unseen.lock().get(away).is_none_or(|uid| uid != local_uid) {
            return Ok(false);
        }
        let there =
            found(self.shadows_away(away).get(&away.name).await).map_err(while_trying("look for the ShadowPod"))?;
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
        step: Step,
    ) -> Result<Action, RequestError> {
        match (step, local) {
            (Step::CreateShadow, Some(local)) => self.create_shadow(home, away, local).await?,
            (Step::DeleteShadow { uid, grace }, _) => self.delete_shadow(away, uid, grace).await?,
            (Step::DeleteFormer { uid, origin_uid }, _) => self.delete_former(home, away, uid, origin_uid).await?,
            (Step::ShortenGrace { uid, grace }, _) => self.pass_on_grace(away, &uid, grace).await?,
            (Step::FinishLocal { uid }, _) => self.finish_local(home, uid).await?,
            (Step::WriteStatus { uid, patch }, _) => self.write_status(home, &uid, patch).await?,
            (Step::Nothing, _) | (Step::CreateShadow, None) => {}
        }
        Ok(Action::Await)
    }

    async fn create_shadow(&self, home: &ObjectKey, away: &ObjectKey, local: &LocalDigest) -> Result<(), RequestError> {
        let forged = local.forged.lock().clone();
        let shadow = match forged {
            Some(forged) => *forged,
            None => {
                let read =
                    found(self.pods_at_home(home).get(&home.name).await).map_err(while_trying("read the pod"))?;
                match read.filter(|read| read.uid().as_ref() == Some(&local.uid)) {
                    Some(read) => forge::shadow_pod(&read, &self.context),
                    None => return Ok(()), // deleted meanwhile: its event is on the way
                }
            }
        };
        let params =
            PostParams { field_manager: Some(field_manager::VIRTUAL_KUBELET.to_owned()), ..PostParams::default() };
        self.unseen.lock().insert(away.clone(), local.uid.clone());
        match self.shadows_away(away).create(&params, &shadow).await {
            Ok(_) => {
                tracing::debug!(pod = %home, shadow = %away, "ShadowPod created");
                Ok(())
            }
            Err(error) if is_conflict(&error) => self.name_taken(home, away, local, error).await,
            Err(error) => {
                if matches!(&error, kube::Error::Api(status) if status.code < 500) {
                    self.unseen.lock().remove(away); // refused for certain
                }
                if let kube::Error::Api(status) = &error
                    && (400..500).contains(&status.code)
                    && status.code != 429
                {
                    self.show_refusal(home, local, "OffloadingRefused", &status.message).await?;
                }
                Err(while_trying("create the ShadowPod")(error))
            }
        }
    }

    /// The name is in use: by our own ShadowPod that the watch has not shown yet, or by one that is none of ours.
    async fn name_taken(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        local: &LocalDigest,
        error: kube::Error,
    ) -> Result<(), RequestError> {
        let there = found(self.shadows_away(away).get(&away.name).await).map_err(while_trying("read the ShadowPod"))?;
        let Some(there) = there else {
            return Err(while_trying("create the ShadowPod")(error));
        };
        let marked =
            self.context.ownership().iter().all(|(key, value)| there.labels().get(*key).is_some_and(|v| v == value));
        if marked {
            return Ok(());
        }
        let message = format!(
            "the remote namespace {} has a ShadowPod of this name that is not ours; it is left alone",
            away.namespace
        );
        self.show_refusal(home, local, "OffloadingNameTaken", &message).await?;
        Err(while_trying("create the ShadowPod")(error))
    }

    async fn show_refusal(
        &self,
        home: &ObjectKey,
        local: &LocalDigest,
        reason: &str,
        message: &str,
    ) -> Result<(), RequestError> {
        match plan::refused(local, reason, message, &self.mirror) {
            Step::WriteStatus { uid, patch } => self.write_status(home, &uid, patch).await,
            _ => Ok(()),
        }
    }

    async fn delete_shadow(&self, away: &ObjectKey, uid: String, grace: Option<i64>) -> Result<(), RequestError> {
        if let Some(grace) = grace {
            self.pass_on_grace(away, &uid, grace).await?;
        }
        let params = DeleteParams { preconditions: Some(only(uid)), ..DeleteParams::default() };
        settled(self.shadows_away(away).delete(&away.name, &params).await).map_err(while_trying("delete the ShadowPod"))
    }

    /// A watch that lags behind must not cost a living pod its twin: the API server is asked first.
    async fn delete_former(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        uid: String,
        origin_uid: Option<String>,
    ) -> Result<(), RequestError> {
        let local = found(self.pods_at_home(home).get(&home.name).await).map_err(while_trying("look for the pod"))?;
        if origin_uid.is_some() && local.and_then(|pod| pod.uid()) == origin_uid {
            return Ok(()); // alive after all: its event is on the way
        }
        self.delete_shadow(away, uid, None).await
    }

    async fn pass_on_grace(&self, away: &ObjectKey, uid: &str, grace: i64) -> Result<(), RequestError> {
        let annotations = json!({annotation::DELETION_GRACE_SECONDS: grace.max(0).to_string()});
        let patch = Patch::Merge(json!({"metadata": {"uid": uid, "annotations": annotations}}));
        let patched = self.shadows_away(away).patch_metadata(&away.name, &PatchParams::default(), &patch).await;
        settled(patched).map_err(while_trying("pass on the grace period"))
    }

    async fn finish_local(&self, home: &ObjectKey, uid: String) -> Result<(), RequestError> {
        let params =
            DeleteParams { grace_period_seconds: Some(0), preconditions: Some(only(uid)), ..DeleteParams::default() };
        settled(self.pods_at_home(home).delete(&home.name, &params).await).map_err(while_trying("finish the pod"))
    }

    async fn write_status(&self, home: &ObjectKey, uid: &str, status: RawObject) -> Result<(), RequestError> {
        let patch = Patch::Strategic(json!({"metadata": {"uid": uid}, "status": status}));
        let patched = self.pods_at_home(home).patch_status(&home.name, &PatchParams::default(), &patch).await;
        settled(patched).map_err(while_trying("write the pod's status"))
    }

    fn pods_at_home(&self, key: &ObjectKey) -> Api<RawPod> {
        Api::namespaced(self.home.clone(), &key.namespace)
    }

    fn shadows_away(&self, key: &ObjectKey) -> Api<ShadowPod> {
        Api::namespaced(self.away.clone(), &key.namespace)
    }
}
