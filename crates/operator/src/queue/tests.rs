use std::sync::Arc;

use super::*;

const RETRY: Verdict = Verdict::Retry { at_least: Duration::ZERO };

async fn expect_next(queue: &Queue<u32>) -> u32 {
    tokio::time::timeout(Duration::from_secs(60), queue.next()).await.expect("a key within a minute")
}

async fn expect_none(queue: &Queue<u32>, within: Duration) {
    assert!(tokio::time::timeout(within, queue.next()).await.is_err(), "no key was due");
}

#[tokio::test(start_paused = true)]
async fn keys_come_once_and_in_order() {
    let queue = Queue::default();
    for key in [3, 1, 3, 2, 1] {
        queue.add(key);
    }
    assert_eq!(queue.depth(), 3);
    assert_eq!([expect_next(&queue).await, expect_next(&queue).await, expect_next(&queue).await], [3, 1, 2]);
    expect_none(&queue, Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_is_never_worked_on_twice_at_once() {
    let queue = Queue::default();
    queue.add(1);
    assert_eq!(expect_next(&queue).await, 1);
    queue.add(1);
    expect_none(&queue, Duration::from_secs(1)).await;
    queue.finish(1, Verdict::Done);
    assert_eq!(expect_next(&queue).await, 1, "the change that came during the work is not lost");
    queue.finish(1, Verdict::Done);
    assert_eq!(queue.depth(), 0);
    assert!(queue.state.lock().entries.is_empty(), "a finished key leaves nothing behind");
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_up_to_the_cap_and_success_forgets_them() {
    let queue = Queue::default();
    queue.add(1);
    let mut last = Duration::ZERO;
    for _ in 0..20 {
        assert_eq!(expect_next(&queue).await, 1);
        last = queue.finish(1, RETRY).expect("a retry");
        assert!(last <= MAX_BACK_OFF);
    }
    assert!(last >= MAX_BACK_OFF.mul_f64(0.75));
    assert_eq!(expect_next(&queue).await, 1);
    queue.finish(1, Verdict::Done);
    queue.add(1);
    assert_eq!(expect_next(&queue).await, 1);
    assert!(queue.finish(1, RETRY).expect("a retry") <= FIRST_BACK_OFF);
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_delay_is_respected() {
    let queue = Queue::default();
    queue.add(1);
    expect_next(&queue).await;
    let asked = Duration::from_secs(7);
    assert_eq!(queue.finish(1, Verdict::Retry { at_least: asked }), Some(asked));
    expect_none(&queue, Duration::from_secs(6)).await;
    assert_eq!(expect_next(&queue).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_brings_a_waiting_key_forward_once() {
    let queue = Queue::default();
    queue.add(1);
    expect_next(&queue).await;
    queue.finish(1, Verdict::After(Duration::from_secs(3600)));
    queue.add(1);
    assert_eq!(expect_next(&queue).await, 1);
    queue.finish(1, Verdict::Done);
    expect_none(&queue, Duration::from_secs(7200)).await;
}

#[tokio::test(start_paused = true)]
async fn a_kick_releases_all_that_wait() {
    let queue = Queue::default();
    for key in 0..100 {
        queue.add(key);
    }
    for _ in 0..100 {
        let key = expect_next(&queue).await;
        queue.finish(key, Verdict::Retry { at_least: Duration::from_secs(30) });
    }
    let before = Instant::now();
    queue.kick();
    for _ in 0..100 {
        expect_next(&queue).await;
    }
    assert_eq!(Instant::now(), before, "nobody waited");
}

#[tokio::test]
async fn every_key_reaches_one_of_many_workers() {
    let queue = Arc::new(Queue::default());
    let (done, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let workers: Vec<_> = (0..16)
        .map(|_| {
            let (queue, done) = (queue.clone(), done.clone());
            tokio::spawn(async move {
                loop {
                    let key: u32 = queue.next().await;
                    tokio::task::yield_now().await;
                    queue.finish(key, Verdict::Done);
                    if done.send(key).is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    for key in 0..10_000 {
        queue.add(key);
    }
    let mut keys = std::collections::HashSet::new();
    while keys.len() < 10_000 {
        keys.insert(tokio::time::timeout(Duration::from_secs(30), seen.recv()).await.expect("progress"));
    }
    for worker in workers {
        worker.abort();
    }
}

#[test]
fn ten_thousand_keys_hold_no_object() {
    // An entry is the key twice (map and order) and a few words: no place for an object.
    assert!(size_of::<crate::ObjectKey>() <= 32);
    assert!(size_of::<Entry>() <= 40);
}

#[tokio::test(start_paused = true)]
async fn a_kick_reaches_also_what_is_being_worked_on() {
    let queue = Queue::default();
    queue.add(1);
    for _ in 0..20 {
        expect_next(&queue).await;
        queue.finish(1, RETRY);
    }
    expect_next(&queue).await;
    queue.kick();
    let before = Instant::now();
    queue.finish(1, RETRY); // on a connection from before
    assert_eq!(expect_next(&queue).await, 1);
    assert_eq!(Instant::now(), before, "tried again at once");
    assert!(queue.finish(1, RETRY).expect("a retry") <= FIRST_BACK_OFF * 2, "and its old failures are forgotten");
}
