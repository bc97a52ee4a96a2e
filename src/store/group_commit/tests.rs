//! Limits on the steps of a group, the attempts to run it, and the queued steps.

use std::sync::atomic::AtomicU32;

use tokio::sync::Semaphore;
use tokio::task::unconstrained;

use super::*;
use crate::store::{Settings, Store};

/// A group in which a step is its number of items.
#[derive(Default)]
struct CountingRunner {
    /// How many of the next runs conflict with another server.
    conflicts: u32,
    runs: Arc<AtomicU32>,
    /// The most steps with more than one item that fit one transaction.
    large_max: Option<usize>,
    /// The groups that were answered, all with success.
    answered: Arc<Mutex<Vec<Vec<usize>>>>,
    /// If set, each run takes one permit.
    gate: Option<Arc<Semaphore>>,
}

impl BatchRunner for CountingRunner {
    type Step = usize;

    fn item_count(step: &usize) -> usize {
        *step
    }

    fn needs_own_transaction(_: &usize) -> bool {
        false
    }

    fn adds_jobs(_: &usize) -> bool {
        false
    }

    async fn run(&mut self, _: &mut Connection, steps: &mut [usize]) -> Result<(), StoreError> {
        if steps.iter().filter(|step| **step != 1).count() > self.large_max.unwrap_or(usize::MAX) {
            for step in steps {
                *step = if *step < 256 { 256 } else { usize::MAX };
            }
            return Err(StoreError::TransactionTooLarge);
        }
        self.runs.fetch_add(1, Ordering::SeqCst);
        if let Some(gate) = &self.gate {
            gate.acquire().await.expect("it is open").forget();
        }
        if self.conflicts > 0 {
            self.conflicts -= 1;
            return Err(StoreError::Conflict);
        }
        Ok(())
    }

    fn respond(&mut self, steps: Vec<usize>, outcome: Result<(), StoreError>) {
        if outcome.is_ok() {
            self.answered.lock().expect("no panic").push(steps);
        }
    }
}

async fn store() -> Store {
    let opened = Store::open("sqlite::memory:", Settings::default()).await;
    opened.expect("a database")
}

/// The steps that share the group of the first one, and those that are held over.
fn gathered(first: usize, rest: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let (sender, mut queue) = mpsc::channel(QUEUED_MAX);
    for step in rest {
        sender.try_send(*step).expect("the queue has room");
    }
    let mut held_over = VecDeque::new();
    let steps = gather::<CountingRunner>(first, &mut queue, &mut held_over);
    (steps, held_over.into())
}

#[test]
fn a_group_has_512_steps() {
    for (rest, expected) in [(510, 511), (511, 512), (512, 512)] {
        let (steps, held_over) = gathered(1, &vec![1; rest]);
        assert_eq!((steps.len(), held_over), (expected, vec![]), "1 + {rest}");
    }
}

#[test]
fn a_group_has_2048_items_unless_one_step_has_more() {
    for (first, rest, shared, held_over) in [
        (1, &[2_046, 1][..], 3, &[][..]),
        (1, &[2_047, 1], 2, &[]),
        (1, &[2_048, 1], 2, &[2_048]),
        (2_047, &[1, 1], 2, &[]),
        (2_047, &[2, 1], 2, &[2]),
        (2_048, &[1], 1, &[]),
        (2_049, &[1], 1, &[]),
        (10_000, &[1], 1, &[]),
        (1_000, &[2_000, 1, 3_000, 1], 3, &[2_000, 3_000]),
    ] {
        let (steps, left) = gathered(first, rest);
        let context = format!("{first} and {rest:?}");
        assert_eq!(
            (steps.len(), left.as_slice()),
            (shared, held_over),
            "{context}"
        );
    }
}

#[test]
fn steps_that_are_held_over_come_first_and_no_more_than_1024_wait() {
    let (sender, mut queue) = mpsc::channel(QUEUED_MAX);
    (0..2_000).for_each(|_| sender.try_send(2_000).expect("the queue has room"));
    let mut held_over = VecDeque::from([2_000, 500, 2_000]);
    let steps = gather::<CountingRunner>(1_000, &mut queue, &mut held_over);
    assert_eq!((steps, held_over.len()), (vec![1_000, 500], 1_024));
}

#[tokio::test]
async fn a_group_runs_20_times_before_it_is_given_up() {
    let mut connection = store().await.connection;
    // The pauses between the runs take no time.
    tokio::time::pause();
    for (conflicts, runs, succeeds) in [(18, 19, true), (19, 20, true), (20, 20, false)] {
        let mut runner = CountingRunner {
            conflicts,
            ..CountingRunner::default()
        };
        let (stop, mut outage) = (CancellationToken::new(), None);
        let outcome = attempt(&mut connection, &mut runner, &mut [1], &mut outage, &stop).await;
        assert_eq!(outcome.is_ok(), succeeds, "{conflicts} conflicts");
        assert_eq!(runner.runs.load(Ordering::SeqCst), runs);
    }
}

#[tokio::test]
async fn a_step_waits_for_its_place_behind_4096_others() {
    let gate = Arc::new(Semaphore::new(0));
    let runner = CountingRunner {
        gate: Some(Arc::clone(&gate)),
        ..CountingRunner::default()
    };
    let runs = Arc::clone(&runner.runs);
    let writer = Writer::start(store().await.connection, runner);
    writer.submit(1).await.expect("the writer runs");
    while runs.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // `unconstrained`, because Tokio's cooperative budget would end the loop early.
    let submit = || unconstrained(writer.submit(1)).now_or_never();
    for n in 1..=4_096 {
        assert!(matches!(submit(), Some(Ok(()))), "{n} steps are queued");
    }
    assert!(submit().is_none());
    gate.add_permits(Semaphore::MAX_PERMITS);
    writer.submit(1).await.expect("there is room again");
    writer.close().await;
}

#[tokio::test]
async fn steps_that_are_too_large_together_run_later_with_fewer_others() {
    for (large_max, expected) in [
        (8, vec![vec![256; 8], vec![256; 3]]),
        (1, vec![vec![usize::MAX]; 11]),
    ] {
        let gate = Arc::new(Semaphore::new(0));
        let group = CountingRunner {
            gate: Some(Arc::clone(&gate)),
            large_max: Some(large_max),
            ..CountingRunner::default()
        };
        let (answered, runs) = (Arc::clone(&group.answered), Arc::clone(&group.runs));
        let writer = Writer::start(store().await.connection, group);
        // The others queue up behind the first one.
        writer.submit(1).await.expect("the writer runs");
        while runs.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..10 {
            writer.submit(2).await.expect("the writer runs");
        }
        writer.submit(1).await.expect("the writer runs");
        gate.add_permits(Semaphore::MAX_PERMITS);
        writer.close().await;
        let answered = answered.lock().expect("no panic");
        let mut steps = answered.iter().cloned();
        assert_eq!(steps.next(), Some(vec![1]));
        assert_eq!(steps.collect::<Vec<_>>(), expected, "{large_max} at once");
    }
}
