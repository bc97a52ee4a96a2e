//! The clients that are connected over the Redis protocol: `CLIENT LIST` and the dashboard show them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum length of the name of a client, in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// Maximum length of the name and of the version of a client's library, in bytes.
pub const LIBRARY_BYTES_MAX: usize = 64;

/// Maximum length of the name of a command that is shown, in bytes.
const COMMAND_BYTES_MAX: usize = 32;

/// A connected client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    pub number: u64,
    pub address: SocketAddr,
    pub state: ClientState,
    /// The time since the client connected.
    pub age: Duration,
    /// The time since its last command.
    pub idle: Duration,
}

/// What a client has sent about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientState {
    /// The name that the client has given itself; empty if it has not.
    pub name: String,
    /// The client's library and its version; empty if it has not sent them.
    pub library: String,
    pub library_version: String,
    /// The last command, in lower case; for `EVALSHA` and `EVAL`, the command of qless-core that the script runs. Empty
    /// before the first.
    pub command: String,
    /// The number of channels and patterns to which the client is subscribed.
    pub subscriptions: usize,
}

/// The connected clients, by number.
#[derive(Debug, Default)]
pub struct Clients {
    listens: AtomicBool,
    last: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Entry>>>,
}

#[derive(Debug)]
struct Entry {
    address: SocketAddr,
    connected: Instant,
    /// The state, and the time of the last command.
    state: Mutex<(ClientState, Instant)>,
}

impl Clients {
    /// Notes that the server has a listener for the Redis protocol.
    pub fn listen(&self) {
        self.listens.store(true, Ordering::Relaxed);
    }

    /// Whether the server has a listener for the Redis protocol.
    pub fn listens(&self) -> bool {
        self.listens.load(Ordering::Relaxed)
    }

    pub fn add(self: &Arc<Self>, address: SocketAddr) -> Client {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let now = Instant::now();
        let entry = Arc::new(Entry {
            address,
            connected: now,
            state: Mutex::new((ClientState::default(), now)),
        });
        self.lock().insert(number, Arc::clone(&entry));
        let of = Arc::clone(self);
        Client { number, entry, of }
    }

    /// Up to `count` clients after the first `offset`, in the order in which they connected.
    pub fn list(&self, offset: usize, count: usize) -> Vec<ClientInfo> {
        let all = self.lock();
        let page = all.iter().skip(offset).take(count);
        page.map(|(number, entry)| entry.info(*number)).collect()
    }

    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Entry>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn lock(&self) -> MutexGuard<'_, (ClientState, Instant)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn info(&self, number: u64) -> ClientInfo {
        let (state, active) = self.lock().clone();
        ClientInfo {
            number,
            address: self.address,
            state,
            age: self.connected.elapsed(),
            idle: active.elapsed(),
        }
    }
}

/// A client while it is connected.
#[derive(Debug)]
pub struct Client {
    pub number: u64,
    entry: Arc<Entry>,
    of: Arc<Clients>,
}

impl Client {
    pub fn info(&self) -> ClientInfo {
        self.entry.info(self.number)
    }

    pub fn set_name(&self, name: &str) {
        name.clone_into(&mut self.entry.lock().0.name);
    }

    pub fn set_library(&self, library: &str) {
        library.clone_into(&mut self.entry.lock().0.library);
    }

    pub fn set_library_version(&self, version: &str) {
        version.clone_into(&mut self.entry.lock().0.library_version);
    }

    pub fn set_subscriptions(&self, count: usize) {
        self.entry.lock().0.subscriptions = count;
    }

    /// Notes the command that runs now. A name that no command can have is noted as `unknown`.
    pub fn runs(&self, command: &str) {
        let is_name = (1..=COMMAND_BYTES_MAX).contains(&command.len())
            && command
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        let name = if is_name { command } else { "unknown" };
        let mut state = self.entry.lock();
        state.0.command.clear();
        state.0.command.push_str(name);
        state.0.command.make_ascii_lowercase();
        state.1 = Instant::now();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.of.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_listed_while_it_is_connected() {
        let clients = Arc::new(Clients::default());
        let added: Vec<Client> = (1..=3)
            .map(|port| clients.add(SocketAddr::from(([127, 0, 0, 1], port))))
            .collect();
        for (client, name) in added.iter().zip(["a", "b", "c"]) {
            client.set_name(name);
        }
        let names = |offset, count| {
            let listed = clients.list(offset, count).into_iter();
            listed.map(|client| client.state.name).collect::<Vec<_>>()
        };
        assert_eq!(names(0, 10), ["a", "b", "c"]);
        assert_eq!(names(1, 1), ["b"]);
        drop(added);
        assert_eq!(clients.count(), 0);
    }

    #[test]
    fn text_that_is_no_name_of_a_command_is_not_shown() {
        let client = Arc::new(Clients::default()).add(SocketAddr::from(([127, 0, 0, 1], 1)));
        for (command, shown) in [
            ("EVALSHA", "evalsha"),
            ("worker.deregister", "worker.deregister"),
            ("", "unknown"),
            ("a\nb", "unknown"),
            (&"x".repeat(COMMAND_BYTES_MAX + 1), "unknown"),
        ] {
            client.runs(command);
            assert_eq!(client.info().state.command, shown);
        }
    }
}
