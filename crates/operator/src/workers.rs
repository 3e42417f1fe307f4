//! Bounded workers over a queue. A reconcile that hangs is cut off, one that panics is reported: neither loses its key.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::Categorised;
use crate::hush::Hush;
use crate::key::ObjectKey;
use crate::metrics::ControllerMetrics;
use crate::queue::{Queue, Verdict};

/// What a reconcile asks for when it went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Wait for a change.
    Await,
    /// Look again after this time, even if nothing changes.
    LookAgain(Duration),
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Reconciles at the same time.
    pub concurrency: usize,
    /// One that takes longer is cut off and tried again.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { concurrency: 128, timeout: Duration::from_secs(60) }
    }
}

/// Works on the queue until `stop`, then lets what is under way finish. Dropped, it ends what is under way at once: whoever
/// lost the lease must not write any more.
pub async fn run<F, Fut, E>(
    queue: Arc<Queue<ObjectKey>>,
    limits: Limits,
    metrics: ControllerMetrics,
    stop: CancellationToken,
    reconcile: F,
) where
    F: Fn(ObjectKey) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
    E: Categorised + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits.concurrency));
    let mut under_way = JoinSet::new();
    let (reconcile, hush) = (Arc::new(reconcile), Arc::new(Hush::default()));
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await.ok()?;
            Some((place, queue.next().await))
        };
        let (place, key) = tokio::select! {
            () = stop.cancelled() => break,
            next = next => match next {
                Some(next) => next,
                None => break,
            },
            Some(_) = under_way.join_next() => continue,
        };
        metrics.depth(queue.depth());
        let (queue, metrics, reconcile, hush) = (queue.clone(), metrics.clone(), reconcile.clone(), hush.clone());
        under_way.spawn(async move {
            let begun = Instant::now();
            let work = AssertUnwindSafe(async { reconcile(key.clone()).await }).catch_unwind();
            let ended = tokio::time::timeout(limits.timeout, work).await;
            let (outcome, verdict) = judge(&key, ended, &hush);
            metrics.reconciled(outcome, begun.elapsed());
            if let Verdict::Retry { .. } = verdict {
                metrics.retried(outcome);
            }
            queue.finish(key, verdict);
            metrics.depth(queue.depth());
            drop(place);
        });
    }
    while under_way.join_next().await.is_some() {}
}

type Ended<E> = Result<Result<Result<Action, E>, Box<dyn std::any::Any + Send>>, tokio::time::error::Elapsed>;

fn judge<E: Categorised>(key: &ObjectKey, ended: Ended<E>, hush: &Hush) -> (&'static str, Verdict) {
    let again = Verdict::Retry { at_least: Duration::ZERO };
    match ended {
        Ok(Ok(Ok(Action::Await))) => ("ok", Verdict::Done),
        Ok(Ok(Ok(Action::LookAgain(delay)))) => ("ok", Verdict::After(delay)),
        Ok(Ok(Err(error))) => {
            let category = error.category().as_str();
            if let Some(unsaid) = hush.say() {
                tracing::warn!(%key, category, %error, others_unsaid = unsaid, "reconcile failed");
            }
            (category, Verdict::Retry { at_least: error.retry_after().unwrap_or_default() })
        }
        Ok(Err(_panic)) => {
            tracing::error!(%key, "reconcile panicked; this is a bug");
            ("panic", again)
        }
        Err(_elapsed) => {
            tracing::warn!(%key, "reconcile took too long and was cut off");
            ("timeout", again)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Category;
    use crate::metrics::Metrics;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Debug)]
    struct Refused;

    impl std::fmt::Display for Refused {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("refused")
        }
    }

    impl Categorised for Refused {
        fn category(&self) -> Category {
            Category::Permanent
        }
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_a_hang_and_an_error_are_each_retried() {
        let metrics = Metrics::default();
        let queue = Arc::new(Queue::default());
        let stop = CancellationToken::new();
        let tries = Arc::new(AtomicUsize::new(0));
        let (counted, stop_later) = (tries.clone(), stop.clone());
        for name in ["panics", "hangs", "fails"] {
            queue.add(key(name));
        }
        let worker = tokio::spawn(run(
            queue.clone(),
            Limits { concurrency: 4, timeout: Duration::from_secs(5) },
            metrics.controller("test"),
            stop.clone(),
            move |key: ObjectKey| {
                let (tries, stop) = (counted.clone(), stop_later.clone());
                async move {
                    if tries.fetch_add(1, Ordering::SeqCst) < 3 {
                        match &*key.name {
                            "panics" => panic!("as told"),
                            "hangs" => std::future::pending::<()>().await,
                            _ => return Err(Refused),
                        }
                    }
                    if tries.load(Ordering::SeqCst) == 6 {
                        stop.cancel();
                    }
                    Ok(Action::Await)
                }
            },
        ));
        tokio::time::timeout(Duration::from_secs(120), worker).await.expect("stops").expect("no panic escapes");
        assert_eq!(tries.load(Ordering::SeqCst), 6);
        let text = metrics.render();
        for outcome in ["panic", "timeout", "permanent"] {
            let line = format!("spillway_reconcile_total{{controller=\"test\",outcome=\"{outcome}\"}} 1");
            assert!(text.contains(&line), "{line} in:\n{text}");
        }
        assert!(text.contains("spillway_reconcile_total{controller=\"test\",outcome=\"ok\"} 3"));
    }

    #[tokio::test]
    async fn no_more_than_the_limit_at_once() {
        let queue = Arc::new(Queue::default());
        let stop = CancellationToken::new();
        let (now, most, done) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for i in 0..200 {
            queue.add(key(&i.to_string()));
        }
        let (n, m, d, s) = (now.clone(), most.clone(), done.clone(), stop.clone());
        run(
            queue,
            Limits { concurrency: 7, ..Limits::default() },
            Metrics::default().controller("test"),
            stop,
            move |_| {
                let (now, most, done, stop) = (n.clone(), m.clone(), d.clone(), s.clone());
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    if done.fetch_add(1, Ordering::SeqCst) + 1 == 200 {
                        stop.cancel();
                    }
                    Ok::<_, Refused>(Action::Await)
                }
            },
        )
        .await;
        assert_eq!(done.load(Ordering::SeqCst), 200);
        assert!(most.load(Ordering::SeqCst) <= 7);
    }
}
