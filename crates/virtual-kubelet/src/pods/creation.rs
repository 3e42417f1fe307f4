//! Makes the ShadowPod of a pod, and tells the user when the provider will not have it.

use kube::ResourceExt;
use spillway_api::offloading::ShadowPod;
use spillway_operator::error::{RequestError, is_conflict, while_trying, words};
use spillway_operator::{Action, Categorised, Category, ObjectKey};

use super::controller::Controller;
use super::digest::LocalDigest;
use super::forge::{self, Refusal};
use super::plan::{self, Step};
use super::status::Mirror;

impl Controller {
    pub(super) async fn create_shadow(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        local: &LocalDigest,
        mirror: &Mirror<'_>,
    ) -> Result<Action, RequestError> {
        if let Some(wait) = self.refusals.creations.wait(home, &local.live) {
            return Ok(Action::LookAgain(wait));
        }
        let shadow = match self.forged(home, local).await? {
            Some(Ok(shadow)) => shadow,
            Some(Err(Refusal(why))) => {
                self.show(home, local, "OffloadingRefused", &why, mirror).await?;
                return Ok(Action::Await); // only a change of the pod can help
            }
            None => return Ok(Action::Await), // deleted meanwhile: its event is on the way
        };
        self.unseen.lock().insert(away.clone(), local.uid.clone());
        match self.writes.create_shadow(away, &shadow).await {
            Ok(()) => {
                tracing::debug!(pod = %home, shadow = %away, "ShadowPod created");
                self.refusals.creations.forget(home);
                Ok(Action::Await)
            }
            Err(error) if is_conflict(&error) => self.name_taken(home, away, local, mirror, error).await,
            Err(error) => self.refused(home, away, local, mirror, error).await,
        }
    }

    async fn forged(
        &self,
        home: &ObjectKey,
        local: &LocalDigest,
    ) -> Result<Option<Result<Box<ShadowPod>, Refusal>>, RequestError> {
        let forged = local.forged.lock().clone();
        if forged.is_some() {
            return Ok(forged);
        }
        let read = self.writes.local(home, &local.uid).await.map_err(while_trying("read the pod"))?;
        Ok(read.map(|read| forge::shadow_pod(&read, &self.context).map(Box::new)))
    }

    /// The provider answered, and not with yes: the user sees what it said, and it is asked again after a while.
    async fn refused(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        local: &LocalDigest,
        mirror: &Mirror<'_>,
        error: kube::Error,
    ) -> Result<Action, RequestError> {
        let kube::Error::Api(status) = &error else {
            return Err(while_trying("create the ShadowPod")(error)); // it may be there for all we know
        };
        if status.code < 500 {
            self.unseen.lock().remove(away); // refused for certain
        }
        let pause = self.refusals.creations.failed(home, &local.live).max(error.retry_after().unwrap_or_default());
        // A server that is only busy or hiccups once is no news.
        if error.category() == Category::Permanent || pause > self.refusals.creations.first() {
            self.show(home, local, "OffloadingRefused", &words(&error), mirror).await?;
        }
        tracing::warn!(pod = %home, error = words(&error), ?pause, "the provider refuses the ShadowPod");
        Ok(Action::LookAgain(pause))
    }

    /// The name is in use: by our own ShadowPod that the watch has not shown yet, or by one that is none of ours.
    async fn name_taken(
        &self,
        home: &ObjectKey,
        away: &ObjectKey,
        local: &LocalDigest,
        mirror: &Mirror<'_>,
        error: kube::Error,
    ) -> Result<Action, RequestError> {
        let Some(there) = self.writes.shadow(away).await? else {
            return Err(while_trying("create the ShadowPod")(error));
        };
        let ownership = self.context.ownership();
        if ownership.iter().all(|(key, value)| there.labels().get(*key).is_some_and(|there| there == value)) {
            return Ok(Action::Await);
        }
        let message = format!(
            "the remote namespace {} has a ShadowPod of this name that is not ours; it is left alone",
            away.namespace
        );
        self.show(home, local, "OffloadingNameTaken", &message, mirror).await?;
        Ok(Action::LookAgain(self.refusals.creations.failed(home, &local.live)))
    }

    async fn show(
        &self,
        home: &ObjectKey,
        local: &LocalDigest,
        reason: &str,
        message: &str,
        mirror: &Mirror<'_>,
    ) -> Result<(), RequestError> {
        match plan::refused(local, reason, message, mirror) {
            Step::WriteStatus { uid, patch } => self.write_status(home, local, &uid, patch).await,
            _ => Ok(()),
        }
    }
}
