//! Leader election by a Lease, as other Kubernetes controllers do it: every write carries the resource version that was
//! read, and a lease is judged expired by how long *this* process has seen it unchanged, never by comparing clocks.

use std::future::Future;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::{found, is_conflict};
use crate::metrics::Metrics;

/// Followers take over when the lease has not moved for this long.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// The leader gives up when it could not renew for this long: before any follower takes over.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_PERIOD: Duration = Duration::from_secs(2);

pub struct Election {
    api: Api<Lease>,
    name: String,
    identity: String,
    metrics: Metrics,
}

/// The lease, won.
pub struct Lead {
    election: Election,
    /// When it was asked for.
    since: Instant,
}

impl Lead {
    /// Works, and hands the lease over once the work has ended. An error as soon as the lease is lost: the process must end
    /// then, because another instance may already be at work.
    pub async fn work(self, work: impl Future<Output = ()>) -> anyhow::Result<()> {
        let worked = CancellationToken::new();
        let held = self.election.hold(self.since, worked.clone());
        tokio::pin!(held);
        tokio::select! {
            lost = &mut held => lost,
            () = work => {
                worked.cancel();
                held.await
            }
        }
    }
}

/// What was last seen of the lease, and when it was first seen so.
struct Observed {
    lease: Lease,
    since: Instant,
}

impl Election {
    pub fn new(client: Client, namespace: &str, name: &str, identity: String, metrics: Metrics) -> Self {
        Self { api: Api::namespaced(client, namespace), name: name.to_owned(), identity, metrics }
    }

    /// Waits until this instance leads; `None` if `stop` came first. What the work acts upon is to be listed after this: a
    /// list from before may lack what the former leader did last.
    pub async fn win(self, stop: &CancellationToken) -> Option<Lead> {
        let mut observed: Option<Observed> = None;
        while !stop.is_cancelled() {
            // The lease counts from before it was asked for: an answer may be late.
            let asked = Instant::now();
            match self.attempt(&mut observed).await {
                Ok(true) if asked.elapsed() < RENEW_DEADLINE => {
                    tracing::info!(lease = self.name, identity = self.identity, "leading");
                    self.metrics.leader(true);
                    return Some(Lead { election: self, since: asked });
                }
                Ok(true) => tracing::warn!(lease = self.name, "the lease was taken, but the answer came late"),
                Ok(false) => {}
                Err(error) => tracing::warn!(lease = self.name, %error, "the lease could not be taken"),
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(RETRY_PERIOD) => {}
            }
        }
        None
    }

    async fn attempt(&self, observed: &mut Option<Observed>) -> kube::Result<bool> {
        let Some(lease) = found(self.api.get(&self.name).await)? else {
            return self.settle(self.api.create(&PostParams::default(), &self.taken(None)).await);
        };
        let unchanged = observed.as_ref().is_some_and(|seen| seen.lease.spec == lease.spec);
        if !unchanged {
            *observed = Some(Observed { lease: lease.clone(), since: Instant::now() });
        }
        let seen_for = observed.as_ref().map(|seen| seen.since.elapsed()).unwrap_or_default();
        if !may_take(&lease, &self.identity, seen_for) {
            return Ok(false);
        }
        let taken = self.taken(Some(&lease));
        self.settle(self.api.replace(&self.name, &PostParams::default(), &taken).await)
    }

    /// A conflict means that somebody else was quicker.
    fn settle(&self, written: kube::Result<Lease>) -> kube::Result<bool> {
        match written {
            Ok(_) => Ok(true),
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn taken(&self, before: Option<&Lease>) -> Lease {
        let now = MicroTime(Timestamp::now());
        let spec = before.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let ours = spec.holder_identity.as_deref() == Some(&*self.identity);
        Lease {
            metadata: before.map_or_else(
                || ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                |lease| lease.metadata.clone(),
            ),
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
                acquire_time: if ours { spec.acquire_time } else { Some(now.clone()) },
                renew_time: Some(now),
                lease_transitions: Some(spec.lease_transitions.unwrap_or(0) + i32::from(!ours)),
                ..spec
            }),
        }
    }

    /// Renews until `stop`, then hands the lease over. Ends with an error as soon as the lease is lost.
    async fn hold(self, since: Instant, stop: CancellationToken) -> anyhow::Result<()> {
        let mut renewed = since;
        loop {
            tokio::select! {
                () = stop.cancelled() => return self.release().await,
                () = tokio::time::sleep(RETRY_PERIOD) => {}
            }
            let (asked, left) = (Instant::now(), RENEW_DEADLINE.saturating_sub(renewed.elapsed()));
            match tokio::time::timeout(left, self.renew()).await {
                Ok(Ok(true)) => renewed = asked,
                Ok(Ok(false)) => {
                    self.metrics.leader(false);
                    anyhow::bail!("the lease {} is held by another instance", self.name);
                }
                Ok(Err(error)) => tracing::warn!(lease = self.name, %error, "the lease could not be renewed"),
                Err(_) => {
                    self.metrics.leader(false);
                    anyhow::bail!("the lease {} could not be renewed for {RENEW_DEADLINE:?}", self.name);
                }
            }
        }
    }

    async fn renew(&self) -> kube::Result<bool> {
        let Some(lease) = found(self.api.get(&self.name).await)? else {
            return self.settle(self.api.create(&PostParams::default(), &self.taken(None)).await);
        };
        if holder(&lease) != Some(&self.identity) {
            return Ok(false);
        }
        let taken = self.taken(Some(&lease));
        self.settle(self.api.replace(&self.name, &PostParams::default(), &taken).await)
    }

    async fn release(&self) -> anyhow::Result<()> {
        self.metrics.leader(false);
        let lease = self.api.get(&self.name).await.context("the lease could not be read to hand it over")?;
        if holder(&lease) != Some(&self.identity) {
            return Ok(());
        }
        let mut released = lease;
        if let Some(spec) = &mut released.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
        }
        match self.api.replace(&self.name, &PostParams::default(), &released).await {
            Ok(_) => Ok(()),
            Err(error) if is_conflict(&error) => Ok(()),
            Err(error) => Err(error).context("the lease could not be handed over"),
        }
    }
}

fn holder(lease: &Lease) -> Option<&String> {
    lease.spec.as_ref()?.holder_identity.as_ref().filter(|holder| !holder.is_empty())
}

/// Free, our own from before a restart, or not moved for its whole duration while we looked.
fn may_take(lease: &Lease, identity: &str, unchanged_for: Duration) -> bool {
    let Some(holder) = holder(lease) else { return true };
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
    let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).max(Duration::from_secs(1));
    holder == identity || unchanged_for >= duration
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str) -> Lease {
        Lease {
            metadata: ObjectMeta::default(),
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(15),
                // Long past, and in the future: neither clock matters.
                renew_time: Some(MicroTime(Timestamp::UNIX_EPOCH)),
                ..LeaseSpec::default()
            }),
        }
    }

    #[test]
    fn a_lease_is_taken_only_when_free_ours_or_seen_unchanged_for_its_duration() {
        assert!(may_take(&lease(""), "me", Duration::ZERO));
        assert!(may_take(&lease("me"), "me", Duration::ZERO), "a restarted container takes its own lease back");
        assert!(!may_take(&lease("other"), "me", Duration::ZERO), "an old renew time alone says nothing");
        assert!(!may_take(&lease("other"), "me", Duration::from_secs(14)));
        assert!(may_take(&lease("other"), "me", Duration::from_secs(15)));
    }

    #[test]
    fn the_leader_gives_up_before_a_follower_may_take_over() {
        assert!(RENEW_DEADLINE + RETRY_PERIOD < LEASE_DURATION);
    }
}
