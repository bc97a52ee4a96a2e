//! Limits on connections: their number, and the time that each may keep the server waiting.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum number of connections, regardless of the limit on open files.
const CONNECTIONS_MAX: usize = 16_384;

/// Maximum size of the headers of all requests together, in bytes, not counting the first 8 KiB of each.
const ALL_HEADERS_BYTES_MAX: usize = 64 << 20;

/// Maximum size of the buffers of all connections together, in bytes, not counting the first 8 KiB of each.
const ALL_BUFFERS_BYTES_MAX: usize = 64 << 20;

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
    /// Maximum size of the headers of all requests, until their responses end, not counting the first 8 KiB of each.
    pub header_bytes: usize,
    /// Maximum size of the buffers that all connections keep between requests, not counting the first 8 KiB of each.
    pub buffer_bytes: usize,
    /// Maximum time between a response and the first byte of the next request.
    pub idle: Duration,
    /// Maximum time for a whole request body.
    pub body: Duration,
    /// Maximum time that a client reads neither more than 64 KiB of a ready response nor all of it.
    pub stalled: Duration,
    /// Redis protocol: maximum time from `MULTI` to `EXEC`, and maximum duration of an `EXEC`.
    pub transaction: Duration,
}

impl Limits {
    /// The limits for this many connections. One address can have half of them.
    pub fn with_connections(connections: usize) -> Limits {
        let connections = connections.max(1);
        Limits {
            connections,
            per_address: connections.div_ceil(2),
            header: Duration::from_secs(30),
            header_bytes: ALL_HEADERS_BYTES_MAX,
            buffer_bytes: ALL_BUFFERS_BYTES_MAX,
            idle: Duration::from_secs(60),
            body: Duration::from_secs(30),
            stalled: Duration::from_secs(30),
            transaction: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// These limits for each of two listeners, which share the system's limit on open files.
    pub fn of_two(self) -> Limits {
        self.of_two_with(open_files())
    }

    fn of_two_with(self, files: u64) -> Limits {
        let connections = self.connections.min(share(files) / 2).max(1);
        Limits {
            connections,
            per_address: self.per_address.min(connections.div_ceil(2)),
            ..self
        }
    }
}

impl Default for Limits {
    /// Connections can use three quarters of the limit on open files.
    fn default() -> Limits {
        Limits::with_connections(connections_for(open_files()))
    }
}

/// The system's limit on open files.
fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The open files that connections can use.
fn share(files: u64) -> usize {
    usize::try_from(files - files / 4).unwrap_or(usize::MAX)
}

/// The number of connections for a limit on open files.
fn connections_for(files: u64) -> usize {
    share(files).min(CONNECTIONS_MAX)
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
    fn two_listeners_share_the_open_files() {
        for (limit, files, each) in [
            (768, 1_024, 384),
            (8, 1_024, 8),
            (384, 1_024, 384),
            (385, 1_024, 384),
            (16_384, u64::MAX, 16_384),
            (1, 1, 1),
        ] {
            let limits = Limits::with_connections(limit).of_two_with(files);
            assert_eq!(limits.connections, each, "{limit} of {files} files");
            assert!(limits.per_address <= each.div_ceil(2));
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
