//! Servers and clients for tests.

pub mod api_client;
mod caller;
pub mod database;
#[cfg(target_os = "linux")]
pub mod disk;
mod eventually;
#[expect(dead_code, reason = "the simulation of the engine uses the rest")]
pub mod history;
pub mod isolation;
pub mod jobq;
pub mod keys;
pub mod link;
pub mod lmstfy;
pub mod load;
pub mod log;
#[cfg(target_os = "linux")]
pub mod machine_clock;
pub mod metrics;
pub mod pair;
pub mod patroni;
pub mod ports;
pub mod postgres;
pub mod programs;
pub mod random;
pub mod raw;
pub mod redis;
pub mod relay;
mod response;
mod server;
pub mod settings;
mod stream;
mod template;
pub mod tls;

pub use caller::{Caller, STATES, ids, one_in_each_state};
pub use eventually::eventually;
pub use response::{Response, meta_text};
pub use server::{Server, signal};
pub use stream::Stream;

use tokio::task::JoinSet;

/// Makes `count` concurrent calls, by these clients in turn, and returns the results.
pub async fn at_once<C: Clone, T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    clients: &[C],
    count: usize,
    call: impl Fn(C, usize) -> F,
) -> Vec<T> {
    let mut calls = JoinSet::new();
    for number in 0..count {
        calls.spawn(call(clients[number % clients.len()].clone(), number));
    }
    calls.join_all().await
}

/// Percent-encodes everything but ASCII letters and digits.
pub fn escape(name: &str) -> String {
    name.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Names that break careless code for paths, queries, pages or SQL.
pub const HOSTILE_NAMES: &[&str] = &[
    "a/b",
    "../x",
    "..",
    ".",
    "日本",
    "<img src=x onerror=alert(1)>",
    "%",
    "%2F",
    "a b",
    "a+b",
    "?q=1&r=2#s",
    "\"quoted\"",
    "'; DROP TABLE jobs; --",
    "back\\slash",
    "🦀",
    "{queue}",
    "null",
    "complete",
];

/// The lower quartile. Unlike the sum, a few samples during which this process did not run do not change it.
pub fn lower_quartile(mut samples: Vec<usize>) -> usize {
    samples.sort_unstable();
    samples[samples.len() / 4]
}
