//! The steps that wait for the writer, and the choice of those that share the next group.
//!
//! Steps wait in three lanes, which begin groups in turn: small steps, large ones, and those that need a transaction of
//! their own. So a small step waits for at most one group of each other lane, however many large steps wait. Each
//! lane begins with its oldest step, so none starves.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::BatchRunner;
use crate::store::StoreError;

/// Maximum number of steps that wait or run; beyond that, callers wait.
pub const QUEUED_MAX: usize = 4_096;

/// Maximum number of steps in a group.
pub const STEPS_MAX: usize = 512;

/// Maximum weight of a group, unless a single step weighs more.
pub const WEIGHT_MAX: usize = 2_048;

/// Maximum weight of a small step.
pub const SMALL_WEIGHT_MAX: usize = 512;

/// Where callers queue their steps.
pub struct Sender<S> {
    steps: mpsc::UnboundedSender<S>,
    room: Arc<Semaphore>,
}

/// Where the writer takes them.
pub struct Queue<R: BatchRunner> {
    steps: mpsc::UnboundedReceiver<R::Step>,
    /// A permit for each further step.
    room: Arc<Semaphore>,
    small: VecDeque<R::Step>,
    large: VecDeque<R::Step>,
    alone: VecDeque<R::Step>,
    /// The lane that begins the next group, if it has steps.
    turn: Lane,
}

/// Steps that wait in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    Small,
    Large,
    /// Steps that need a transaction of their own.
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
pub fn queue<R: BatchRunner>() -> (Sender<R::Step>, Queue<R>) {
    let (sender, steps) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(QUEUED_MAX));
    let queue = Queue {
        steps,
        room: Arc::clone(&room),
        small: VecDeque::new(),
        large: VecDeque::new(),
        alone: VecDeque::new(),
        turn: Lane::Small,
    };
    let steps = sender;
    (Sender { steps, room }, queue)
}

impl<S> Sender<S> {
    /// Queues a step, as soon as there is room.
    ///
    /// # Errors
    /// [`StoreError::Stopped`].
    pub async fn send(&self, step: S) -> Result<(), StoreError> {
        let room = self.room.acquire().await;
        room.map_err(|_| StoreError::Stopped)?.forget();
        self.steps.send(step).map_err(|_| StoreError::Stopped)
    }

    /// The number of steps that wait or run.
    pub fn count(&self) -> usize {
        QUEUED_MAX - self.room.available_permits()
    }

    /// Whether no more steps are accepted.
    pub fn is_closed(&self) -> bool {
        self.steps.is_closed()
    }
}

impl<R: BatchRunner> Queue<R> {
    /// Rejects further steps. Those that are queued stay.
    pub fn close(&mut self) {
        self.room.close();
        self.steps.close();
    }

    /// The steps of the next group. Together they weigh at most [`WEIGHT_MAX`], unless the first one weighs more.
    /// Waits for a step. `None` if the queue is closed and empty; an empty group if `stop` is canceled, or if the
    /// callers of all steps are gone.
    pub async fn next_group(&mut self, stop: &CancellationToken) -> Option<Vec<R::Step>> {
        // Read once: with a stop between two reads, the queue would stay open and the `select!` would wait forever.
        let stopping = stop.is_cancelled();
        if stopping {
            self.close();
        }
        self.receive();
        if self.small.is_empty() && self.large.is_empty() && self.alone.is_empty() {
            let next = tokio::select! {
                biased;
                step = self.steps.recv() => step,
                () = stop.cancelled(), if !stopping => return Some(Vec::new()),
            };
            self.add(next?);
            self.receive();
        }
        Some(self.gather())
    }

    /// Moves the received steps to their lanes.
    fn receive(&mut self) {
        while let Ok(step) = self.steps.try_recv() {
            self.add(step);
        }
    }

    fn add(&mut self, step: R::Step) {
        let lane = if R::needs_own_transaction(&step) {
            Lane::Alone
        } else if is_small::<R>(&step) {
            Lane::Small
        } else {
            Lane::Large
        };
        self.lane(lane).push_back(step);
    }

    fn lane(&mut self, lane: Lane) -> &mut VecDeque<R::Step> {
        match lane {
            Lane::Small => &mut self.small,
            Lane::Large => &mut self.large,
            Lane::Alone => &mut self.alone,
        }
    }

    /// Takes the oldest step of the lane whose turn it is, then further steps that fit: from the same lane first, then,
    /// between small and large, from the other. A step of the third lane runs alone.
    fn gather(&mut self) -> Vec<R::Step> {
        self.drop_abandoned();
        let lanes = [self.turn, self.turn.next(), self.turn.next().next()];
        let first = |lane: Lane| Some((lane, self.lane(lane).pop_front()?));
        let Some((lane, first)) = lanes.into_iter().find_map(first) else {
            return Vec::new();
        };
        self.turn = lane.next();
        let mut weight = R::weight(&first);
        let mut steps = vec![first];
        match lane {
            Lane::Small => {
                add_fitting::<R>(&mut self.small, &mut steps, &mut weight);
                add_fitting::<R>(&mut self.large, &mut steps, &mut weight);
            }
            Lane::Large => {
                add_fitting::<R>(&mut self.large, &mut steps, &mut weight);
                add_fitting::<R>(&mut self.small, &mut steps, &mut weight);
            }
            Lane::Alone => {}
        }
        steps
    }

    /// Drops the large steps whose callers are gone. They have not run, and would delay the others.
    fn drop_abandoned(&mut self) {
        let before = self.large.len();
        if before > 0 {
            self.large.retain(|step| !R::is_abandoned(step));
            self.release(before - self.large.len());
        }
    }

    /// Returns the large steps of a group that has not run to the front of their lane.
    pub fn put_back(&mut self, steps: Vec<R::Step>) {
        for step in steps.into_iter().rev() {
            self.large.push_front(step);
        }
    }

    /// Makes room for further steps after `count` have ended.
    pub fn release(&self, count: usize) {
        self.room.add_permits(count);
    }
}

impl<R: BatchRunner> Drop for Queue<R> {
    fn drop(&mut self) {
        self.room.close();
    }
}

/// Whether the step waits among the small ones.
pub fn is_small<R: BatchRunner>(step: &R::Step) -> bool {
    R::weight(step) <= SMALL_WEIGHT_MAX
}

/// Moves those steps of the lane to the group that fit, in order.
fn add_fitting<R: BatchRunner>(
    lane: &mut VecDeque<R::Step>,
    steps: &mut Vec<R::Step>,
    weight: &mut usize,
) {
    let mut passed = Vec::new();
    while steps.len() < STEPS_MAX && *weight < WEIGHT_MAX {
        let Some(step) = lane.pop_front() else { break };
        let more = R::weight(&step);
        if weight.saturating_add(more) > WEIGHT_MAX {
            passed.push(step);
        } else {
            *weight += more;
            steps.push(step);
        }
    }
    for step in passed.into_iter().rev() {
        lane.push_front(step);
    }
}

/// Splits steps of one group into smaller groups.
pub fn split<R: BatchRunner>(steps: Vec<R::Step>) -> Vec<Vec<R::Step>> {
    let mut lane = VecDeque::from(steps);
    let mut groups = Vec::new();
    while let Some(first) = lane.pop_front() {
        let mut weight = R::weight(&first);
        let mut group = vec![first];
        add_fitting::<R>(&mut lane, &mut group, &mut weight);
        groups.push(group);
    }
    groups
}
