//! A link of a given round-trip time: passes TCP connections on, each direction half of it later, at full bandwidth.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

const CHUNK: usize = 64 << 10;
/// What may be under way at once, in chunks: far more than a fast link of this kind holds.
const UNDER_WAY: usize = 1024;

/// Serves until the process ends.
pub async fn run(listen: SocketAddr, to: SocketAddr, rtt: Duration) -> Result<()> {
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    serve(listener, to, rtt).await
}

async fn serve(listener: TcpListener, to: SocketAddr, rtt: Duration) -> Result<()> {
    loop {
        let (near, _) = listener.accept().await.context("cannot accept connections")?;
        tokio::spawn(async move {
            if let Err(error) = connect(near, to, rtt).await {
                eprintln!("bench: a connection to {to} failed: {error:#}");
            }
        });
    }
}

async fn connect(near: TcpStream, to: SocketAddr, rtt: Duration) -> Result<()> {
    // A real link would have taken a round trip to answer the first packet; the first byte leaves no sooner.
    let open = Instant::now() + rtt;
    let far = TcpStream::connect(to).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
    let one_way = rtt / 2;
    tokio::join!(pass(near_read, far_write, one_way, open), pass(far_read, near_write, one_way, open));
    Ok(())
}

/// Passes bytes on, and the end of the stream after them.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, one_way: Duration, open: Instant) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let reading = async move {
        let mut buffer = vec![0; CHUNK];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            let due = Instant::now().max(open) + one_way;
            if sender.send((due, buffer[..read].to_vec())).await.is_err() {
                break;
            }
        }
    };
    let writing = async move {
        while let Some((due, chunk)) = receiver.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&chunk).await.is_err() {
                return;
            }
        }
        // The other end may be gone already.
        let _ = to.shutdown().await;
    };
    tokio::join!(reading, writing);
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn echo_behind(rtt: Duration) -> TcpStream {
        let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = echo.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = echo.accept().await.unwrap();
            let (mut read, mut write) = stream.split();
            tokio::io::copy(&mut read, &mut write).await.unwrap();
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, to, rtt));
        TcpStream::connect(at).await.unwrap()
    }

    #[tokio::test]
    async fn a_round_trip_takes_its_time_and_the_first_one_also_that_of_the_handshake() {
        let rtt = Duration::from_millis(40);
        let mut stream = echo_behind(rtt).await;
        for trips in [2, 1, 1] {
            let begun = Instant::now();
            stream.write_u8(7).await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), 7);
            assert!(begun.elapsed() >= rtt * trips - Duration::from_millis(2), "{:?}", begun.elapsed());
        }
    }

    #[tokio::test]
    async fn many_bytes_come_in_order_and_are_not_delayed_one_after_the_other() {
        let mut stream = echo_behind(Duration::from_millis(200)).await;
        let sent: Vec<u8> = (0..4 << 20).map(|index| (index % 251) as u8).collect();
        let mut received = vec![0; sent.len()];
        let begun = Instant::now();
        let (mut read, mut write) = stream.split();
        let (written, read) = tokio::join!(write.write_all(&sent), read.read_exact(&mut received));
        written.unwrap();
        read.unwrap();
        assert!(received == sent);
        assert!(begun.elapsed() < Duration::from_secs(10), "64 chunks one by one take longer: {:?}", begun.elapsed());
    }
}
