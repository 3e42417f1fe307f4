//! Watch → index → notify. One task per watch; it never ends by itself.
//!
//! Every event changes the index first and then names the key, so whoever is woken by the key sees at least that
//! change. Nothing is fanned out as an object: an object that is created and deleted before anyone looks is two
//! notifications and an absent entry, never a lost wake-up.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use kube::api::{Api, Resource};
use kube::runtime::watcher::{self, Event};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::words;
use crate::guarded::Guarded;
use crate::health::Gate;
use crate::index::{Index, Scope};
use crate::key::ObjectKey;
use crate::metrics::Metrics;
use crate::peer::Kicks;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A watch that lasted so long after a refusal is allowed.
const ACCEPTED_AFTER: Duration = Duration::from_secs(1);

/// Where and what to watch, and how to tell of it.
pub struct Watch {
    /// "local" or "remote", for metrics.
    pub cluster: &'static str,
    /// Plural of the resource, for metrics and logs.
    pub resource: &'static str,
    pub scope: Scope,
    pub config: watcher::Config,
    pub metrics: Metrics,
    /// Ends a pause early when the peer is back.
    pub kicks: Kicks,
    /// Opened after the first complete list.
    pub synced: Gate,
    /// Told in the API server's words when it refuses to list or watch, and `None` once it has listed again.
    pub on_refusal: Option<Box<dyn Fn(Option<String>) + Send + Sync>>,
}

impl Watch {
    /// Feeds `index` until `stop`. `digest` turns an object into what the index keeps; `None` leaves it out.
    pub async fn run<K, D>(
        self,
        api: Api<Guarded<K>>,
        index: Arc<Index<D>>,
        digest: impl Fn(K) -> Option<D>,
        notify: impl Fn(ObjectKey),
        stop: CancellationToken,
    ) where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug + Send + 'static,
    {
        let open = self.metrics.watches_open(self.cluster);
        open.inc();
        let mut feed = Feed { watch: &self, index: &index, digest, notify, listed: None };
        let mut pauses = Pauses::default();
        // Since it was refused: when it counts as accepted again.
        let (mut refused, mut accepted_at) = (false, None::<Instant>);
        let mut kicks = self.kicks.clone();
        while !stop.is_cancelled() {
            let events = watcher::watcher(api.clone(), self.config.clone());
            pin_mut!(events);
            loop {
                let event = tokio::select! {
                    () = stop.cancelled() => break,
                    event = events.next() => event,
                    () = tokio::time::sleep_until(accepted_at.unwrap_or_else(Instant::now)), if accepted_at.is_some() => {
                        (refused, accepted_at) = (false, None);
                        pauses.end();
                        if let Some(tell) = &self.on_refusal {
                            tell(None);
                        }
                        continue;
                    }
                };
                match event {
                    Some(Ok(event)) => {
                        // Only the announcement of a list, which may yet fail: no success.
                        if !refused && !matches!(event, Event::Init) {
                            pauses.end();
                        }
                        // Who may list need not be allowed to watch: only time tells.
                        if refused && matches!(event, Event::InitDone) {
                            accepted_at = Some(Instant::now() + ACCEPTED_AFTER);
                        }
                        feed.take(event);
                    }
                    Some(Err(error)) => {
                        tracing::debug!(resource = self.resource, cluster = self.cluster, %error, "watch broke");
                        self.metrics.watch_restarted(self.cluster, self.resource);
                        accepted_at = None;
                        let refusal = refusal(&error);
                        let list_again = refusal.is_some() || must_list_again(&error);
                        refused |= refusal.is_some();
                        if let (Some(tell), Some(refusal)) = (&self.on_refusal, refusal) {
                            tell(Some(refusal));
                        }
                        tokio::select! {
                            () = stop.cancelled() => break,
                            () = tokio::time::sleep(pauses.next(Instant::now())) => {}
                            () = kicks.kicked() => pauses.end(),
                        }
                        if list_again {
                            break;
                        }
                    }
                    None => break,
                }
            }
        }
        open.dec();
    }
}

/// How long to wait after each break: longer and longer while they follow one another, and from the start again after a
/// time without. A watch on which nothing happens gives no other sign that it works.
#[derive(Default)]
struct Pauses {
    last: Option<(Instant, Duration)>,
}

impl Pauses {
    fn next(&mut self, now: Instant) -> Duration {
        let follows = |(at, pause): &(Instant, Duration)| now.duration_since(*at) < *pause + LONGEST_PAUSE;
        let pause = match self.last.filter(follows) {
            Some((_, before)) => (before * 2).min(LONGEST_PAUSE),
            None => FIRST_PAUSE,
        };
        self.last = Some((now, pause));
        pause
    }

    fn end(&mut self) {
        self.last = None;
    }
}

/// What the API server answered, if it did and said no. Whether the watch works again only a new list can tell.
fn refusal(error: &watcher::Error) -> Option<String> {
    match error {
        watcher::Error::InitialListFailed(error @ kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(error @ kube::Error::Api(status))
            if status.code == 403 || status.code == 404 =>
        {
            Some(words(error))
        }
        _ => None,
    }
}

/// A watch refused outright as too old: the stream would ask for the same version for ever.
fn must_list_again(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410)
}

struct Feed<'a, D, F, N> {
    watch: &'a Watch,
    index: &'a Index<D>,
    digest: F,
    notify: N,
    /// The keys of the list under way.
    listed: Option<HashSet<ObjectKey>>,
}

impl<D, F, N> Feed<'_, D, F, N>
where
    N: Fn(ObjectKey),
{
    fn take<K>(&mut self, event: Event<Guarded<K>>)
    where
        K: Resource<DynamicType = ()>,
        F: Fn(K) -> Option<D>,
    {
        match event {
            Event::Init => self.listed = Some(HashSet::new()),
            Event::InitApply(object) => {
                let key = ObjectKey::of(&object);
                if let Some(listed) = &mut self.listed {
                    listed.insert(key.clone());
                }
                self.apply(key, object);
            }
            Event::InitDone => {
                let listed = self.listed.take().unwrap_or_default();
                for key in self.index.complete(&self.watch.scope, &listed) {
                    (self.notify)(key);
                }
                self.watch.synced.open();
            }
            Event::Apply(object) => self.apply(ObjectKey::of(&object), object),
            Event::Delete(object) => {
                let key = ObjectKey::of(&object);
                // The event shows it as it was at its end, which no event before may have told.
                if let (true, Ok(object)) = (self.index.keeps_last(), object.0)
                    && let Some(digest) = (self.digest)(object)
                {
                    self.index.insert(key.clone(), digest);
                }
                self.index.remove(&key);
                (self.notify)(key);
            }
        }
    }

    fn apply<K>(&self, key: ObjectKey, object: Guarded<K>)
    where
        K: Resource<DynamicType = ()>,
        F: Fn(K) -> Option<D>,
    {
        match object.0 {
            Ok(mut object) => {
                object.meta_mut().managed_fields = None;
                match (self.digest)(object) {
                    Some(digest) => self.index.insert(key.clone(), digest),
                    None => drop(self.index.remove(&key)),
                }
                (self.notify)(key);
            }
            // What is known of it stays: an object that can't be read is not an object that is gone.
            Err(error) => {
                self.index.mark_unreadable(key.clone());
                self.watch.metrics.undecodable(self.watch.cluster, self.watch.resource);
                tracing::warn!(%key, resource = self.watch.resource, %error, "object skipped: it cannot be decoded");
            }
        }
    }
}

/// Feeds events from any stream.
#[cfg(test)]
async fn feed<K, D>(
    watch: &Watch,
    events: impl futures::Stream<Item = Event<Guarded<K>>>,
    index: &Index<D>,
    digest: impl Fn(K) -> Option<D>,
    notify: impl Fn(ObjectKey),
) where
    K: Resource<DynamicType = ()>,
{
    let mut feed = Feed { watch, index, digest, notify, listed: None };
    pin_mut!(events);
    while let Some(event) = events.next().await {
        feed.take(event);
    }
}

#[cfg(test)]
mod tests;
