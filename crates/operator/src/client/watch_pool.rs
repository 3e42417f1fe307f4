//! HTTP/2 clients for watches, each for so many watches that no API server makes one wait for a free stream.

use std::sync::Arc;

use kube::Client;
use parking_lot::Mutex;

use super::Stack;

/// An API server allows 100 streams per connection, and the 101st request waits silently and for ever. Lists and
/// resumed watches need streams too, hence the margin.
pub const WATCHES_PER_CONNECTION: usize = 80;

#[derive(Clone)]
pub struct WatchPool(Arc<Inner>);

struct Inner {
    stack: Stack,
    slots: Mutex<Vec<Slot>>,
}

struct Slot {
    client: Client,
    used: usize,
}

impl WatchPool {
    pub(super) fn new(stack: Stack) -> Self {
        Self(Arc::new(Inner { stack, slots: Mutex::default() }))
    }

    /// A client for one watch; its place is free again when the lease is dropped.
    pub fn lease(&self) -> anyhow::Result<WatchLease> {
        let mut slots = self.0.slots.lock();
        let free = slots.iter().position(|slot| slot.used < WATCHES_PER_CONNECTION);
        let place = match free {
            Some(place) => place,
            None => {
                slots.push(Slot { client: self.0.stack.http2()?, used: 0 });
                slots.len() - 1
            }
        };
        let slot = &mut slots[place];
        slot.used += 1;
        Ok(WatchLease { client: slot.client.clone(), place, pool: self.clone() })
    }
}

pub struct WatchLease {
    pub client: Client,
    place: usize,
    pool: WatchPool,
}

impl Drop for WatchLease {
    fn drop(&mut self) {
        let mut slots = self.pool.0.slots.lock();
        if let Some(slot) = slots.get_mut(self.place) {
            slot.used -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Connections;
    use crate::metrics::Metrics;

    #[tokio::test]
    async fn no_client_gets_more_than_its_share_and_places_are_reused() {
        let pool = WatchPool::new(Stack {
            config: kube::Config::new("https://127.0.0.1:1".parse().unwrap()),
            connections: Connections::default(),
            role: "remote",
            metrics: Metrics::default(),
        });
        let used = |pool: &WatchPool| pool.0.slots.lock().iter().map(|slot| slot.used).collect::<Vec<_>>();
        let mut leases: Vec<_> = (0..300).map(|_| pool.lease().unwrap()).collect();
        assert_eq!(used(&pool), [80, 80, 80, 60]);
        leases.drain(0..10);
        assert_eq!(used(&pool), [70, 80, 80, 60]);
        leases.extend((0..10).map(|_| pool.lease().unwrap()));
        assert_eq!(used(&pool), [80, 80, 80, 60]);
        drop(leases);
        assert_eq!(used(&pool), [0, 0, 0, 0]);
    }
}
