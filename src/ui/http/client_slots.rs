//! Slots of which each client has a few, so that no client waits for the requests of another.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of all clients, by what identifies a client.
#[derive(Clone, Debug)]
pub struct ClientSlots<K: Clone + Eq + Hash> {
    clients: Arc<Mutex<HashMap<K, Requests>>>,
    slots: usize,
    requests_max: usize,
}

/// The requests of one client.
#[derive(Debug)]
struct Requests {
    slots: Arc<Semaphore>,
    count: usize,
}

impl<K: Clone + Eq + Hash> ClientSlots<K> {
    /// Each client has `slots` slots, and up to `requests_max` requests that have or await one.
    pub fn new(slots: usize, requests_max: usize) -> Self {
        ClientSlots {
            clients: Arc::default(),
            slots,
            requests_max,
        }
    }

    /// Counts a request of the client. `None` if it has too many.
    pub fn begin(&self, client: K) -> Option<CountedRequest<K>> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = clients.entry(client.clone()).or_insert_with(|| Requests {
            slots: Arc::new(Semaphore::new(self.slots)),
            count: 0,
        });
        if requests.count >= self.requests_max {
            return None;
        }
        requests.count += 1;
        Some(CountedRequest {
            own: Arc::clone(&requests.slots),
            slots: self.clone(),
            client,
        })
    }
}

/// Counts a request until it is dropped.
#[derive(Debug)]
pub struct CountedRequest<K: Clone + Eq + Hash> {
    pub client: K,
    own: Arc<Semaphore>,
    slots: ClientSlots<K>,
}

impl<K: Clone + Eq + Hash> CountedRequest<K> {
    /// Waits for a slot of the client. `None` never occurs, because the slots stay open.
    pub async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.own).acquire_owned().await.ok()
    }
}

impl<K: Clone + Eq + Hash> Drop for CountedRequest<K> {
    fn drop(&mut self) {
        let clients = self.slots.clients.lock();
        let mut clients = clients.unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = clients.get_mut(&self.client) {
            requests.count -= 1;
            if requests.count == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_has_its_own_slots_and_requests() {
        let slots = ClientSlots::new(1, 3);
        let begun: Vec<_> = (0..4).map_while(|_| slots.begin("ada")).collect();
        assert_eq!(begun.len(), 3);
        let held = begun[0].slot().await.unwrap();
        assert!(futures::poll!(std::pin::pin!(begun[1].slot())).is_pending());
        let other = slots.begin("olga").unwrap();
        assert!(futures::poll!(std::pin::pin!(other.slot())).is_ready());
        drop(held);
        assert!(futures::poll!(std::pin::pin!(begun[1].slot())).is_ready());
        drop(other);
        drop(begun);
        assert!(slots.clients.lock().unwrap().is_empty());
        assert!(slots.begin("ada").is_some());
    }
}
