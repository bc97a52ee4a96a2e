//! Limits on the requests of a group, the attempts to run it, and the queued requests.

use std::sync::atomic::AtomicU32;

use tokio::sync::Semaphore;
use tokio::task::unconstrained;

use super::queue::{EXCLUSIVE_QUEUED_MAX, LARGE_QUEUED_MAX, PUT_BACK_MAX, QUEUED_MAX};
use super::*;
use crate::store::{Settings, Store};

/// A request that needs its own transaction.
const EXCLUSIVE: usize = 0;

/// A task of the server.
const SYSTEM: usize = 998;

/// A large request whose caller is gone.
const ABANDONED: usize = 999;

static NO_TRACE: Trace = Trace::NONE;

/// A runner whose requests are their weights. The last digit is the load.
#[derive(Default)]
struct CountingRunner {
    /// How many of the next runs conflict with another server.
    conflicts: u32,
    runs: Arc<AtomicU32>,
    /// The runs that lock first.
    locking_runs: u32,
    /// How many requests that weigh more than 1 fit one transaction.
    large_max: Option<usize>,
    /// How many requests were refused because there was no room for them to run again.
    refused: Arc<AtomicU32>,
    /// The groups that were answered, all with success.
    answered: Arc<Mutex<Vec<Vec<usize>>>>,
    /// If set, each run takes one permit.
    gate: Option<Arc<Semaphore>>,
}

impl GroupRunner for CountingRunner {
    type Request = usize;

    fn weight(request: &usize) -> usize {
        *request
    }

    fn loaded_weight(request: &usize) -> usize {
        *request % 10
    }

    fn sharing(request: &usize) -> Sharing {
        match *request {
            EXCLUSIVE => Sharing::Exclusive,
            SYSTEM => Sharing::System,
            _ => Sharing::Shared,
        }
    }

    fn adds_jobs(_: &usize) -> bool {
        false
    }

    fn trace(_: &usize) -> &Trace {
        &NO_TRACE
    }

    fn is_abandoned(request: &usize) -> bool {
        *request == ABANDONED
    }

    async fn run(
        &mut self,
        _: &mut Connection,
        requests: &mut [usize],
        locks_first: bool,
    ) -> Result<(), StoreError> {
        self.locking_runs += u32::from(locks_first);
        if requests.iter().filter(|request| **request != 1).count()
            > self.large_max.unwrap_or(usize::MAX)
        {
            for request in requests {
                *request = if *request < 256 { 256 } else { usize::MAX };
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

    fn respond(&mut self, requests: Vec<usize>, outcome: Result<(), StoreError>) {
        match outcome {
            Ok(()) => self.answered.lock().expect("no panic").push(requests),
            Err(StoreError::Busy) => {
                let count = u32::try_from(requests.len()).expect("few requests");
                self.refused.fetch_add(count, Ordering::SeqCst);
            }
            Err(_) => {}
        }
    }

    fn writer_occupied(&mut self, _: Duration) {}
}

async fn store() -> Store {
    let opened = Store::open("sqlite::memory:", Settings::default()).await;
    opened.expect("a database")
}

/// A writer whose first request runs until the gate has a permit, so that further requests queue up behind it.
struct BusyWriter {
    writer: Writer<usize>,
    gate: Arc<Semaphore>,
    runs: Arc<AtomicU32>,
    refused: Arc<AtomicU32>,
    answered: Arc<Mutex<Vec<Vec<usize>>>>,
}

impl BusyWriter {
    async fn start(large_max: Option<usize>) -> BusyWriter {
        let gate = Arc::new(Semaphore::new(0));
        let runner = CountingRunner {
            gate: Some(Arc::clone(&gate)),
            large_max,
            ..CountingRunner::default()
        };
        let (runs, refused) = (Arc::clone(&runner.runs), Arc::clone(&runner.refused));
        let answered = Arc::clone(&runner.answered);
        let writer = Writer::start(store().await.connection, runner, false);
        let busy = BusyWriter {
            writer,
            gate,
            runs,
            refused,
            answered,
        };
        busy.submit(1, 1).await;
        busy.has_run(1).await;
        busy
    }

    /// Queues this many requests of this weight.
    async fn submit(&self, count: usize, weight: usize) {
        for _ in 0..count {
            self.writer.submit(weight).await.expect("the writer runs");
        }
    }

    /// Waits until this many runs have begun.
    async fn has_run(&self, count: u32) {
        while self.runs.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }

    /// Lets all requests run. Returns the groups that were answered with success.
    async fn finish(self) -> Vec<Vec<usize>> {
        self.gate.add_permits(Semaphore::MAX_PERMITS);
        self.writer.close().await;
        self.answered.lock().expect("no panic").clone()
    }
}

/// The groups in which these requests run if no others arrive.
async fn groups(requests: impl IntoIterator<Item = usize>) -> Vec<Vec<usize>> {
    let (sender, mut queue) = queue::<CountingRunner>();
    for request in requests {
        sender.send(request).await.expect("the queue is open");
    }
    let stop = CancellationToken::new();
    stop.cancel();
    let mut groups = Vec::new();
    while let Some(group) = queue.next_group(&stop).await {
        groups.push(group);
    }
    groups
}

#[tokio::test]
async fn a_group_has_512_requests() {
    for (count, expected) in [
        (511, vec![511]),
        (512, vec![512]),
        (513, vec![512, 1]),
        (1_025, vec![512, 512, 1]),
    ] {
        let groups = groups(vec![1; count]).await;
        let lengths: Vec<usize> = groups.iter().map(Vec::len).collect();
        assert_eq!(lengths, expected, "{count}");
    }
}

#[tokio::test]
async fn a_group_weighs_2048_unless_one_request_weighs_more() {
    for (requests, expected) in [
        (&[1, 2_046, 1][..], vec![vec![1, 1, 2_046]]),
        (&[1, 2_047, 1], vec![vec![1, 1], vec![2_047]]),
        (&[2_047, 1], vec![vec![1, 2_047]]),
        (&[2_047, 2, 1], vec![vec![2, 1], vec![2_047]]),
        (&[2_048, 1], vec![vec![1], vec![2_048]]),
        (&[10_000, 1], vec![vec![1], vec![10_000]]),
        (&[1_000, 1_000, 1_000], vec![vec![1_000; 2], vec![1_000]]),
        (
            &[1_000, 2_000, 1, 3_000, 1],
            vec![vec![1, 1, 1_000], vec![2_000], vec![3_000]],
        ),
    ] {
        assert_eq!(
            groups(requests.iter().copied()).await,
            expected,
            "{requests:?}"
        );
    }
}

#[tokio::test]
async fn lanes_begin_groups_in_turn_and_small_requests_pass_any_number_of_large_ones() {
    let (sender, mut queue) = queue::<CountingRunner>();
    for _ in 0..1_000 {
        sender.send(2_048).await.expect("the queue is open");
    }
    for _ in 0..3 {
        sender.send(EXCLUSIVE).await.expect("the queue is open");
    }
    let stop = CancellationToken::new();
    let mut order = Vec::new();
    for small in 1..=5 {
        // This one arrives last, and waits for at most one group of each other lane.
        sender.send(small).await.expect("the queue is open");
        while order.last() != Some(&vec![small]) {
            order.push(queue.next_group(&stop).await.expect("a group"));
        }
    }
    let requests = order.into_iter().flatten().collect::<Vec<_>>();
    let expected = [
        1, 2_048, EXCLUSIVE, 2, 2_048, EXCLUSIVE, 3, 2_048, EXCLUSIVE, 4, 2_048, 5,
    ];
    assert_eq!(requests, expected);
}

#[tokio::test]
async fn large_requests_without_a_caller_are_skipped_and_make_room() {
    let (sender, mut queue) = queue::<CountingRunner>();
    let stop = CancellationToken::new();
    for _ in 0..LARGE_QUEUED_MAX - 1 {
        sender.send(ABANDONED).await.expect("the queue is open");
    }
    sender.send(1_000).await.expect("the queue is open");
    let sent = unconstrained(sender.send(1_000)).now_or_never();
    assert!(sent.is_none(), "there is no room for large requests");
    assert_eq!(queue.next_group(&stop).await, Some(vec![1_000]));
    for n in 1..QUEUED_MAX {
        let weight = if n <= LARGE_QUEUED_MAX { 2_000 } else { 1 };
        let sent = unconstrained(sender.send(weight)).now_or_never();
        assert!(matches!(sent, Some(Ok(()))), "{n} requests are queued");
    }
    // The request of the group counts until it is released.
    assert!(unconstrained(sender.send(1)).now_or_never().is_none());
    queue.release(1);
    assert!(unconstrained(sender.send(1)).now_or_never().is_some());
}

#[tokio::test]
async fn requests_that_are_put_back_run_in_turn_with_large_ones_and_share_a_group_with_no_others() {
    let (sender, mut queue) = queue::<CountingRunner>();
    let stop = CancellationToken::new();
    for _ in 0..3 {
        sender.send(2_000).await.expect("the queue is open");
    }
    assert_eq!(queue.next_group(&stop).await, Some(vec![2_000]));
    assert!(queue.put_back(vec![1_100, 1_201, 900, 1_200]).is_empty());
    assert_eq!(sender.count(), 3);
    sender.send(1).await.expect("the queue is open");
    let expected = [
        vec![1_100, 900],
        vec![1],
        vec![2_000],
        // Has loaded less than 1,201.
        vec![1_200],
        vec![2_000],
        vec![1_201],
    ];
    for expected in expected {
        assert_eq!(queue.next_group(&stop).await, Some(expected));
    }
}

/// A request that loads little does not wait for the requests that make the group too large.
#[test]
fn of_requests_that_are_too_large_together_those_that_load_the_least_run_first() {
    let requests = vec![509, 301, 11, 511, 500, 509, 509];
    let (fitting, others) = separate_fitting::<CountingRunner>(requests);
    assert_eq!(fitting, [500, 11, 301, 511, 509]);
    assert_eq!(others, [509; 2]);
}

/// Many requests that are too large together: more than wait for another attempt.
#[tokio::test]
async fn requests_for_which_there_is_no_room_to_run_again_are_refused() {
    let busy = BusyWriter::start(Some(8)).await;
    busy.submit(2_000, 2).await;
    let refused = Arc::clone(&busy.refused);
    let answered = busy.finish().await.concat();
    let refused = refused.load(Ordering::SeqCst) as usize;
    assert_eq!(answered.len() + refused, 2_001);
    // Of each of the first groups of 512, eight run at once, and others while the next groups are put back.
    assert!((800..1_000).contains(&refused), "{refused}");
}

/// However many are put back, the others have room.
#[tokio::test]
async fn at_most_1024_requests_are_put_back() {
    let (sender, mut queue) = queue::<CountingRunner>();
    let stop = CancellationToken::new();
    for _ in 0..3 {
        sender.send(1).await.expect("the queue is open");
    }
    assert_eq!(queue.next_group(&stop).await, Some(vec![1; 3]));
    assert!(queue.put_back(vec![2_000; PUT_BACK_MAX - 2]).is_empty());
    assert!(queue.put_back(vec![3_000]).is_empty());
    // The requests that load the most are refused; of equal loads, the heaviest.
    assert_eq!(queue.put_back(vec![1_001, 4_000, 2_500]), [4_000, 1_001]);
    assert!(queue.put_back(Vec::new()).is_empty());
    for _ in 0..LARGE_QUEUED_MAX {
        let sent = unconstrained(sender.send(2_000)).now_or_never();
        assert!(matches!(sent, Some(Ok(()))));
    }
    assert!(unconstrained(sender.send(2_000)).now_or_never().is_none());
    assert_eq!(queue.next_group(&stop).await, Some(vec![2_000]));
    assert!(unconstrained(sender.send(2_000)).now_or_never().is_some());
    assert!(unconstrained(sender.send(2_000)).now_or_never().is_none());
}

#[tokio::test]
async fn requests_with_transactions_of_their_own_have_room_beside_large_ones() {
    let (sender, mut queue) = queue::<CountingRunner>();
    let stop = CancellationToken::new();
    for _ in 0..LARGE_QUEUED_MAX {
        sender.send(2_000).await.expect("the queue is open");
    }
    let exclusive = || unconstrained(sender.send(EXCLUSIVE)).now_or_never();
    for n in 0..EXCLUSIVE_QUEUED_MAX {
        assert!(matches!(exclusive(), Some(Ok(()))), "{n}");
    }
    assert!(exclusive().is_none());
    for _ in 0..2 {
        let sent = unconstrained(sender.send(SYSTEM)).now_or_never();
        assert!(matches!(sent, Some(Ok(()))));
    }
    assert_eq!(queue.next_group(&stop).await, Some(vec![2_000]));
    assert!(exclusive().is_none());
    assert_eq!(queue.next_group(&stop).await, Some(vec![EXCLUSIVE]));
    assert!(exclusive().is_some());
    assert!(exclusive().is_none());
    // They do not wait for those of clients.
    for expected in [SYSTEM, 2_000, EXCLUSIVE, SYSTEM] {
        assert_eq!(queue.next_group(&stop).await, Some(vec![expected]));
    }
}

#[tokio::test]
async fn a_single_request_runs_20_times_before_it_fails() {
    let mut connection = store().await.connection;
    // The pauses between the runs take no time.
    tokio::time::pause();
    for (conflicts, runs, succeeds) in [(18, 19, true), (19, 20, true), (20, 20, false)] {
        let mut runner = CountingRunner {
            conflicts,
            ..CountingRunner::default()
        };
        let (stop, mut recent_failures) = (CancellationToken::new(), RecentFailures::default());
        let mut attempts = Attempts {
            recent_failures: &mut recent_failures,
            stop: &stop,
        };
        let outcome = attempt(&mut connection, &mut runner, &mut [1], &mut attempts).await;
        assert_eq!(outcome.is_ok(), succeeds, "{conflicts} conflicts");
        assert_eq!(runner.runs.load(Ordering::SeqCst), runs);
        assert_eq!(runner.locking_runs, runs - 1, "all but the first");
    }
}

#[tokio::test]
async fn a_request_waits_until_fewer_than_4096_wait_or_run() {
    let busy = BusyWriter::start(None).await;
    let writer = &busy.writer;
    // `unconstrained`, because Tokio's cooperative budget would end the loop early.
    let submit = || unconstrained(writer.submit(1)).now_or_never();
    for n in 2..=4_096 {
        assert!(matches!(submit(), Some(Ok(()))), "{n} requests wait or run");
    }
    assert!(submit().is_none());
    busy.gate.add_permits(Semaphore::MAX_PERMITS);
    writer.submit(1).await.expect("there is room again");
    writer.close().await;
}

#[tokio::test]
async fn requests_that_are_too_large_together_run_later_with_fewer_others() {
    for (large_max, expected) in [
        (8, vec![vec![256; 8], vec![256; 3]]),
        (1, vec![vec![usize::MAX]; 11]),
    ] {
        let busy = BusyWriter::start(Some(large_max)).await;
        busy.submit(10, 2).await;
        busy.submit(1, 1).await;
        let answered = busy.finish().await;
        let mut requests = answered.iter().cloned();
        assert_eq!(requests.next(), Some(vec![1]));
        assert_eq!(
            requests.collect::<Vec<_>>(),
            expected,
            "{large_max} at once"
        );
    }
}

#[tokio::test]
async fn of_small_requests_that_are_too_large_together_one_group_runs_before_others() {
    let busy = BusyWriter::start(Some(8)).await;
    busy.submit(40, 2).await;
    busy.gate.add_permits(1);
    busy.has_run(2).await;
    // Arrives while the first group of the 40 runs.
    busy.submit(1, 1).await;
    let answered = busy.finish().await;
    let group_of = |count| vec![256; count];
    let expected = [
        vec![1],
        group_of(8),
        group_of(8),
        vec![1],
        group_of(8),
        group_of(8),
        group_of(8),
    ];
    assert_eq!(answered, expected);
}
