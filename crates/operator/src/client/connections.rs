//! TCP connections that know when they last heard something and can be closed from outside.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that stay unacknowledged this long end a connection, even if nobody closes it from outside.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(20);

static PROCESS_START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn millis(at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(*PROCESS_START).as_millis()).unwrap_or(u64::MAX)
}

/// All open connections of a client to one cluster.
#[derive(Clone, Default)]
pub struct Connections(Arc<Mutex<Vec<Weak<Pulse>>>>);

impl Connections {
    /// Closes every connection that has heard nothing since `then`; returns how many.
    /// A watch on it resumes where it was, on a new connection; a request on it fails and is retried.
    pub fn close_silent_since(&self, then: Instant) -> usize {
        let then = millis(then);
        self.living().iter().filter(|pulse| pulse.last_heard.load(Ordering::Relaxed) < then).map(|p| p.close()).count()
    }

    pub fn count(&self) -> usize {
        self.living().len()
    }

    fn living(&self) -> Vec<Arc<Pulse>> {
        let mut all = self.0.lock();
        all.retain(|pulse| pulse.strong_count() > 0);
        all.iter().filter_map(Weak::upgrade).collect()
    }

    fn track(&self, stream: TokioIo<TcpStream>) -> Tracked {
        let pulse = Arc::new(Pulse::default());
        pulse.heard();
        let mut all = self.0.lock();
        all.retain(|pulse| pulse.strong_count() > 0);
        all.push(Arc::downgrade(&pulse));
        Tracked { stream, pulse }
    }
}

#[derive(Default)]
struct Pulse {
    last_heard: AtomicU64,
    closed: AtomicBool,
    waker: AtomicWaker,
}

impl Pulse {
    fn heard(&self) {
        self.last_heard.store(millis(Instant::now()), Ordering::Relaxed);
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Registers the task before it looks, so that a close between the two still wakes it.
    fn check(&self, cx: &Context<'_>) -> io::Result<()> {
        self.waker.register(cx.waker());
        if self.closed.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "closed: silent while the peer was away"));
        }
        Ok(())
    }
}

pub(super) struct Tracked {
    stream: TokioIo<TcpStream>,
    pulse: Arc<Pulse>,
}

impl Read for Tracked {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.pulse.check(cx)?;
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = read {
            this.pulse.heard();
        }
        read
    }
}

impl Write for Tracked {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.pulse.check(cx)?;
        Pin::new(&mut this.stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.pulse.check(cx)?;
        Pin::new(&mut this.stream).poll_write_vectored(cx, bufs)
    }
}

impl Connection for Tracked {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

#[derive(Clone)]
pub(super) struct TrackedConnector {
    inner: HttpConnector,
    connections: Connections,
}

impl TrackedConnector {
    pub(super) fn new(connections: Connections) -> Self {
        let mut inner = HttpConnector::new();
        inner.enforce_http(false);
        inner.set_nodelay(true);
        inner.set_connect_timeout(Some(CONNECT_TIMEOUT));
        inner.set_keepalive(Some(Duration::from_secs(15)));
        inner.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT));
        Self { inner, connections }
    }
}

impl Service<Uri> for TrackedConnector {
    type Response = Tracked;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Tracked, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connections = self.connections.clone();
        let connecting = self.inner.call(uri);
        async move { Ok(connections.track(connecting.await?)) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    async fn connect(connections: &Connections, to: SocketAddr) -> TokioIo<Tracked> {
        let uri = format!("http://{to}").parse().unwrap();
        TokioIo::new(TrackedConnector::new(connections.clone()).call(uri).await.unwrap())
    }

    #[tokio::test]
    async fn only_connections_that_heard_nothing_are_closed_and_a_pending_read_wakes() {
        use tokio::io::AsyncReadExt;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Connections::default();
        let mut silent = connect(&connections, address).await;
        let (_silent_server, _) = listener.accept().await.unwrap();
        let mut chatty = connect(&connections, address).await;
        let (mut chatty_server, _) = listener.accept().await.unwrap();
        assert_eq!(connections.count(), 2);

        let pending = tokio::spawn(async move { silent.read_u8().await });
        tokio::time::sleep(Duration::from_millis(20)).await; // both connections are now older than `cut`
        let cut = Instant::now();
        chatty_server.write_u8(7).await.unwrap();
        assert_eq!(chatty.read_u8().await.unwrap(), 7);

        assert_eq!(connections.close_silent_since(cut), 1);
        let woken = tokio::time::timeout(Duration::from_secs(10), pending).await.expect("the read wakes").unwrap();
        assert_eq!(woken.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        chatty_server.write_u8(8).await.unwrap();
        assert_eq!(chatty.read_u8().await.unwrap(), 8, "the other one lives on");
        assert_eq!(connections.count(), 1);
    }
}
