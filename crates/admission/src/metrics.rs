//! What an operator on call asks of a webhook: how often, with what result, and how long did it take.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts};
use spillway_operator::metrics::Metrics;

const BUCKETS: [f64; 8] = [0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.025, 0.1, 1.0];

#[derive(Clone)]
pub struct ReviewMetrics {
    reviews: IntCounterVec,
    duration: HistogramVec,
}

impl ReviewMetrics {
    /// Once per registry.
    pub fn new(metrics: &Metrics) -> prometheus::Result<Self> {
        let reviews = Opts::new("admission_reviews_total", "Admission requests by result").namespace("spillway");
        let duration = HistogramOpts::new("admission_review_duration_seconds", "How long a decision took");
        let families = Self {
            reviews: IntCounterVec::new(reviews, &["webhook", "outcome"])?,
            duration: HistogramVec::new(duration.namespace("spillway").buckets(BUCKETS.to_vec()), &["webhook"])?,
        };
        metrics.registry().register(Box::new(families.reviews.clone()))?;
        metrics.registry().register(Box::new(families.duration.clone()))?;
        Ok(families)
    }

    pub fn reviewed(&self, webhook: &str, outcome: &str, took: Duration) {
        self.reviews.with_label_values(&[webhook, outcome]).inc();
        self.duration.with_label_values(&[webhook]).observe(took.as_secs_f64());
    }
}
