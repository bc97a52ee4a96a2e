//! A history of the calls of all clients, and a check of the server's guarantees.
//!
//! Each call is recorded before it is made (`invoke`), and when it ends: successful, rejected, or unknown if there was
//! no response. The check finds violations: acknowledged jobs that were lost, jobs that were claimed but never put,
//! jobs with more than one accepted completion, and jobs that were claimed again before their lease expired without
//! having been returned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Add(String),
    /// A claim. Its outcome contains the jobs.
    Get,
    Complete(String),
    /// A retry, a timeout or a similar call, after which the job may be claimed again at once.
    Return(String),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The claimed jobs.
    Got(Vec<String>),
    Refused,
    /// No response: the call may or may not have had an effect.
    Unknown,
}

#[derive(Debug)]
struct Call {
    what: What,
    invoked: Duration,
    /// `None` until the call ends.
    end: Option<(Duration, Outcome)>,
}

/// Where the times of calls come from.
#[derive(Debug)]
enum Clock {
    Real(Instant),
    /// Microseconds, which the test sets.
    Set(Arc<AtomicU64>),
}

impl Clock {
    fn now(&self) -> Duration {
        match self {
            Clock::Real(began) => began.elapsed(),
            Clock::Set(micros) => Duration::from_micros(micros.load(Ordering::Relaxed)),
        }
    }
}

/// The calls of all clients.
#[derive(Debug)]
pub struct History {
    clock: Clock,
    calls: Mutex<Vec<Call>>,
}

/// The result of the check. All sets except `recovered` and `open` must be empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Acknowledged, but never completed.
    pub lost: BTreeSet<String>,
    /// Claimed, but never put.
    pub unexpected: BTreeSet<String>,
    pub completed_twice: BTreeSet<String>,
    /// Claimed again before the lease expired, or after they were completed.
    pub unjustified: BTreeSet<String>,
    /// Claimed, although their put was not acknowledged.
    pub recovered: BTreeSet<String>,
    /// Their completion was not acknowledged. The caller must check their state on the server.
    pub open: BTreeSet<String>,
}

impl Default for History {
    fn default() -> Self {
        History {
            clock: Clock::Real(Instant::now()),
            calls: Mutex::new(Vec::new()),
        }
    }
}

impl History {
    /// A history whose clock the test sets, in microseconds.
    pub fn with_clock(micros: Arc<AtomicU64>) -> History {
        History {
            clock: Clock::Set(micros),
            calls: Mutex::default(),
        }
    }

    /// All calls as text, to compare histories.
    pub fn lines(&self) -> Vec<String> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().map(|call| format!("{call:?}")).collect()
    }

    /// Records the start of a call. Returns its number.
    pub fn invoke(&self, what: What) -> usize {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(Call {
            what,
            invoked: self.clock.now(),
            end: None,
        });
        calls.len() - 1
    }

    /// Records the end of a call.
    pub fn end(&self, call: usize, outcome: Outcome) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls[call].end = Some((self.clock.now(), outcome));
    }

    /// The time since the start of the history.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// The number of calls.
    pub fn len(&self) -> usize {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Checks the whole history. Leases are valid for `lease`; from the time `leases_lost` on, all leases count as
    /// expired.
    pub fn check(&self, lease: Duration, leases_lost: Duration) -> Verdict {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut calls_by_job: BTreeMap<&str, JobCalls> = BTreeMap::new();
        for call in calls.iter() {
            let end = call.end.as_ref();
            match (&call.what, end) {
                (What::Add(id), end) => {
                    let calls = calls_by_job.entry(id).or_default();
                    calls.put = true;
                    calls.acknowledged |= matches!(end, Some((_, Outcome::Ok)));
                }
                (What::Complete(id), Some((at, Outcome::Ok))) => {
                    calls_by_job.entry(id).or_default().completions.push(*at);
                }
                (What::Complete(id), None | Some((_, Outcome::Unknown))) => {
                    calls_by_job.entry(id).or_default().maybe_complete = true;
                }
                (What::Return(id), end) => {
                    let is_refused = matches!(end, Some((_, Outcome::Refused)));
                    let calls = calls_by_job.entry(id).or_default();
                    calls.returns.extend((!is_refused).then_some(call.invoked));
                }
                (What::Get, Some((at, Outcome::Got(ids)))) => {
                    for id in ids {
                        let delivery = (call.invoked, *at);
                        calls_by_job
                            .entry(id)
                            .or_default()
                            .deliveries
                            .push(delivery);
                    }
                }
                _ => {}
            }
        }
        let mut verdict = Verdict::default();
        for (id, calls) in calls_by_job {
            calls.check_job(id, lease, leases_lost, &mut verdict);
        }
        verdict
    }
}

/// The calls for one job. Tests put each ID once.
#[derive(Debug, Default)]
struct JobCalls {
    put: bool,
    acknowledged: bool,
    /// The start and the end of each call that returned the job.
    deliveries: Vec<(Duration, Duration)>,
    completions: Vec<Duration>,
    /// When calls were made that may have returned the job.
    returns: Vec<Duration>,
    maybe_complete: bool,
}

impl JobCalls {
    fn check_job(
        mut self,
        id: &str,
        lease: Duration,
        leases_lost: Duration,
        verdict: &mut Verdict,
    ) {
        let id = id.to_owned();
        self.deliveries.sort_unstable();
        let too_early = self.deliveries.windows(2).any(|pair| {
            let (first, second) = (pair[0], pair[1]);
            // A lease starts no earlier than the call, so it is valid until the start of the call + `lease` at least.
            // If two calls overlap, the later one may have claimed the job first: the server of the earlier one can
            // have been suspended before it claimed the job.
            let is_within_lease = second.1 < first.0 + lease && first.1 < second.0 + lease;
            let mut returns = self.returns.iter();
            let is_returned = returns.any(|at| (first.0..=first.1.max(second.1)).contains(at));
            is_within_lease && second.0 < leases_lost && !is_returned
        });
        let is_after_completion = |delivery: &(Duration, Duration)| {
            self.completions
                .iter()
                .any(|completed| delivery.0 > *completed)
        };
        if too_early || self.deliveries.iter().any(is_after_completion) {
            println!("{id} was claimed without a reason: {self:?}");
            verdict.unjustified.insert(id.clone());
        }
        if self.completions.len() > 1 {
            verdict.completed_twice.insert(id.clone());
        }
        if !self.put {
            verdict.unexpected.insert(id.clone());
        }
        if self.put && !self.acknowledged && !self.deliveries.is_empty() {
            verdict.recovered.insert(id.clone());
        }
        if self.acknowledged && self.completions.is_empty() {
            let list = if self.maybe_complete {
                &mut verdict.open
            } else {
                &mut verdict.lost
            };
            list.insert(id);
        }
    }
}

const LEASE: Duration = Duration::from_secs(60);
const NEVER: Duration = Duration::MAX;

fn history_of(calls: &[(What, Outcome)]) -> History {
    let history = History::default();
    for (what, outcome) in calls {
        let call = history.invoke(what.clone());
        history.end(call, outcome.clone());
    }
    history
}

fn add(id: &str) -> (What, Outcome) {
    (What::Add(id.to_owned()), Outcome::Ok)
}

fn got(id: &str) -> (What, Outcome) {
    (What::Get, Outcome::Got(vec![id.to_owned()]))
}

fn completed(id: &str) -> (What, Outcome) {
    (What::Complete(id.to_owned()), Outcome::Ok)
}

fn only(id: &str) -> BTreeSet<String> {
    BTreeSet::from([id.to_owned()])
}

#[test]
fn an_ordinary_history_violates_no_guarantee() {
    let verdict = history_of(&[add("a"), got("a"), completed("a")]).check(LEASE, NEVER);
    assert_eq!(verdict, Verdict::default());
}

#[test]
fn the_check_finds_lost_jobs_and_reports_unknown_ones() {
    let unknown = (What::Complete("b".to_owned()), Outcome::Unknown);
    let refused = (What::Add("c".to_owned()), Outcome::Refused);
    let never_answered = (What::Add("d".to_owned()), Outcome::Unknown);
    let calls = [
        add("a"),
        got("a"),
        add("b"),
        got("b"),
        unknown,
        refused,
        never_answered,
    ];
    let verdict = history_of(&calls).check(LEASE, NEVER);
    assert_eq!((verdict.lost, verdict.open), (only("a"), only("b")));
}

#[test]
fn the_check_finds_unknown_and_repeated_jobs() {
    let uncertain = (What::Add("b".to_owned()), Outcome::Unknown);
    let calls = [
        got("a"),
        completed("a"),
        uncertain,
        got("b"),
        completed("b"),
    ];
    let verdict = history_of(&calls).check(LEASE, NEVER);
    assert_eq!(
        (verdict.unexpected, verdict.recovered),
        (only("a"), only("b"))
    );
}

#[test]
fn the_check_finds_second_completions_and_claims_after_completion() {
    let calls = [add("a"), got("a"), completed("a"), got("a"), completed("a")];
    let verdict = history_of(&calls).check(Duration::ZERO, NEVER);
    assert_eq!(
        (verdict.completed_twice, verdict.unjustified),
        (only("a"), only("a"))
    );
}

#[test]
fn the_check_allows_a_second_claim_only_after_the_lease() {
    let calls = [add("a"), got("a"), got("a"), completed("a")];
    assert_eq!(
        history_of(&calls).check(LEASE, NEVER).unjustified,
        only("a")
    );
    assert_eq!(
        history_of(&calls).check(Duration::ZERO, NEVER),
        Verdict::default()
    );
    assert_eq!(
        history_of(&calls).check(LEASE, Duration::ZERO),
        Verdict::default()
    );
}

#[test]
fn the_check_allows_any_order_of_claims_that_overlap() {
    let job = || Outcome::Got(vec!["a".to_owned()]);
    for (thawed, unjustified) in [(60, only("a")), (61, BTreeSet::new())] {
        let micros = Arc::new(AtomicU64::new(0));
        let history = History::with_clock(Arc::clone(&micros));
        let put = history.invoke(What::Add("a".to_owned()));
        history.end(put, Outcome::Ok);
        let at = |seconds: u64| micros.store(seconds * 1_000_000, Ordering::Relaxed);
        let frozen = history.invoke(What::Get);
        at(1);
        let ordinary = history.invoke(What::Get);
        history.end(ordinary, job());
        at(thawed);
        history.end(frozen, job());
        let found = history.check(LEASE, NEVER).unjustified;
        assert_eq!(found, unjustified, "thawed after {thawed} s");
    }
}

#[test]
fn the_check_allows_a_second_claim_of_a_returned_job() {
    let returned = |outcome| (What::Return("a".to_owned()), outcome);
    for (outcome, unjustified) in [
        (Outcome::Ok, BTreeSet::new()),
        (Outcome::Unknown, BTreeSet::new()),
        (Outcome::Refused, only("a")),
    ] {
        let calls = [
            add("a"),
            got("a"),
            returned(outcome),
            got("a"),
            completed("a"),
        ];
        assert_eq!(
            history_of(&calls).check(LEASE, NEVER).unjustified,
            unjustified
        );
    }
}
