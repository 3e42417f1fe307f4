use super::*;
use crate::queue::{Queue, Verdict};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

fn watch(scope: Scope) -> Watch {
    Watch {
        cluster: "local",
        resource: "configmaps",
        scope,
        config: watcher::Config::default(),
        metrics: Metrics::default(),
        kicks: Kicks::default(),
        synced: Gate::default(),
        on_refusal: None,
    }
}

fn object(name: &str, data: serde_json::Value) -> Guarded<ConfigMap> {
    let text = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "ns", "name": name, "resourceVersion": "1",
                     "managedFields": [{"manager": "m", "operation": "Apply"}]},
        "data": data,
    })
    .to_string();
    serde_json::from_str(&text).expect("metadata can be read")
}

fn good(name: &str) -> Guarded<ConfigMap> {
    object(name, json!({"a": "b"}))
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

async fn run(
    watch: &Watch,
    index: &Index<ConfigMap>,
    queue: &Queue<ObjectKey>,
    events: Vec<Event<Guarded<ConfigMap>>>,
) {
    feed(watch, futures::stream::iter(events), index, Some, |key| queue.add(key)).await;
}

/// kube-runtime's shared store drops the waker of a subscriber whose object is gone before it looks; ours must not.
#[tokio::test(start_paused = true)]
async fn created_and_deleted_before_anyone_looks_is_still_noticed() {
    let (watch, index, queue) = (watch(Scope::Cluster), Index::default(), Queue::default());
    run(
        &watch,
        &index,
        &queue,
        vec![
            Event::Init,
            Event::InitDone,
            Event::Apply(good("short")),
            Event::Delete(good("short")),
            Event::Apply(good("next")),
        ],
    )
    .await;
    assert_eq!(queue.next().await, key("short"));
    assert!(index.get(&key("short")).is_none());
    assert_eq!(queue.next().await, key("next"), "and the queue goes on");
}

/// The shared store tells subscribers of no deletion; and its 16 places fill up and block the watch itself.
#[tokio::test(start_paused = true)]
async fn deletions_are_told_and_a_slow_worker_never_blocks_the_watch() {
    let (watch, index, queue) = (watch(Scope::Cluster), Index::default(), Queue::default());
    queue.add(key("busy"));
    let busy = queue.next().await; // the only worker is occupied during everything below
    let mut events = vec![Event::Init, Event::InitDone];
    for i in 0..1000 {
        events.push(Event::Apply(good(&i.to_string())));
    }
    for i in 0..1000 {
        events.push(Event::Delete(good(&i.to_string())));
    }
    run(&watch, &index, &queue, events).await;
    assert!(index.is_empty());
    queue.finish(busy, Verdict::Done);
    for i in 0..1000 {
        assert_eq!(queue.next().await, key(&i.to_string()), "each deletion reached the queue, once");
    }
}

#[tokio::test]
async fn a_second_list_removes_what_it_does_not_contain_and_says_so() {
    let (watch, index, queue) = (watch(Scope::Cluster), Index::default(), Queue::default());
    run(
        &watch,
        &index,
        &queue,
        vec![Event::Init, Event::InitApply(good("stays")), Event::InitApply(good("goes")), Event::InitDone],
    )
    .await;
    for _ in 0..2 {
        let key = queue.next().await;
        queue.finish(key, Verdict::Done);
    }
    run(&watch, &index, &queue, vec![Event::Init, Event::InitApply(good("stays"))]).await;
    assert!(index.get(&key("goes")).is_some(), "a list that broke off removes nothing");
    run(&watch, &index, &queue, vec![Event::Init, Event::InitApply(good("stays")), Event::InitDone]).await;
    assert!(index.get(&key("goes")).is_none());
    let told = [queue.next().await, queue.next().await];
    assert!(told.contains(&key("goes")), "{told:?}");
}

#[tokio::test]
async fn an_object_that_cannot_be_decoded_is_counted_and_changes_nothing() {
    let (watch, index, queue) = (watch(Scope::Cluster), Index::default(), Queue::default());
    let broken = || object("known", json!("not a map"));
    run(
        &watch,
        &index,
        &queue,
        vec![
            Event::Init,
            Event::InitApply(good("known")),
            Event::InitDone,
            Event::Apply(broken()),
            Event::Init,
            Event::InitApply(broken()),
            Event::InitApply(good("other")),
            Event::InitDone,
        ],
    )
    .await;
    assert!(index.get(&key("known")).is_some(), "unreadable is not gone");
    assert!(index.get(&key("other")).is_some(), "and the watch goes on");
    let line = "spillway_undecodable_objects_total{cluster=\"local\",resource=\"configmaps\"} 2";
    assert!(watch.metrics.render().contains(line));
}

#[tokio::test]
async fn managed_fields_are_pruned() {
    let (watch, index, queue) = (watch(Scope::Cluster), Index::default(), Queue::default());
    run(&watch, &index, &queue, vec![Event::Init, Event::InitApply(good("a")), Event::InitDone]).await;
    assert!(index.get(&key("a")).expect("indexed").metadata.managed_fields.is_none());
}

/// kube announces every list before it asks for it; that alone must not count as a success.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_refused_is_asked_for_ever_more_seldom() {
    use kube::client::Body;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let refuse = tower::service_fn(move |_: http::Request<Body>| {
        counted.fetch_add(1, Ordering::SeqCst);
        let refusal =
            json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403});
        let body = Body::from(serde_json::to_vec(&refusal).unwrap());
        std::future::ready(Ok::<_, tower::BoxError>(http::Response::builder().status(403).body(body).unwrap()))
    });
    let client = kube::Client::new(refuse, "ns");
    let (stop, index) = (CancellationToken::new(), Arc::new(Index::<ConfigMap>::default()));
    let (watch, stopped) = (watch(Scope::Cluster), stop.clone());
    let running = tokio::spawn(async move {
        watch.run::<ConfigMap, _>(Api::all(client), index, Some, |_| {}, stopped).await;
    });
    tokio::time::sleep(Duration::from_secs(120)).await;
    stop.cancel();
    running.await.unwrap();
    let asked = asked.load(Ordering::SeqCst);
    assert!((5..=15).contains(&asked), "asked {asked} times in two minutes");
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_while_breaks_follow_one_another_and_begin_anew_after_a_time_without() {
    let mut pauses = Pauses::default();
    let mut last = Duration::ZERO;
    for _ in 0..10 {
        let pause = pauses.next(Instant::now());
        assert!(pause == LONGEST_PAUSE || pause > last, "{pause:?} after {last:?}");
        tokio::time::advance(pause).await;
        last = pause;
    }
    assert_eq!(last, LONGEST_PAUSE);
    tokio::time::advance(LONGEST_PAUSE * 2).await;
    assert_eq!(pauses.next(Instant::now()), FIRST_PAUSE, "a watch on which nothing happened had worked");
    pauses.next(Instant::now());
    pauses.end();
    assert_eq!(pauses.next(Instant::now()), FIRST_PAUSE);
}
