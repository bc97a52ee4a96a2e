//! The requests queued for the writer, and the choice of those that share the next group.
//!
//! There are three lanes, which begin groups in turn: small requests, large ones, and those that need a transaction of
//! their own. So a small request waits for at most one group of each other lane, however many large requests are
//! queued. Each lane begins with its oldest request, and a request that is put back weighs more each time until it runs
//! alone, so none starves.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::GroupRunner;
use crate::store::StoreError;

/// Maximum number of requests that wait or run; beyond that, callers wait.
pub const QUEUED_MAX: usize = 4_096;

/// Maximum number of queued requests that are large or need a transaction of their own, so that there is room for small
/// ones. Running requests do not count.
pub const HEAVY_QUEUED_MAX: usize = 1_024;

/// Maximum number of requests in a group.
pub const REQUESTS_MAX: usize = 512;

/// Maximum weight of a group, unless a single request weighs more.
pub const WEIGHT_MAX: usize = 2_048;

/// Maximum weight of a small request.
const SMALL_WEIGHT_MAX: usize = 512;

/// Where callers queue their requests.
pub struct Sender<S> {
    requests: mpsc::UnboundedSender<S>,
    room: Arc<Semaphore>,
    heavy_room: Arc<Semaphore>,
    is_heavy: fn(&S) -> bool,
}

/// Where the writer takes the requests from.
pub struct Queue<R: GroupRunner> {
    requests: mpsc::UnboundedReceiver<R::Request>,
    /// A permit for each further request.
    room: Arc<Semaphore>,
    /// A permit for each further request that is large or needs a transaction of its own.
    heavy_room: Arc<Semaphore>,
    /// The number of queued requests that hold a permit of `heavy_room`.
    heavy: usize,
    small: VecDeque<R::Request>,
    large: VecDeque<R::Request>,
    alone: VecDeque<R::Request>,
    /// The lane that begins the next group, if it has requests.
    turn: Lane,
}

/// Requests that wait in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    Small,
    Large,
    /// Requests that need a transaction of their own.
    Alone,
}

impl Lane {
    fn next(self) -> Lane {
        match self {
            Lane::Small => Lane::Large,
            Lane::Large => Lane::Alone,
            Lane::Alone => Lane::Small,
        }
    }
}

/// An empty queue.
pub fn queue<R: GroupRunner>() -> (Sender<R::Request>, Queue<R>) {
    let (sender, requests) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(QUEUED_MAX));
    let heavy_room = Arc::new(Semaphore::new(HEAVY_QUEUED_MAX));
    let queue = Queue {
        requests,
        room: Arc::clone(&room),
        heavy_room: Arc::clone(&heavy_room),
        heavy: 0,
        small: VecDeque::new(),
        large: VecDeque::new(),
        alone: VecDeque::new(),
        turn: Lane::Small,
    };
    let sender = Sender {
        requests: sender,
        room,
        heavy_room,
        is_heavy: |request| lane_of::<R>(request) != Lane::Small,
    };
    (sender, queue)
}

impl<S> Sender<S> {
    /// Queues a request, as soon as there is room.
    ///
    /// # Errors
    /// [`StoreError::Stopped`].
    pub async fn send(&self, request: S) -> Result<(), StoreError> {
        let stopped = |_| StoreError::Stopped;
        let heavy = match (self.is_heavy)(&request) {
            true => Some(self.heavy_room.acquire().await.map_err(stopped)?),
            false => None,
        };
        self.room.acquire().await.map_err(stopped)?.forget();
        if let Some(heavy) = heavy {
            heavy.forget();
        }
        self.requests.send(request).map_err(|_| StoreError::Stopped)
    }

    /// Queues a request if there is room.
    ///
    /// # Errors
    /// The request, if there is no room, or if no more requests are accepted.
    pub fn try_send(&self, request: S) -> Result<(), S> {
        let heavy = match (self.is_heavy)(&request) {
            true => match self.heavy_room.try_acquire() {
                Ok(heavy) => Some(heavy),
                Err(_) => return Err(request),
            },
            false => None,
        };
        let Ok(room) = self.room.try_acquire() else {
            return Err(request);
        };
        room.forget();
        if let Some(heavy) = heavy {
            heavy.forget();
        }
        self.requests.send(request).map_err(|refused| refused.0)
    }

    /// The number of requests that wait or run.
    pub fn count(&self) -> usize {
        QUEUED_MAX - self.room.available_permits()
    }

    /// Whether no more requests are accepted.
    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }
}

impl<R: GroupRunner> Queue<R> {
    /// Rejects further requests. Queued requests stay.
    pub fn close(&mut self) {
        self.heavy_room.close();
        self.room.close();
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
        self.receive();
        if self.small.is_empty() && self.large.is_empty() && self.alone.is_empty() {
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

    /// Moves the received requests to their lanes.
    fn receive(&mut self) {
        while let Ok(request) = self.requests.try_recv() {
            self.add(request);
        }
    }

    fn add(&mut self, request: R::Request) {
        let lane = lane_of::<R>(&request);
        self.heavy += usize::from(lane != Lane::Small);
        self.lane(lane).push_back(request);
    }

    fn lane(&mut self, lane: Lane) -> &mut VecDeque<R::Request> {
        match lane {
            Lane::Small => &mut self.small,
            Lane::Large => &mut self.large,
            Lane::Alone => &mut self.alone,
        }
    }

    /// The requests of the next group. Makes room for further large ones.
    fn gather(&mut self) -> Vec<R::Request> {
        let requests = self.take_group();
        // Requests that were put back can be without a permit. They get those of the requests that were taken.
        let queued = self.large.len() + self.alone.len();
        let released = self.heavy.saturating_sub(queued);
        self.heavy -= released;
        self.heavy_room.add_permits(released);
        requests
    }

    /// Takes the oldest request of the lane whose turn it is, then further requests that fit: from the same lane first,
    /// then, between small and large, from the other. A request of the third lane runs alone.
    fn take_group(&mut self) -> Vec<R::Request> {
        self.drop_abandoned();
        let lanes = [self.turn, self.turn.next(), self.turn.next().next()];
        let first = |lane: Lane| Some((lane, self.lane(lane).pop_front()?));
        let Some((lane, first)) = lanes.into_iter().find_map(first) else {
            return Vec::new();
        };
        self.turn = lane.next();
        let mut weight = R::weight(&first);
        let mut requests = vec![first];
        match lane {
            Lane::Small => {
                add_fitting::<R>(&mut self.small, &mut requests, &mut weight);
                add_fitting::<R>(&mut self.large, &mut requests, &mut weight);
            }
            Lane::Large => {
                add_fitting::<R>(&mut self.large, &mut requests, &mut weight);
                add_fitting::<R>(&mut self.small, &mut requests, &mut weight);
            }
            Lane::Alone => {}
        }
        requests
    }

    /// Drops the large requests whose callers are gone. They have not run, and would delay the others.
    fn drop_abandoned(&mut self) {
        let before = self.large.len();
        if before > 0 {
            self.large.retain(|request| !R::is_abandoned(request));
            self.release(before - self.large.len());
        }
    }

    /// Adds requests that were too large together to the end of the large ones. At the front, a steady load of such
    /// requests would keep older ones from running.
    pub fn put_back(&mut self, requests: Vec<R::Request>) {
        self.heavy += self.heavy_room.forget_permits(requests.len());
        self.large.extend(requests);
    }

    /// Makes room for further requests after `count` have ended.
    pub fn release(&self, count: usize) {
        self.room.add_permits(count);
    }
}

impl<R: GroupRunner> Drop for Queue<R> {
    fn drop(&mut self) {
        self.heavy_room.close();
        self.room.close();
    }
}

/// The lane in which the request waits.
fn lane_of<R: GroupRunner>(request: &R::Request) -> Lane {
    if R::needs_own_transaction(request) {
        Lane::Alone
    } else if is_small::<R>(request) {
        Lane::Small
    } else {
        Lane::Large
    }
}

/// Whether the request waits among the small ones.
pub fn is_small<R: GroupRunner>(request: &R::Request) -> bool {
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

/// The small requests that fit one group together, and the others.
pub fn separate_fitting<R: GroupRunner>(
    requests: Vec<R::Request>,
) -> (Vec<R::Request>, VecDeque<R::Request>) {
    let (mut fitting, mut others) = (Vec::new(), VecDeque::from(requests));
    add_fitting::<R>(&mut others, &mut fitting, &mut 0);
    (fitting, others)
}
