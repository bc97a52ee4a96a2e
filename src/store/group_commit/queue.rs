//! The requests queued for the writer, and the choice of those that share the next group.
//!
//! There are five lanes: small requests, large requests, requests that were put back because their group was too large,
//! and requests that need a transaction of their own, one lane for clients and one for the server and for actions of
//! its users. The lanes take turns, so between two groups of one lane, at most one group of each other lane runs,
//! however many requests are queued there. A request that is put back weighs more each time, until it runs alone.

use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{GroupRunner, Sharing};
use crate::store::StoreError;

/// Maximum number of requests that wait or run; beyond that, callers wait.
pub const QUEUED_MAX: usize = 4_096;

/// Maximum number of queued large requests, so that there is room for small ones. Running requests do not count.
pub const LARGE_QUEUED_MAX: usize = 1_024;

/// Maximum number of queued requests of clients, and of the server, that need a transaction of their own. Running
/// requests do not count.
pub const EXCLUSIVE_QUEUED_MAX: usize = 512;

/// Maximum number of queued requests that were put back.
pub const PUT_BACK_MAX: usize = 1_024;

/// Maximum number of requests in a group.
pub const REQUESTS_MAX: usize = 512;

/// Maximum weight of a group, unless a single request weighs more.
pub const WEIGHT_MAX: usize = 2_048;

/// Maximum weight of a small request.
const SMALL_WEIGHT_MAX: usize = 512;

/// Where callers queue their requests.
pub struct Sender<S> {
    requests: mpsc::UnboundedSender<S>,
    permits: QueuePermits,
    lane_of: fn(&S) -> Lane,
}

/// Permits for requests to be queued.
#[derive(Clone)]
struct QueuePermits {
    /// Each request that waits or runs holds one of these.
    total: Arc<Semaphore>,
    /// Additional permits for large requests.
    large: Arc<Semaphore>,
    /// Additional permits for client requests that need a transaction of their own.
    exclusive: Arc<Semaphore>,
    /// Additional permits for requests of the server or of dashboard users that need a transaction of their own.
    system: Arc<Semaphore>,
}

impl QueuePermits {
    /// The additional permits that requests of this lane need.
    fn of(&self, lane: Lane) -> Option<&Semaphore> {
        match lane {
            Lane::Large => Some(&self.large),
            Lane::Exclusive => Some(&self.exclusive),
            Lane::System => Some(&self.system),
            Lane::Small | Lane::PutBack => None,
        }
    }

    fn close(&self) {
        self.large.close();
        self.exclusive.close();
        self.system.close();
        self.total.close();
    }
}

/// Where the writer takes the requests from.
pub struct Queue<R: GroupRunner> {
    requests: mpsc::UnboundedReceiver<R::Request>,
    permits: QueuePermits,
    small: VecDeque<R::Request>,
    large: VecDeque<R::Request>,
    put_back: VecDeque<R::Request>,
    exclusive: VecDeque<R::Request>,
    system: VecDeque<R::Request>,
    /// The lane that begins the next group, if it has requests.
    turn: Lane,
    /// Whether the next group of requests that were put back begins with the one that has loaded the least, not with the oldest.
    least_first: bool,
}

/// Requests that wait in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    Small,
    Large,
    /// Requests that were too large together with others.
    PutBack,
    /// Client requests that need a transaction of their own.
    Exclusive,
    /// Requests of the server or of dashboard users that need a transaction of their own.
    System,
}

impl Lane {
    fn next(self) -> Lane {
        match self {
            Lane::Small => Lane::Large,
            Lane::Large => Lane::PutBack,
            Lane::PutBack => Lane::Exclusive,
            Lane::Exclusive => Lane::System,
            Lane::System => Lane::Small,
        }
    }

    /// All lanes, from this one on.
    fn in_turn(self) -> impl Iterator<Item = Lane> {
        iter::successors(Some(self), |lane| Some(lane.next())).take(5)
    }
}

/// An empty queue.
pub fn queue<R: GroupRunner>() -> (Sender<R::Request>, Queue<R>) {
    let (sender, requests) = mpsc::unbounded_channel();
    let permits = QueuePermits {
        total: Arc::new(Semaphore::new(QUEUED_MAX)),
        large: Arc::new(Semaphore::new(LARGE_QUEUED_MAX)),
        exclusive: Arc::new(Semaphore::new(EXCLUSIVE_QUEUED_MAX)),
        system: Arc::new(Semaphore::new(EXCLUSIVE_QUEUED_MAX)),
    };
    let queue = Queue {
        requests,
        permits: permits.clone(),
        small: VecDeque::new(),
        large: VecDeque::new(),
        put_back: VecDeque::new(),
        exclusive: VecDeque::new(),
        system: VecDeque::new(),
        turn: Lane::Small,
        least_first: false,
    };
    let sender = Sender {
        requests: sender,
        permits,
        lane_of: lane_of::<R>,
    };
    (sender, queue)
}

impl<S> Sender<S> {
    /// Queues a request as soon as it gets its permits.
    ///
    /// # Errors
    /// [`StoreError::Stopped`].
    pub async fn send(&self, request: S) -> Result<(), StoreError> {
        let stopped = |_| StoreError::Stopped;
        let of_lane = match self.permits.of((self.lane_of)(&request)) {
            Some(permits) => Some(permits.acquire().await.map_err(stopped)?),
            None => None,
        };
        self.permits
            .total
            .acquire()
            .await
            .map_err(stopped)?
            .forget();
        if let Some(permit) = of_lane {
            permit.forget();
        }
        self.requests.send(request).map_err(|_| StoreError::Stopped)
    }

    /// Queues a request if its permits are available.
    ///
    /// # Errors
    /// The request, if a permit is not available, or if no more requests are accepted.
    pub fn try_send(&self, request: S) -> Result<(), S> {
        let of_lane = match self.permits.of((self.lane_of)(&request)) {
            Some(permits) => match permits.try_acquire() {
                Ok(permit) => Some(permit),
                Err(_) => return Err(request),
            },
            None => None,
        };
        let Ok(of_total) = self.permits.total.try_acquire() else {
            return Err(request);
        };
        of_total.forget();
        if let Some(permit) = of_lane {
            permit.forget();
        }
        self.requests.send(request).map_err(|refused| refused.0)
    }

    /// The number of requests that wait or run.
    pub fn count(&self) -> usize {
        QUEUED_MAX - self.permits.total.available_permits()
    }

    /// Whether no more requests are accepted.
    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }
}

impl<R: GroupRunner> Queue<R> {
    /// Rejects further requests. Queued requests stay.
    pub fn close(&mut self) {
        self.permits.close();
        self.requests.close();
    }

    /// The requests of the next group. Together they weigh at most [`WEIGHT_MAX`], unless the first one weighs more.
    /// Waits for a request. `None` if the queue is closed and empty; an empty group if `stop` is canceled while it
    /// waits, or if the callers of all requests are gone.
    pub async fn next_group(&mut self, stop: &CancellationToken) -> Option<Vec<R::Request>> {
        // Read once: with a stop between two reads, the queue would stay open and the `select!` would wait forever.
        let stopping = stop.is_cancelled();
        if stopping {
            self.close();
        }
        if !self.has_requests() {
            let next = tokio::select! {
                biased;
                request = self.requests.recv() => request,
                () = stop.cancelled(), if !stopping => return Some(Vec::new()),
            };
            self.add(next?);
            self.receive();
        }
        Some(self.gather())
    }

    /// Whether there are requests for the next group, unless their callers are gone.
    fn has_requests(&mut self) -> bool {
        self.receive();
        let mut lanes = self.turn.in_turn();
        !lanes.all(|lane| self.lane(lane).is_empty())
    }

    /// Moves the received requests to their lanes.
    fn receive(&mut self) {
        while let Ok(request) = self.requests.try_recv() {
            self.add(request);
        }
    }

    fn add(&mut self, request: R::Request) {
        self.lane(lane_of::<R>(&request)).push_back(request);
    }

    fn lane(&mut self, lane: Lane) -> &mut VecDeque<R::Request> {
        match lane {
            Lane::Small => &mut self.small,
            Lane::Large => &mut self.large,
            Lane::PutBack => &mut self.put_back,
            Lane::Exclusive => &mut self.exclusive,
            Lane::System => &mut self.system,
        }
    }

    /// The requests of the next group. Returns the additional permits of their lanes.
    fn gather(&mut self) -> Vec<R::Request> {
        let (large, exclusive) = (self.large.len(), self.exclusive.len());
        let system = self.system.len();
        self.drop_abandoned();
        let requests = self.take_group();
        let permits = &self.permits;
        permits.large.add_permits(large - self.large.len());
        permits
            .exclusive
            .add_permits(exclusive - self.exclusive.len());
        permits.system.add_permits(system - self.system.len());
        requests
    }

    /// Takes the first request of the lane whose turn it is, then further requests that fit: from the same lane first,
    /// then, between small and large, from the other. While requests that were put back wait, others like them may
    /// arrive, so each lane has groups of its own: a group that is too large then delays only requests of its lane.
    fn take_group(&mut self) -> Vec<R::Request> {
        let mut lanes = self.turn.in_turn();
        let first = |lane: Lane| Some((lane, self.take_first(lane)?));
        let Some((lane, first)) = lanes.find_map(first) else {
            return Vec::new();
        };
        self.turn = lane.next();
        let mut weight = R::weight(&first);
        let mut requests = vec![first];
        let other = match lane {
            Lane::Exclusive | Lane::System => return requests,
            Lane::Small => Some(Lane::Large),
            Lane::Large => Some(Lane::Small),
            Lane::PutBack => None,
        };
        add_fitting::<R>(self.lane(lane), &mut requests, &mut weight);
        if let Some(other) = other.filter(|_| self.put_back.is_empty()) {
            add_fitting::<R>(self.lane(other), &mut requests, &mut weight);
        }
        requests
    }

    /// Takes the oldest request of the lane. From the requests that were put back, it takes every other time the one
    /// that has loaded the least, which may have been too large only together with others.
    fn take_first(&mut self, lane: Lane) -> Option<R::Request> {
        if lane != Lane::PutBack {
            return self.lane(lane).pop_front();
        }
        let least = || {
            let all = self.put_back.iter().enumerate();
            all.min_by_key(|(_, request)| R::loaded_weight(request))
        };
        let place = if self.least_first { least()?.0 } else { 0 };
        let first = self.put_back.remove(place)?;
        self.least_first = !self.least_first;
        Some(first)
    }

    /// Drops the large requests, and the requests that were put back, whose callers have disconnected. These requests
    /// have not run, and would delay the others.
    fn drop_abandoned(&mut self) {
        for lane in [Lane::Large, Lane::PutBack] {
            let lane = self.lane(lane);
            let before = lane.len();
            lane.retain(|request| !R::is_abandoned(request));
            let dropped = before - lane.len();
            self.release(dropped);
        }
    }

    /// Adds requests that were too large together to the end of the lane. If the lane is too long then, removes and
    /// returns the requests with the largest load; of equal loads the heaviest, and of equal weights the latest.
    #[must_use]
    pub fn put_back(&mut self, requests: Vec<R::Request>) -> Vec<R::Request> {
        self.put_back.extend(requests);
        let surplus = self.put_back.len().saturating_sub(PUT_BACK_MAX);
        if surplus == 0 {
            return Vec::new();
        }
        let mut all: Vec<_> = self.put_back.drain(..).enumerate().collect();
        all.sort_by_key(|(place, request)| (R::loaded_weight(request), R::weight(request), *place));
        let refused = all.split_off(PUT_BACK_MAX);
        all.sort_by_key(|(place, _)| *place);
        self.put_back
            .extend(all.into_iter().map(|(_, request)| request));
        refused.into_iter().map(|(_, request)| request).collect()
    }

    /// Returns the permits of `count` requests that have ended.
    pub fn release(&self, count: usize) {
        self.permits.total.add_permits(count);
    }
}

impl<R: GroupRunner> Drop for Queue<R> {
    fn drop(&mut self) {
        self.permits.close();
    }
}

/// The lane in which the request waits.
fn lane_of<R: GroupRunner>(request: &R::Request) -> Lane {
    match R::sharing(request) {
        Sharing::Exclusive => Lane::Exclusive,
        Sharing::System => Lane::System,
        Sharing::Shared if is_small::<R>(request) => Lane::Small,
        Sharing::Shared => Lane::Large,
    }
}

/// Whether the request waits among the small ones.
fn is_small<R: GroupRunner>(request: &R::Request) -> bool {
    R::weight(request) <= SMALL_WEIGHT_MAX
}

/// Moves those requests of the lane to the group that fit, in order.
fn add_fitting<R: GroupRunner>(
    lane: &mut VecDeque<R::Request>,
    requests: &mut Vec<R::Request>,
    weight: &mut usize,
) {
    let mut passed = Vec::new();
    while requests.len() < REQUESTS_MAX && *weight < WEIGHT_MAX {
        let Some(request) = lane.pop_front() else {
            break;
        };
        let more = R::weight(&request);
        if weight.saturating_add(more) > WEIGHT_MAX {
            passed.push(request);
        } else {
            *weight += more;
            requests.push(request);
        }
    }
    for request in passed.into_iter().rev() {
        lane.push_front(request);
    }
}

/// The requests that fit one group together, and the others. The requests with the smallest load come first, because
/// the large loads made the group too large.
pub fn separate_fitting<R: GroupRunner>(
    mut requests: Vec<R::Request>,
) -> (Vec<R::Request>, VecDeque<R::Request>) {
    requests.sort_by_key(|request| (R::loaded_weight(request), R::weight(request)));
    let (mut fitting, mut others) = (Vec::new(), VecDeque::from(requests));
    add_fitting::<R>(&mut others, &mut fitting, &mut 0);
    (fitting, others)
}
