//! The open connections: limits on their number and their time, and the choice of connections to close for a new one.
//!
//! A connection records its phase and the sizes of what it holds in atomic values. One task checks all connections twice
//! a second and closes every one that exceeds a limit, so headers, idle connections and slow readers need no timers.

mod buffers;
mod encrypted;
mod held;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::limits::Limits;
use crate::engine::keep_running;
use crate::memory;
use crate::metrics::{Gauge, GaugeGuard};
use crate::request::network;
use encrypted::EncryptedBytes;
use held::HeldMemory;
use watch::{Ticks, watch};

/// At the limit, 1 in this many waiting connections is closed at once, so that a flood of new connections does not
/// cause a scan of all connections for each.
const EVICTED_SHARE: usize = 16;

/// Bytes of a response that a client must read in [`Limits::stalled`], unless it reads the whole response.
const PROGRESS_MIN: usize = 64 << 10;

/// Ticks after which a connection whose client does not read counts as waiting for it. Clients that read fast are
/// waited for too, but only for moments.
const STALLED_MIN: u32 = 4;

/// Bytes of a header that do not count toward [`Limits::header_bytes`], and of a buffer that do not count toward
/// [`Limits::buffer_bytes`].
const SMALL: usize = 8 << 10;

/// What a connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The rest of a request's header.
    Header = 0,
    /// The next request.
    Idle = 1,
    /// The rest of a request's body.
    Body = 2,
    /// The server.
    Busy = 3,
}

/// The state of one connection.
#[derive(Debug)]
pub struct Connection {
    /// The [`Phase`] in the lowest two bits, above it the tick in which it began.
    phase: AtomicU64,
    /// The tick after the one in which the client stopped reading the response; 0 if it reads.
    stalled: AtomicU32,
    /// Whether a request waits until all bytes were sent.
    awaits_flush: AtomicBool,
    /// Bytes sent since the client stopped reading.
    sent: AtomicUsize,
    /// Bytes of the current request's header that have arrived. They count until the request ends.
    header: AtomicUsize,
    /// The memory of responses that the client has not read.
    held: HeldMemory,
    /// The size of the buffer for what the client sends. It never shrinks.
    buffer: AtomicUsize,
    /// Bytes that have arrived after a header and have not become a part of a body.
    unframed: AtomicUsize,
    encrypted: EncryptedBytes,
    totals: Arc<ListenerTotals>,
    task: OnceLock<AbortHandle>,
}

/// What all connections of a listener share.
#[derive(Debug, Default)]
struct ListenerTotals {
    /// Counts the checks. It stops while there are no connections.
    clock: AtomicU32,
    /// Bytes of the headers of all requests, complete or not, beyond [`SMALL`] each.
    headers: AtomicUsize,
    /// See [`Limits::header_bytes`].
    headers_max: usize,
    /// Bytes of the buffers of all connections, beyond [`SMALL`] each.
    buffers: AtomicUsize,
    /// See [`Limits::buffer_bytes`].
    buffers_max: usize,
    /// Bytes of all connections that are not decrypted yet, beyond [`SMALL`] each.
    encrypted: AtomicUsize,
}

impl Connection {
    fn new(totals: Arc<ListenerTotals>) -> Connection {
        let now = totals.clock.load(Ordering::Relaxed);
        Connection {
            phase: AtomicU64::new(packed(Phase::Header, now)),
            stalled: AtomicU32::new(0),
            awaits_flush: AtomicBool::new(false),
            sent: AtomicUsize::new(0),
            header: AtomicUsize::new(0),
            held: HeldMemory::default(),
            buffer: AtomicUsize::new(0),
            unframed: AtomicUsize::new(0),
            encrypted: EncryptedBytes::default(),
            totals,
            task: OnceLock::new(),
        }
    }

    fn now(&self) -> u32 {
        self.totals.clock.load(Ordering::Relaxed)
    }

    fn enter(&self, phase: Phase) {
        self.phase
            .store(packed(phase, self.now()), Ordering::Relaxed);
    }

    fn phase(&self) -> (u64, u32) {
        let packed = self.phase.load(Ordering::Relaxed);
        (packed & 3, u32::try_from(packed >> 2).unwrap_or(u32::MAX))
    }

    /// Changes the phase if it is `from`.
    fn enter_from(&self, from: Phase, to: Phase) {
        if self.phase().0 == from as u64 {
            self.enter(to);
        }
    }

    /// Called when the client has sent bytes. Returns whether there is room for them, if they belong to a header.
    #[must_use]
    pub fn received(&self, bytes: usize) -> bool {
        self.begin_header();
        if self.phase().0 != Phase::Header as u64 {
            return true;
        }
        let before = self.header.fetch_add(bytes, Ordering::Relaxed);
        let added = large(before + bytes) - large(before);
        if added == 0 {
            return true;
        }
        let headers = self.totals.headers.fetch_add(added, Ordering::Relaxed);
        headers + added <= self.totals.headers_max
    }

    /// Bytes that have arrived with the header of the current request, among them possibly a part of its body.
    pub fn header_bytes(&self) -> usize {
        self.header.load(Ordering::Relaxed)
    }

    /// Called when encrypted bytes have arrived. Returns whether there is room for them until they are decrypted.
    #[must_use]
    pub fn received_encrypted(&self, bytes: usize) -> bool {
        let (total, now) = (&self.totals.encrypted, self.now());
        self.encrypted.received(bytes, total, now)
    }

    /// Called when the handshake is complete, and when bytes were decrypted.
    pub fn decrypted(&self) {
        self.encrypted.decrypted(&self.totals.encrypted);
    }

    /// Called when the header of a request begins.
    pub fn begin_header(&self) {
        self.enter_from(Phase::Idle, Phase::Header);
    }

    /// Called when the header of a request is complete. It occupies its memory until [`Connection::end_request`].
    /// Returns whether the request had arrived before the response to the previous request ended.
    pub fn begin_request(&self) -> bool {
        self.unframed.store(0, Ordering::Relaxed);
        let is_pipelined = self.phase().0 == Phase::Idle as u64;
        self.enter(Phase::Busy);
        is_pipelined
    }

    fn end_header(&self) {
        let counted = large(self.header.swap(0, Ordering::Relaxed));
        if counted > 0 {
            self.totals.headers.fetch_sub(counted, Ordering::Relaxed);
        }
    }

    /// Called when the server waits for the rest of a body.
    pub fn await_body(&self) {
        self.enter(Phase::Body);
    }

    /// Called when the server needs no more of a body.
    pub fn end_body(&self) {
        self.enter_from(Phase::Body, Phase::Busy);
    }

    /// Called when the response is complete.
    pub fn end_request(&self) {
        self.held.end_response();
        self.enter(Phase::Idle);
        self.end_header();
    }

    /// Called when bytes were sent. The client can still be reading a long response after its body is complete, so
    /// this restarts the idle time.
    pub fn sent(&self, bytes: usize) {
        self.enter_from(Phase::Idle, Phase::Idle);
        self.held.sent(bytes);
        if self.is_stalled() {
            let sent = self.sent.fetch_add(bytes, Ordering::Relaxed) + bytes;
            if sent > PROGRESS_MIN {
                self.stalled.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Called when all bytes were sent. Returns whether a request waits for that.
    pub fn flushed(&self) -> bool {
        if self.is_stalled() {
            self.stalled.store(0, Ordering::Relaxed);
        }
        self.held.flushed();
        self.awaits_flush.load(Ordering::Relaxed)
            && self.awaits_flush.swap(false, Ordering::Relaxed)
    }

    /// Whether a request can be processed. Otherwise it waits until all bytes were sent ([`Connection::flushed`]).
    pub fn is_flushed(&self) -> bool {
        let is_stalled = self.is_stalled();
        if is_stalled {
            self.awaits_flush.store(true, Ordering::Relaxed);
        }
        !is_stalled
    }

    fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed) != 0
    }

    /// Called when the client does not read.
    pub fn stall(&self) {
        if !self.is_stalled() {
            let now = self.now().saturating_add(1);
            self.sent.store(0, Ordering::Relaxed);
            self.stalled.store(now, Ordering::Relaxed);
        }
    }

    /// Called when a response begins that keeps this much memory reserved until the client has read it.
    pub fn begin_response(&self, bytes: usize) {
        self.held.begin_response(bytes, self.now());
    }

    /// Called before replies are sent that keep this much memory reserved.
    pub fn hold(&self, bytes: usize) {
        self.held.hold(bytes, self.now());
    }

    /// The tick since which the client reads a response with reserved memory, if it reads slowly.
    fn held_slowly_since(&self) -> Option<u32> {
        self.held.slow_since(self.now())
    }

    /// Sets the task that serves the connection; closing the connection aborts it.
    pub fn set_task(&self, task: AbortHandle) {
        drop(self.task.set(task));
    }

    fn close(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    /// The tick since which the server has been waiting for the client to send something; `None` if it is not waiting.
    fn waiting_since(&self) -> Option<u32> {
        let (phase, since) = self.phase();
        (!self.is_stalled() && phase != Phase::Busy as u64).then_some(since)
    }

    /// The tick since which the client does not read; `None` if it reads.
    fn stalled_since(&self) -> Option<u32> {
        let since = self.stalled.load(Ordering::Relaxed).checked_sub(1)?;
        (self.now().saturating_sub(since) >= STALLED_MIN).then_some(since)
    }

    fn is_over(&self, ticks: Ticks) -> bool {
        let now = self.now();
        if self.encrypted.is_overdue(&self.totals.encrypted, now) {
            return true;
        }
        let stalled = self.stalled.load(Ordering::Relaxed);
        if stalled != 0 && (now + 1).saturating_sub(stalled) >= ticks.stalled {
            return true;
        }
        let (phase, since) = self.phase();
        let waited = now.saturating_sub(since);
        let is_idle = phase == Phase::Idle as u64 && waited >= STALLED_MIN;
        if self.must_end() && (is_idle || self.stalled_since().is_some()) {
            return true;
        }
        (phase == Phase::Header as u64 && waited >= ticks.header)
            || (phase == Phase::Idle as u64 && waited >= ticks.idle)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end_header();
        self.decrypted();
        let buffer = large(*self.buffer.get_mut());
        self.totals.buffers.fetch_sub(buffer, Ordering::Relaxed);
    }
}

/// The bytes of a header or a buffer that count.
fn large(bytes: usize) -> usize {
    bytes.saturating_sub(SMALL)
}

fn packed(phase: Phase, tick: u32) -> u64 {
    u64::from(tick) << 2 | phase as u64
}

/// The open connections of a listener.
pub struct Connections {
    limits: Limits,
    totals: Arc<ListenerTotals>,
    open: Mutex<Open>,
    /// Wakes [`watch`] when the first connection is opened.
    opened: Arc<Notify>,
    gauge: Gauge,
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.opened.notify_one();
    }
}

#[derive(Default)]
struct Open {
    next: u64,
    all: HashMap<u64, (Option<IpAddr>, Arc<Connection>)>,
    /// The number of connections per address.
    of_address: HashMap<IpAddr, usize>,
}

impl Open {
    fn remove(&mut self, number: u64) -> Option<Arc<Connection>> {
        let (from, connection) = self.all.remove(&number)?;
        if let Some(from) = from
            && let Some(count) = self.of_address.get_mut(&from)
        {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&from);
            }
        }
        Some(connection)
    }

    /// Closes the connections, of one address or of all, on which the server has been waiting longest for the client to
    /// send something; if there are none, those whose client has not read for longest. Returns whether there was one.
    fn evict(&mut self, from: Option<IpAddr>) -> bool {
        self.evict_by(from, Connection::waiting_since)
            || self.evict_by(from, Connection::stalled_since)
    }

    fn evict_by(&mut self, from: Option<IpAddr>, since: fn(&Connection) -> Option<u32>) -> bool {
        let mut waiting: Vec<(u32, u64)> = self
            .all
            .iter()
            .filter(|(_, (its, _))| from.is_none() || *its == from)
            .filter_map(|(number, (_, connection))| Some((since(connection)?, *number)))
            .collect();
        let Some(last) = waiting.len().checked_sub(1) else {
            return false;
        };
        let count = last / EVICTED_SHARE + 1;
        waiting.select_nth_unstable(count - 1);
        for (_, number) in waiting.into_iter().take(count) {
            if let Some(connection) = self.remove(number) {
                connection.close();
            }
        }
        true
    }
}

impl Connections {
    /// Starts without connections. The time limits are enforced while this exists. `gauge` counts the open ones.
    pub fn new(limits: Limits, gauge: Gauge) -> Arc<Connections> {
        let connections = Arc::new(Connections {
            limits,
            totals: Arc::new(ListenerTotals {
                headers_max: limits.header_bytes,
                buffers_max: limits.buffer_bytes,
                ..ListenerTotals::default()
            }),
            open: Mutex::default(),
            opened: Arc::default(),
            gauge,
        });
        let (watched, ticks) = (Arc::downgrade(&connections), Ticks::of(&limits));
        let watch = move || watch(Weak::clone(&watched), ticks);
        tokio::spawn(keep_running("limits of connections", watch));
        connections
    }

    /// Adds a connection; at the limit, closes connections that wait for their client. At the limit of its address,
    /// closes some of that address. `None` if all are busy. Trusted proxies, which have many clients, pass no address.
    pub fn admit(self: &Arc<Self>, from: Option<IpAddr>) -> Option<ConnectionGuard> {
        let from = from.map(network);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(from) = from {
            let has = open.of_address.get(&from).copied().unwrap_or_default();
            if has >= self.limits.per_address && !open.evict(Some(from)) {
                return None;
            }
        }
        if open.all.len() >= self.limits.connections && !open.evict(None) {
            return None;
        }
        if let Some(from) = from {
            *open.of_address.entry(from).or_default() += 1;
        }
        let number = open.next;
        open.next += 1;
        let connection = Arc::new(Connection::new(Arc::clone(&self.totals)));
        open.all.insert(number, (from, Arc::clone(&connection)));
        self.opened.notify_one();
        Some(ConnectionGuard {
            number,
            connection,
            of: Arc::clone(self),
            _counted: self.gauge.guard(),
        })
    }

    /// The number of open connections.
    fn count(&self) -> usize {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all.len()
    }

    fn close_overdue(&self, ticks: Ticks) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if memory::is_scarce() {
            open.evict_by(None, Connection::held_slowly_since);
        }
        let overdue = open.all.values().filter(|(_, it)| it.is_over(ticks));
        overdue.for_each(|(_, connection)| connection.close());
    }
}

/// An entry in [`Connections`]. Dropping it removes the entry.
pub struct ConnectionGuard {
    number: u64,
    pub connection: Arc<Connection>,
    of: Arc<Connections>,
    _counted: GaugeGuard,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut open = self.of.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(self.number);
    }
}
