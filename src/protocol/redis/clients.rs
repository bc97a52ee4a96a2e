//! The connected clients: their numbers, addresses and names.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum length of a client's name, in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// A connected client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    pub address: SocketAddr,
    /// The name that the client has given itself; empty if it has not.
    pub name: String,
}

/// The connected clients, by number.
#[derive(Debug, Default)]
pub struct Clients {
    last: AtomicU64,
    all: Mutex<BTreeMap<u64, ClientInfo>>,
}

impl Clients {
    pub fn add(self: &Arc<Self>, address: SocketAddr) -> Client {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let name = String::new();
        self.lock().insert(number, ClientInfo { address, name });
        let of = Arc::clone(self);
        Client { number, of }
    }

    /// The clients, in the order in which they connected.
    pub fn all(&self) -> Vec<(u64, ClientInfo)> {
        let all = self.lock();
        all.iter()
            .map(|(number, it)| (*number, it.clone()))
            .collect()
    }

    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, ClientInfo>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client while it is connected.
#[derive(Debug)]
pub struct Client {
    pub number: u64,
    of: Arc<Clients>,
}

impl Client {
    pub fn set_name(&self, name: &str) {
        if let Some(info) = self.of.lock().get_mut(&self.number) {
            info.name = name.to_owned();
        }
    }

    pub fn info(&self) -> Option<ClientInfo> {
        self.of.lock().get(&self.number).cloned()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.of.lock().remove(&self.number);
    }
}
