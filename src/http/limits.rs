//! Limits on connections: their number, and the time that each may keep the server waiting.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum number of connections, regardless of the limit on open files.
const CONNECTIONS_MAX: usize = 16_384;

/// Limits on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum number of open connections per client address; trusted proxies are exempt.
    pub per_address: usize,
    /// Maximum time from the opening of a connection, or the first byte of a later request, to the end of the request's
    /// header.
    pub header: Duration,
    /// Maximum time between a response and the first byte of the next request.
    pub idle: Duration,
    /// Maximum time for a whole request body.
    pub body: Duration,
    /// Maximum time that a client reads nothing of a ready response.
    pub stalled: Duration,
}

impl Limits {
    /// The limits for this many connections. One address can have half of them.
    pub fn with_connections(connections: usize) -> Limits {
        let connections = connections.max(1);
        Limits {
            connections,
            per_address: connections.div_ceil(2),
            header: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            body: Duration::from_secs(30),
            stalled: Duration::from_secs(30),
        }
    }
}

impl Default for Limits {
    /// Connections can use three quarters of the limit on open files.
    fn default() -> Limits {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Limits::with_connections(connections_for(files))
    }
}

/// The number of connections for a limit on open files.
fn connections_for(files: u64) -> usize {
    let share = usize::try_from(files - files / 4).unwrap_or(usize::MAX);
    share.min(CONNECTIONS_MAX)
}

/// Raises the limit on open files to the maximum of the system.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "failed to raise the limit on open files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_three_quarters_of_the_files_up_to_16384() {
        for (files, connections) in [
            (3, 3),
            (4, 3),
            (5, 4),
            (1_024, 768),
            (21_844, 16_383),
            (21_845, 16_384),
            (21_846, 16_384),
            (u64::MAX, 16_384),
        ] {
            assert_eq!(connections_for(files), connections, "{files} files");
        }
    }

    #[test]
    fn one_address_can_have_half_of_the_connections() {
        for (connections, per_address) in [(7, 4), (8, 4), (9, 5)] {
            let limits = Limits::with_connections(connections);
            assert_eq!(limits.connections, connections);
            assert_eq!(limits.per_address, per_address, "of {connections}");
        }
        let least = Limits::with_connections(0);
        assert_eq!((least.connections, least.per_address), (1, 1));
    }
}
