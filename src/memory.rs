//! Limits the memory that the bodies and responses of all requests occupy together.
//!
//! A request reserves memory in its own task: before it keeps more than 64 KiB of a body, when what it has parsed
//! occupies more than 64 KiB ([`parse`]), before it loads a large response, and after it has loaded a single large job or
//! claimed large jobs. Other requests reserve nothing, so they are never refused.
//!
//! A read or write of the database continues to its end if the client disconnects meanwhile. What its request has
//! reserved and [holds](holding) is released only then.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task_local;
use tokio::time::{Instant, timeout};

/// Bytes of all requests together.
pub const MEMORY_MAX: usize = 256 << 20;

/// Bodies, parsed requests and responses up to this size, in bytes, reserve nothing.
pub const SMALL_MAX: usize = 64 << 10;

/// Bytes of complete responses, of parsed requests and of loaded jobs that wait for memory.
const WAITING_MAX: usize = 64 << 20;

/// Bytes that [`Reserved::grow_to`] reserves at once.
const GROWTH_MIN: usize = 256 << 10;

/// Bytes of the queues that the pages of users and of guests list. Not a part of [`MEMORY_MAX`], so that large requests
/// of others do not keep users from the dashboard.
const PAGES_MAX: usize = 192 << 20;
const PAGES_OF_GUESTS_MAX: usize = 96 << 20;

/// How long a request waits for memory, in total.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// How long a request waits until memory counts as scarce.
const SCARCE_AFTER: Duration = Duration::from_millis(500);

/// The requests that have waited for memory for [`SCARCE_AFTER`] and still wait.
static WAITING_LONG: AtomicUsize = AtomicUsize::new(0);

static MEMORY: Semaphore = Semaphore::const_new(MEMORY_MAX);
static PAGES: Semaphore = Semaphore::const_new(PAGES_MAX);
static PAGES_OF_GUESTS: Semaphore = Semaphore::const_new(PAGES_OF_GUESTS_MAX);
static WAITING: Semaphore = Semaphore::const_new(WAITING_MAX);

/// Large requests that are parsed at the same time.
const PARSED_AT_ONCE: usize = 2;
static PARSING: Semaphore = Semaphore::const_new(PARSED_AT_ONCE);

task_local! {
    /// The memory of the request of this task.
    static REQUEST: Arc<Mutex<RequestMemory>>;
}

struct RequestMemory {
    reserved: Reserved,
    /// Of [`PAGES`] or [`PAGES_OF_GUESTS`].
    page: Option<SemaphorePermit<'static>>,
    /// Bytes that are occupied but not yet reserved.
    counted: usize,
    /// How long the request may still wait for more.
    wait_left: Duration,
}

/// Runs `work` on the memory of the request of this task; `None` in a task that serves no request.
fn of_this_request<T>(work: impl FnOnce(&mut RequestMemory) -> T) -> Option<T> {
    let done = REQUEST.try_with(|request| {
        let mut request = request.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut request)
    });
    done.ok()
}

task_local! {
    /// The permit of the innermost [`holding`] of this task.
    static HELD: Arc<HeldPermit>;
}

struct HeldPermit {
    _permit: Box<dyn Send + Sync>,
    _outer: Option<Arc<HeldPermit>>,
}

/// Runs `work` with a permit. It is released when `work` has ended, or was dropped, and its reads and writes have ended.
pub async fn holding<F: Future>(permit: impl Send + Sync + 'static, work: F) -> F::Output {
    let held = HeldPermit {
        _permit: Box::new(permit),
        _outer: HELD.try_with(Arc::clone).ok(),
    };
    HELD.scope(Arc::new(held), work).await
}

/// What a read or write keeps until it has ended.
pub struct HeldUntilDone {
    _memory: Option<Arc<Mutex<RequestMemory>>>,
    _permit: Option<Arc<HeldPermit>>,
}

/// What this task has reserved and [holds](holding), for a read or write that continues if the task is dropped, or ends.
pub fn hold_until_done() -> HeldUntilDone {
    HeldUntilDone {
        _memory: REQUEST.try_with(Arc::clone).ok(),
        _permit: HELD.try_with(Arc::clone).ok(),
    }
}

/// No memory was free within the time that a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// Reserved memory, which is released when this is dropped.
#[derive(Debug, Default)]
pub struct Reserved(Option<SemaphorePermit<'static>>);

impl Reserved {
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, SemaphorePermit::num_permits)
    }

    fn add(&mut self, more: SemaphorePermit<'static>) {
        match &mut self.0 {
            Some(permit) => permit.merge(more),
            None => self.0 = Some(more),
        }
    }

    /// Reserves memory for data that grows and exists already: more, if less than `bytes` are reserved. Waits up to 2 s,
    /// but not if too much such data waits.
    ///
    /// # Errors
    /// [`Busy`].
    pub async fn grow_to(&mut self, bytes: usize) -> Result<(), Busy> {
        let missing = bytes.saturating_sub(self.bytes());
        if missing > 0 {
            self.add(acquire_occupied(missing.max(GROWTH_MIN), None).await?);
        }
        Ok(())
    }

    /// Takes `bytes` of it, or all if it is less.
    fn split(&mut self, bytes: usize) -> Reserved {
        let bytes = bytes.min(self.bytes());
        Reserved(self.0.as_mut().and_then(|permit| permit.split(bytes)))
    }

    /// Bytes that keep their share of the memory reserved until they are dropped.
    pub fn attach(&mut self, bytes: Bytes) -> Bytes {
        if self.0.is_none() {
            return bytes;
        }
        let reserved = self.split(bytes.len());
        Bytes::from_owner(ReservedBytes {
            bytes,
            _reserved: reserved,
        })
    }

    /// The memory of a complete response: releases what exceeds its size, and reserves what is missing.
    ///
    /// # Errors
    /// [`Busy`].
    pub async fn for_response(mut self, bytes: u64) -> Result<Reserved, Busy> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let bytes = if bytes > SMALL_MAX { bytes } else { 0 };
        let missing = bytes.saturating_sub(self.bytes());
        if missing == 0 {
            return Ok(self.split(bytes));
        }
        self.add(acquire_occupied(missing, None).await?);
        Ok(self)
    }
}

/// A part of a response, with its memory.
struct ReservedBytes {
    bytes: Bytes,
    _reserved: Reserved,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.min(MEMORY_MAX)).unwrap_or(u32::MAX)
}

async fn acquire(bytes: usize) -> Result<SemaphorePermit<'static>, Busy> {
    if let Ok(free) = MEMORY.try_acquire_many(permits(bytes)) {
        return Ok(free);
    }
    let mut waiting = pin!(wait_for(&MEMORY, permits(bytes)));
    match timeout(SCARCE_AFTER, waiting.as_mut()).await {
        Ok(acquired) => acquired,
        Err(_) => {
            let _waits = WaitsLong::new();
            waiting.await
        }
    }
}

/// Whether requests wait for memory, so that clients must read their responses faster.
pub fn is_scarce() -> bool {
    WAITING_LONG.load(Ordering::Relaxed) > 0
}

/// A request in [`WAITING_LONG`].
struct WaitsLong;

impl WaitsLong {
    fn new() -> WaitsLong {
        WAITING_LONG.fetch_add(1, Ordering::Relaxed);
        WaitsLong
    }
}

impl Drop for WaitsLong {
    fn drop(&mut self) {
        WAITING_LONG.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for permits, but in total no longer than a request may wait.
async fn wait_for(
    semaphore: &'static Semaphore,
    count: u32,
) -> Result<SemaphorePermit<'static>, Busy> {
    if let Ok(free) = semaphore.try_acquire_many(count) {
        return Ok(free);
    }
    let left = of_this_request(|request| request.wait_left).unwrap_or(WAIT_MAX);
    let began = Instant::now();
    let acquired = timeout(left, semaphore.acquire_many(count)).await;
    let left = left.saturating_sub(began.elapsed());
    of_this_request(|request| request.wait_left = left);
    acquired.map_err(|_| Busy)?.map_err(|_| Busy)
}

/// Reserves memory for data that exists already, and so occupies memory while it waits. `place` is the permit with
/// which the data was parsed, if it needed one; it is released before the wait.
async fn acquire_occupied(
    bytes: usize,
    place: Option<SemaphorePermit<'static>>,
) -> Result<SemaphorePermit<'static>, Busy> {
    if let Ok(free) = MEMORY.try_acquire_many(permits(bytes)) {
        return Ok(free);
    }
    let waiting = WAITING.try_acquire_many(permits(bytes));
    let _waiting = waiting.map_err(|_| Busy)?;
    drop(place);
    acquire(bytes).await
}

/// Bytes that are reserved, at most [`MEMORY_MAX`].
pub fn reserved() -> usize {
    MEMORY_MAX.saturating_sub(MEMORY.available_permits())
}

/// Runs a request. Returns its result with the memory that it has reserved.
pub async fn of_request<F: Future>(request: F) -> (F::Output, Reserved) {
    let request = async {
        let output = request.await;
        (output, take())
    };
    let memory = RequestMemory {
        reserved: Reserved::default(),
        page: None,
        counted: 0,
        wait_left: WAIT_MAX,
    };
    REQUEST.scope(Arc::new(Mutex::new(memory)), request).await
}

/// Takes what the request of this task has reserved; nothing if reads or writes of the request have not ended, which
/// keep it.
fn take() -> Reserved {
    let take = |request: &Arc<Mutex<RequestMemory>>| {
        if Arc::strong_count(request) > 1 {
            return Reserved::default();
        }
        let mut request = request.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut request.reserved)
    };
    REQUEST.try_with(take).unwrap_or_default()
}

/// Reserves `bytes` more for the request of this task, until its response has been sent. A request waits up to 2 s in
/// total. Does nothing in a task that serves no request.
///
/// # Errors
/// [`Busy`].
pub async fn reserve(bytes: usize) -> Result<(), Busy> {
    match REQUEST.try_with(|_| ()) {
        Ok(()) => keep(acquire(bytes).await?),
        Err(_) => Ok(()),
    }
}

/// Like [`reserve`], for data that has been loaded already. Fails at once if it would wait, and too much such data waits.
///
/// # Errors
/// [`Busy`].
pub async fn reserve_loaded(bytes: usize) -> Result<(), Busy> {
    match REQUEST.try_with(|_| ()) {
        Ok(()) => keep(acquire_occupied(bytes, None).await?),
        Err(_) => Ok(()),
    }
}

/// Like [`reserve_loaded`], if `bytes` is more than [`SMALL_MAX`].
///
/// # Errors
/// [`Busy`].
pub async fn reserve_large(bytes: usize) -> Result<(), Busy> {
    if bytes <= SMALL_MAX {
        return Ok(());
    }
    Box::pin(reserve_loaded(bytes)).await
}

/// Reserves memory for the queues that a page lists, until the page is complete. Does nothing in a task that serves no
/// request.
///
/// # Errors
/// [`Busy`].
pub async fn reserve_page(bytes: usize, is_for_guests: bool) -> Result<(), Busy> {
    if of_this_request(|_| ()).is_none() {
        return Ok(());
    }
    let (pages, max) = match is_for_guests {
        true => (&PAGES_OF_GUESTS, PAGES_OF_GUESTS_MAX),
        false => (&PAGES, PAGES_MAX),
    };
    let reserved = wait_for(pages, permits(bytes.min(max))).await?;
    of_this_request(|request| request.page = Some(reserved)).ok_or(Busy)
}

/// Keeps the permits until the response of the request of this task has been sent.
fn keep(more: SemaphorePermit<'static>) -> Result<(), Busy> {
    of_this_request(|request| request.reserved.add(more)).ok_or(Busy)
}

/// Keeps this memory until the response of the request of this task has been sent. Releases it in a task that serves no
/// request.
pub fn keep_reserved(reserved: Reserved) {
    if let Some(permit) = reserved.0 {
        keep(permit).ok();
    }
}

/// Counts bytes that the request of this task occupies in its parsed form. [`parse`] reserves them.
pub fn count(bytes: usize) {
    of_this_request(|request| request.counted = request.counted.saturating_add(bytes));
}

/// Runs `work`, which parses `bytes` bytes of the request of this task, and reserves what it has counted with [`count`],
/// if that is more than [`SMALL_MAX`], until the response has been sent. Few large requests are parsed at the same time,
/// because what they occupy is known only afterwards.
///
/// # Errors
/// [`Busy`].
pub async fn parse<T>(bytes: usize, work: impl FnOnce() -> T) -> Result<T, Busy> {
    let place = match bytes > SMALL_MAX {
        true => Some(wait_for(&PARSING, 1).await?),
        false => None,
    };
    let parsed = work();
    let counted = of_this_request(|request| std::mem::take(&mut request.counted));
    let counted = counted.unwrap_or_default();
    if counted > SMALL_MAX {
        keep(acquire_occupied(counted, place).await?)?;
    }
    Ok(parsed)
}

/// An extension of a response whose body belongs to the server, such as a static file. Its bytes occupy memory once, so
/// nothing is reserved for the response.
#[derive(Clone, Copy)]
pub struct SharedBody;

/// Whether [`fit_response`] has nothing to do for a response of this size: it is small, and nothing is reserved.
pub fn fits_response(bytes: u64) -> bool {
    let is_free = of_this_request(|request| request.reserved.0.is_none());
    bytes <= SMALL_MAX as u64 && is_free.unwrap_or(true)
}

/// Adjusts what the request of this task has reserved to the size of its complete response: releases what exceeds it,
/// and reserves what is missing. Does nothing in a task that serves no request.
///
/// # Errors
/// [`Busy`].
pub async fn fit_response(bytes: u64) -> Result<(), Busy> {
    if of_this_request(|_| ()).is_none() {
        return Ok(());
    }
    let reserved = take().for_response(bytes).await?;
    let kept = of_this_request(|request| {
        if let Some(permit) = reserved.0 {
            request.reserved.add(permit);
        }
        request.page = None;
    });
    kept.ok_or(Busy)
}

/// Reserves `bytes` for data that a request drops before it ends. Dropping the result releases them. Waits up to 2 s.
///
/// # Errors
/// [`Busy`].
pub async fn reserve_until_dropped(bytes: usize) -> Result<Reserved, Busy> {
    Ok(Reserved(Some(acquire(bytes).await?)))
}

/// Like [`reserve_until_dropped`], for data that exists already. Fails at once if it would wait, and too much such data
/// waits.
///
/// # Errors
/// [`Busy`].
pub async fn reserve_parsed(bytes: usize) -> Result<Reserved, Busy> {
    Ok(Reserved(Some(acquire_occupied(bytes, None).await?)))
}

/// Like [`reserve_until_dropped`], for data of this size and a copy of it, if the data has more than [`SMALL_MAX`].
///
/// # Errors
/// [`Busy`].
pub async fn reserve_with_copy(bytes: usize) -> Result<Reserved, Busy> {
    match bytes > SMALL_MAX {
        true => reserve_until_dropped(2 * bytes).await,
        false => Ok(Reserved::default()),
    }
}

/// Releases what the request of this task has reserved, so that requests that wait can continue.
pub fn release() {
    drop(take());
}

#[cfg(test)]
mod tests;
