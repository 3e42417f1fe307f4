//! The metrics of an operator, in a registry of its own (no process-wide state, so tests can have several).

use std::sync::Arc;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

const LATENCY_BUCKETS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

#[derive(Clone)]
pub struct Metrics(Arc<Families>);

struct Families {
    registry: Registry,
    reconciles: IntCounterVec,
    reconcile_duration: HistogramVec,
    queue_depth: IntGaugeVec,
    retries: IntCounterVec,
    watch_restarts: IntCounterVec,
    watches_open: IntGaugeVec,
    undecodable: IntCounterVec,
    requests: IntCounterVec,
    request_duration: HistogramVec,
    leader: IntGauge,
    peer_reachable: IntGaugeVec,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let families = Families {
            reconciles: register(
                &registry,
                counter("reconcile_total", "Reconciles by result", &["controller", "outcome"]),
            ),
            reconcile_duration: register(
                &registry,
                histogram("reconcile_duration_seconds", "How long a reconcile took", &["controller"]),
            ),
            queue_depth: register(
                &registry,
                gauge("queue_depth", "Keys waiting for a worker or a retry", &["controller"]),
            ),
            retries: register(
                &registry,
                counter("retries_total", "Reconciles to be tried again, by cause", &["controller", "category"]),
            ),
            watch_restarts: register(
                &registry,
                counter("watch_restarts_total", "Watches that broke and were opened anew", &["cluster", "resource"]),
            ),
            watches_open: register(&registry, gauge("watches_open", "Watches that are open", &["cluster"])),
            undecodable: register(
                &registry,
                counter(
                    "undecodable_objects_total",
                    "Objects skipped because they could not be decoded",
                    &["cluster", "resource"],
                ),
            ),
            requests: register(
                &registry,
                counter("api_requests_total", "Requests to an API server", &["cluster", "method", "code"]),
            ),
            request_duration: register(
                &registry,
                histogram(
                    "api_request_duration_seconds",
                    "Time until an API server's answer began",
                    &["cluster", "method"],
                ),
            ),
            leader: register(&registry, single("leader", "1 while this instance holds its lease")),
            peer_reachable: register(
                &registry,
                gauge("peer_reachable", "1 while the API server of that cluster answers its probe", &["cluster"]),
            ),
            registry,
        };
        #[cfg(target_os = "linux")]
        let _ = families.registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()));
        Self(Arc::new(families))
    }
}

impl Metrics {
    /// For the families that only one operator has.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    pub fn controller(&self, name: &'static str) -> ControllerMetrics {
        ControllerMetrics { families: self.clone(), name }
    }

    pub fn watch_restarted(&self, cluster: &str, resource: &str) {
        self.0.watch_restarts.with_label_values(&[cluster, resource]).inc();
    }

    pub fn watches_open(&self, cluster: &str) -> IntGauge {
        self.0.watches_open.with_label_values(&[cluster])
    }

    pub fn undecodable(&self, cluster: &str, resource: &str) {
        self.0.undecodable.with_label_values(&[cluster, resource]).inc();
    }

    pub fn request(&self, cluster: &str, method: &str, code: &str, took: Duration) {
        self.0.requests.with_label_values(&[cluster, method, code]).inc();
        self.0.request_duration.with_label_values(&[cluster, method]).observe(took.as_secs_f64());
    }

    pub fn leader(&self, leads: bool) {
        self.0.leader.set(i64::from(leads));
    }

    pub fn peer_reachable(&self, cluster: &str, reachable: bool) {
        self.0.peer_reachable.with_label_values(&[cluster]).set(i64::from(reachable));
    }

    /// The text format that Prometheus scrapes.
    pub fn render(&self) -> String {
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.0.registry.gather(), &mut text) {
            tracing::error!(%error, "metrics could not be rendered");
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// The metrics of one controller.
#[derive(Clone)]
pub struct ControllerMetrics {
    families: Metrics,
    name: &'static str,
}

impl ControllerMetrics {
    pub fn reconciled(&self, outcome: &str, took: Duration) {
        let families = &self.families.0;
        families.reconciles.with_label_values(&[self.name, outcome]).inc();
        families.reconcile_duration.with_label_values(&[self.name]).observe(took.as_secs_f64());
    }

    pub fn retried(&self, category: &str) {
        self.families.0.retries.with_label_values(&[self.name, category]).inc();
    }

    pub fn depth(&self, depth: usize) {
        let depth = i64::try_from(depth).unwrap_or(i64::MAX);
        self.families.0.queue_depth.with_label_values(&[self.name]).set(depth);
    }
}

fn counter(name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntCounterVec> {
    IntCounterVec::new(Opts::new(name, help).namespace("spillway"), labels)
}

fn gauge(name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
    IntGaugeVec::new(Opts::new(name, help).namespace("spillway"), labels)
}

fn single(name: &str, help: &str) -> prometheus::Result<IntGauge> {
    IntGauge::with_opts(Opts::new(name, help).namespace("spillway"))
}

fn histogram(name: &str, help: &str, labels: &[&str]) -> prometheus::Result<HistogramVec> {
    let opts = HistogramOpts::new(name, help).namespace("spillway").buckets(LATENCY_BUCKETS.to_vec());
    HistogramVec::new(opts, labels)
}

/// Registers a family under a name that is fixed at compile time; a test renders all of them.
#[allow(clippy::expect_used, reason = "the names are literals above, and a test constructs every one of them")]
fn register<C: Collector + Clone + 'static>(registry: &Registry, family: prometheus::Result<C>) -> C {
    let family = family.expect("a valid metric name");
    registry.register(Box::new(family.clone())).expect("a metric name used once");
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_rendered_under_its_documented_name() {
        let metrics = Metrics::default();
        let controller = metrics.controller("pods");
        controller.reconciled("ok", Duration::from_millis(3));
        controller.retried("transient");
        controller.depth(2);
        metrics.watch_restarted("remote", "pods");
        metrics.watches_open("remote").inc();
        metrics.undecodable("remote", "pods");
        metrics.request("remote", "POST", "201", Duration::from_millis(1));
        metrics.leader(true);
        metrics.peer_reachable("remote", true);
        let text = metrics.render();
        for line in [
            "spillway_reconcile_total{controller=\"pods\",outcome=\"ok\"} 1",
            "spillway_reconcile_duration_seconds_count{controller=\"pods\"} 1",
            "spillway_queue_depth{controller=\"pods\"} 2",
            "spillway_retries_total{category=\"transient\",controller=\"pods\"} 1",
            "spillway_watch_restarts_total{cluster=\"remote\",resource=\"pods\"} 1",
            "spillway_watches_open{cluster=\"remote\"} 1",
            "spillway_undecodable_objects_total{cluster=\"remote\",resource=\"pods\"} 1",
            "spillway_api_requests_total{cluster=\"remote\",code=\"201\",method=\"POST\"} 1",
            "spillway_leader 1",
            "spillway_peer_reachable{cluster=\"remote\"} 1",
            "process_resident_memory_bytes",
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
    }
}
