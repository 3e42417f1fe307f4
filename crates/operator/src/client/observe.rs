//! A layer that counts, times and bounds every request.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use tower::{BoxError, Layer, Service};

use crate::metrics::Metrics;

#[derive(Clone)]
pub(super) struct ObserveLayer {
    cluster: &'static str,
    metrics: Metrics,
    timeout: Duration,
}

impl ObserveLayer {
    /// `timeout` bounds the time until the answer begins; a watch's body may take for ever.
    pub(super) fn new(cluster: &'static str, metrics: Metrics, timeout: Duration) -> Self {
        Self { cluster, metrics, timeout }
    }
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe { inner, layer: self.clone() }
    }
}

#[derive(Clone)]
pub(super) struct Observe<S> {
    inner: S,
    layer: ObserveLayer,
}

impl<S, B, R> Service<Request<B>> for Observe<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<R>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let method = request.method().clone();
        let begun = Instant::now();
        let ObserveLayer { cluster, metrics, timeout } = self.layer.clone();
        let answer = self.inner.call(request);
        async move {
            let answer = match tokio::time::timeout(timeout, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("the {cluster} API server did not answer within {timeout:?}").into()),
            };
            let code = match &answer {
                Ok(response) => response.status().as_u16().to_string(),
                Err(_) => "none".to_owned(),
            };
            metrics.request(cluster, method.as_str(), &code, begun.elapsed());
            answer
        }
        .boxed()
    }
}
