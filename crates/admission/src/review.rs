//! AdmissionReviews: what a handler is asked and how it answers. A handler decides from the request alone; it has no client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::error_handling::HandleErrorLayer;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use json_patch::{Patch, PatchOperation};
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::timeout::TimeoutLayer;
use tower::{BoxError, ServiceBuilder};

use crate::metrics::ReviewMetrics;

/// Two objects of the largest size that an API server takes, and what goes around them.
const LARGEST_BODY: usize = 8 << 20;
/// Below the timeout in the webhook configuration, so that the API server hears why.
const TIMEOUT: Duration = Duration::from_secs(4);
const CONCURRENCY: usize = 64;

pub type Request = AdmissionRequest<DynamicObject>;

/// A mutating webhook.
pub trait Handler: Send + Sync + 'static {
    /// Where it is served; the webhook configuration in the chart names it.
    fn path(&self) -> &'static str;

    /// The operations that change the object; none lets it pass as it is.
    fn review(&self, request: &Request) -> Vec<PatchOperation>;
}

/// Serves every handler at its path.
pub fn router(handlers: Vec<Arc<dyn Handler>>, metrics: &ReviewMetrics) -> Router {
    let mut router = Router::new();
    for handler in handlers {
        let (path, metrics) = (handler.path(), metrics.clone());
        router = router.route(path, post(move |body: Bytes| std::future::ready(serve(&*handler, &body, &metrics))));
    }
    let late = |_: BoxError| std::future::ready((StatusCode::SERVICE_UNAVAILABLE, "the request took too long\n"));
    router.layer(DefaultBodyLimit::max(LARGEST_BODY)).layer(
        ServiceBuilder::new()
            .layer(HandleErrorLayer::new(late))
            .layer(TimeoutLayer::new(TIMEOUT))
            .layer(GlobalConcurrencyLimitLayer::new(CONCURRENCY)),
    )
}

fn serve(handler: &dyn Handler, body: &[u8], metrics: &ReviewMetrics) -> Response {
    let begun = Instant::now();
    let answer = answer(handler, body);
    let outcome = match &answer {
        Ok(response) if response.patch.is_some() => "changed",
        Ok(_) => "unchanged",
        Err(_) => "malformed",
    };
    metrics.reviewed(handler.path(), outcome, begun.elapsed());
    let written = answer.and_then(|response| {
        serde_json::to_vec(&response.into_review()).map_err(|error| format!("the answer cannot be written: {error}"))
    });
    match written {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(message) => {
            tracing::warn!(path = handler.path(), message, "a request that is no usable AdmissionReview");
            (StatusCode::BAD_REQUEST, message + "\n").into_response()
        }
    }
}

/// The answer to the bytes of an AdmissionReview; an error says what is wrong with them.
fn answer(handler: &dyn Handler, body: &[u8]) -> Result<AdmissionResponse, String> {
    let review: AdmissionReview<DynamicObject> =
        serde_json::from_slice(body).map_err(|error| format!("the body is not an AdmissionReview: {error}"))?;
    if review.types.kind != "AdmissionReview" || review.types.api_version != "admission.k8s.io/v1" {
        let (kind, version) = (&review.types.kind, &review.types.api_version);
        return Err(format!("the body is a {kind} of {version}, not an AdmissionReview of admission.k8s.io/v1"));
    }
    let request: Request = review.try_into().map_err(|_| "the AdmissionReview has no request".to_owned())?;
    let operations = handler.review(&request);
    let response = AdmissionResponse::from(&request);
    if operations.is_empty() {
        return Ok(response);
    }
    tracing::debug!(
        path = handler.path(),
        namespace = request.namespace,
        name = request.name,
        dry_run = request.dry_run,
        "object changed"
    );
    response.with_patch(Patch(operations)).map_err(|error| format!("the patch cannot be written: {error}"))
}

#[cfg(test)]
mod tests;
