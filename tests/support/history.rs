//! What clients did and were told, and whether a queue may have told them so.
//!
//! Every call is written down before it is made (`invoke`) and after it was answered: done, refused, or
//! (when the answer never came) unknown. The check then holds the server to its promises: what it
//! acknowledged is not lost, what was never put does not come out, at most one completion of a job is
//! accepted, and a job comes out a second time only when its lock was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a call was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Add(String),
    /// The jobs that came are told at the end.
    Get,
    Complete(String),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The jobs that came.
    Got(Vec<String>),
    Refused,
    /// No answer: it may have been done or not.
    Unknown,
}

#[derive(Debug)]
struct Call {
    what: What,
    invoked: Duration,
    /// `None` while it runs.
    end: Option<(Duration, Outcome)>,
}

/// The calls of all clients.
#[derive(Debug)]
pub struct History {
    began: Instant,
    calls: Mutex<Vec<Call>>,
}

/// What the check found; all but `recovered` and `open` must be empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Acknowledged, and never completed.
    pub lost: BTreeSet<String>,
    /// Came out, and were never put.
    pub unexpected: BTreeSet<String>,
    pub completed_twice: BTreeSet<String>,
    /// Came out again while their lock was good, or after they were complete.
    pub unjustified: BTreeSet<String>,
    /// Came out though nobody was told that they were put.
    pub recovered: BTreeSet<String>,
    /// Their completion was not acknowledged: whoever checks must ask the server.
    pub open: BTreeSet<String>,
}

impl Default for History {
    fn default() -> Self {
        History {
            began: Instant::now(),
            calls: Mutex::new(Vec::new()),
        }
    }
}

impl History {
    /// Writes down that a call is about to be made. Returns its number.
    pub fn invoke(&self, what: What) -> usize {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(Call {
            what,
            invoked: self.began.elapsed(),
            end: None,
        });
        calls.len() - 1
    }

    /// Writes down how a call ended.
    pub fn end(&self, call: usize, outcome: Outcome) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls[call].end = Some((self.began.elapsed(), outcome));
    }

    /// The time in this history.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// How many calls there were.
    pub fn len(&self) -> usize {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Checks the whole history, in which a lock held for `lease`, and from `locks_lost` on none did.
    pub fn check(&self, lease: Duration, locks_lost: Duration) -> Verdict {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stories: BTreeMap<&str, Story> = BTreeMap::new();
        for call in calls.iter() {
            let end = call.end.as_ref();
            match (&call.what, end) {
                (What::Add(id), end) => {
                    let story = stories.entry(id).or_default();
                    story.put = true;
                    story.acknowledged |= matches!(end, Some((_, Outcome::Ok)));
                }
                (What::Complete(id), Some((at, Outcome::Ok))) => {
                    stories.entry(id).or_default().completions.push(*at);
                }
                (What::Complete(id), None | Some((_, Outcome::Unknown))) => {
                    stories.entry(id).or_default().maybe_complete = true;
                }
                (What::Get, Some((at, Outcome::Got(ids)))) => {
                    for id in ids {
                        let delivery = (call.invoked, *at);
                        stories.entry(id).or_default().deliveries.push(delivery);
                    }
                }
                _ => {}
            }
        }
        let mut verdict = Verdict::default();
        for (id, story) in stories {
            story.judge(id, lease, locks_lost, &mut verdict);
        }
        verdict
    }
}

/// What befell one job. Every test adds an id once.
#[derive(Debug, Default)]
struct Story {
    put: bool,
    acknowledged: bool,
    /// When the call was made, and when it was answered.
    deliveries: Vec<(Duration, Duration)>,
    completions: Vec<Duration>,
    maybe_complete: bool,
}

impl Story {
    fn judge(mut self, id: &str, lease: Duration, locks_lost: Duration, verdict: &mut Verdict) {
        let id = id.to_owned();
        self.deliveries.sort_unstable();
        let too_early = self.deliveries.windows(2).any(|pair| {
            let (first, second) = (pair[0], pair[1]);
            // The first lock was taken after its call was made, so it was good at least until then.
            second.1 < first.0 + lease && second.0 < locks_lost
        });
        let risen = |delivery: &(Duration, Duration)| {
            self.completions
                .iter()
                .any(|completed| delivery.0 > *completed)
        };
        if too_early || self.deliveries.iter().any(risen) {
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

fn told(calls: &[(What, Outcome)]) -> History {
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
fn the_check_finds_nothing_in_an_ordinary_life() {
    let verdict = told(&[add("a"), got("a"), completed("a")]).check(LEASE, NEVER);
    assert_eq!(verdict, Verdict::default());
}

#[test]
fn the_check_finds_what_is_lost_and_asks_where_it_cannot_know() {
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
    let verdict = told(&calls).check(LEASE, NEVER);
    assert_eq!((verdict.lost, verdict.open), (only("a"), only("b")));
}

#[test]
fn the_check_finds_what_comes_from_nowhere_and_what_comes_back() {
    let uncertain = (What::Add("b".to_owned()), Outcome::Unknown);
    let calls = [
        got("a"),
        completed("a"),
        uncertain,
        got("b"),
        completed("b"),
    ];
    let verdict = told(&calls).check(LEASE, NEVER);
    assert_eq!(
        (verdict.unexpected, verdict.recovered),
        (only("a"), only("b"))
    );
}

#[test]
fn the_check_finds_a_second_completion_and_a_job_that_rises_from_the_dead() {
    let calls = [add("a"), got("a"), completed("a"), got("a"), completed("a")];
    let verdict = told(&calls).check(Duration::ZERO, NEVER);
    assert_eq!(
        (verdict.completed_twice, verdict.unjustified),
        (only("a"), only("a"))
    );
}

#[test]
fn the_check_allows_a_second_delivery_only_after_the_lock_was_lost() {
    let calls = [add("a"), got("a"), got("a"), completed("a")];
    assert_eq!(told(&calls).check(LEASE, NEVER).unjustified, only("a"));
    assert_eq!(
        told(&calls).check(Duration::ZERO, NEVER),
        Verdict::default()
    );
    assert_eq!(
        told(&calls).check(LEASE, Duration::ZERO),
        Verdict::default()
    );
}
