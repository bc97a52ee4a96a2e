//! A record of what the clients of the storm did, job by job, and a check of the server's guarantees.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The body of a job, unique for each put: a put that reuses an ID starts another story.
pub type Token = u64;

/// The stories of all jobs.
#[derive(Debug)]
pub struct Record {
    began: Instant,
    stories: Mutex<BTreeMap<Token, Story>>,
}

/// The calls for one job. Times are those of the record.
#[derive(Debug, Default)]
struct Story {
    acknowledged: bool,
    deliveries: Vec<Delivery>,
    /// Calls that allow the job to be claimed again, with the time of the response if there was one.
    releases: Vec<Call>,
    /// The start and the acknowledgment of each completion.
    completed: Vec<Call>,
    /// Moves by other clients: even a complete job waits again after a move.
    moved: Vec<Call>,
    /// The call that removed it.
    removed: Option<Call>,
    /// Whether a call may have ended it: the server refused the call, so the outcome is unknown.
    may_have_ended: bool,
}

/// The time of the request, and the time of the response.
type Call = (Duration, Duration);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Delivery {
    asked: Duration,
    delivered: Duration,
    lease: Duration,
}

/// The tokens of the jobs that violate a guarantee.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Acknowledged, but neither completed nor removed.
    pub lost: Vec<Token>,
    /// Claimed again during a lease, although no call had released them.
    pub second: Vec<Token>,
    pub completed_twice: Vec<Token>,
    /// Claimed after they were completed or removed.
    pub delivered_after_end: Vec<Token>,
}

impl Default for Record {
    fn default() -> Self {
        Record {
            began: Instant::now(),
            stories: Mutex::default(),
        }
    }
}

impl Record {
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn stories(&self) -> MutexGuard<'_, BTreeMap<Token, Story>> {
        self.stories.lock().unwrap()
    }

    fn note(&self, token: Token, note: impl FnOnce(&mut Story)) {
        note(self.stories().entry(token).or_default());
    }

    /// Records that the put was acknowledged.
    pub fn acknowledged(&self, token: Token) {
        self.note(token, |story| story.acknowledged = true);
    }

    /// Records that a claim sent at `asked` returned the job with this lease.
    pub fn delivered(&self, token: Token, asked: Duration, lease: Duration) {
        let delivered = self.now();
        let delivery = Delivery {
            asked,
            delivered,
            lease,
        };
        self.note(token, |story| story.deliveries.push(delivery));
    }

    /// Records the start of a call that allows the job to be claimed again. Dropping the guard records the response.
    pub fn releasing(&self, token: Option<Token>) -> Release<'_> {
        let asked = self.now();
        if let Some(token) = token {
            self.note(token, |story| story.releases.push((asked, Duration::MAX)));
        }
        Release {
            record: self,
            token,
            asked,
        }
    }

    /// Records that a completion sent at `asked` was acknowledged.
    pub fn completed(&self, token: Token, asked: Duration) {
        let call = (asked, self.now());
        self.note(token, |story| story.completed.push(call));
    }

    /// Records the end of a move sent at `asked`. Without a response, the move may still happen.
    pub fn moved(&self, token: Token, asked: Duration, has_response: bool) {
        let end = if has_response {
            self.now()
        } else {
            Duration::MAX
        };
        let call = (asked, end);
        self.note(token, |story| story.moved.push(call));
    }

    /// Records that a removal was acknowledged.
    pub fn removed(&self, token: Token, asked: Duration) {
        let call = (asked, self.now());
        self.note(token, |story| story.removed = Some(call));
    }

    /// Records that a call with an unknown outcome would have ended the job.
    pub fn may_have_ended(&self, token: Token) {
        self.note(token, |story| story.may_have_ended = true);
    }

    /// Whether the job has been completed or removed.
    pub fn is_over(&self, token: Token) -> bool {
        self.stories().get(&token).is_some_and(Story::is_over)
    }

    /// The number of acknowledged jobs that have not ended.
    pub fn open(&self) -> usize {
        let stories = self.stories();
        stories.values().filter(|story| story.is_open()).count()
    }

    /// The number of jobs that were put, and the number of claims.
    pub fn size(&self) -> (usize, usize) {
        let stories = self.stories();
        let deliveries = stories.values().map(|story| story.deliveries.len());
        (stories.len(), deliveries.sum())
    }

    pub fn judge(&self) -> Verdict {
        let mut verdict = Verdict::default();
        for (token, story) in self.stories().iter_mut() {
            story
                .deliveries
                .sort_unstable_by_key(|delivery| delivery.delivered);
            if story.is_open() {
                verdict.lost.push(*token);
            }
            if story.delivered_during_lease() {
                verdict.second.push(*token);
            }
            story.completed.sort_unstable();
            if story
                .completed
                .windows(2)
                .any(|pair| !story.moved_between(pair[0], pair[1].1))
            {
                verdict.completed_twice.push(*token);
            }
            if story.delivered_after_end() {
                verdict.delivered_after_end.push(*token);
            }
        }
        verdict
    }

    /// The whole story of a job, for error messages.
    pub fn story(&self, token: Token) -> String {
        format!("{token}: {:?}", self.stories().get(&token))
    }
}

/// A call that allows a job to be claimed again.
pub struct Release<'a> {
    record: &'a Record,
    token: Option<Token>,
    asked: Duration,
}

impl Release<'_> {
    /// Records the response. Without one, the job may be released at any later time.
    pub fn end<T>(self, response: Option<T>) -> Option<T> {
        if response.is_none() {
            std::mem::forget(self);
        }
        response
    }
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        let (asked, answered) = (self.asked, self.record.now());
        if let Some(token) = self.token {
            self.record.note(token, |story| {
                let call = story.releases.iter_mut().find(|call| call.0 == asked);
                call.expect("it was noted").1 = answered;
            });
        }
    }
}

impl Story {
    fn is_over(&self) -> bool {
        !self.completed.is_empty() || self.removed.is_some()
    }

    /// Whether the job must still exist.
    fn is_open(&self) -> bool {
        self.acknowledged && !self.is_over() && !self.may_have_ended
    }

    fn delivered_during_lease(&self) -> bool {
        self.deliveries.windows(2).any(|pair| {
            let (first, second) = (pair[0], pair[1]);
            // If the calls overlap, the later response can belong to the earlier claim.
            let is_ordered = second.asked >= first.delivered;
            self.is_held(first, second) && (is_ordered || self.is_held(second, first))
        })
    }

    /// Whether the lease of the first delivery excludes the second one, if the claims happened in this order.
    fn is_held(&self, first: Delivery, second: Delivery) -> bool {
        let is_released = |call: &Call| call.1 >= first.asked && call.0 <= second.delivered;
        second.delivered < first.asked + first.lease && !self.releases.iter().any(is_released)
    }

    fn delivered_after_end(&self) -> bool {
        let mut over = self.completed.iter().chain(&self.removed);
        over.any(|over| {
            let later = self.deliveries.iter().filter(|it| it.asked > over.1);
            later
                .into_iter()
                .any(|it| !self.moved_between(*over, it.delivered))
        })
    }

    /// Whether the job may have been moved after this call and before this time.
    fn moved_between(&self, call: Call, until: Duration) -> bool {
        self.moved
            .iter()
            .any(|moved| moved.1 >= call.0 && moved.0 <= until)
    }
}

fn verdict_on(record_events: impl FnOnce(&Record)) -> Verdict {
    let record = Record::default();
    record_events(&record);
    record.judge()
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_valid_history_has_no_violations() {
    let verdict = verdict_on(|record| {
        record.acknowledged(1);
        record.delivered(1, record.now(), LONG);
        drop(record.releasing(Some(1)));
        record.delivered(1, record.now(), LONG);
        record.completed(1, record.now());
    });
    assert_eq!(verdict, Verdict::default());
}

#[test]
fn an_acknowledged_job_that_never_ends_is_lost() {
    let verdict = verdict_on(|record| {
        record.acknowledged(1);
        record.delivered(1, record.now(), LONG);
        record.acknowledged(2);
        record.removed(2, record.now());
    });
    assert_eq!(verdict.lost, [1]);
}

#[test]
fn a_job_whose_completion_was_refused_may_be_claimed_after_its_lease_or_be_gone() {
    let verdict = verdict_on(|record| {
        record.acknowledged(1);
        record.may_have_ended(1);
        record.acknowledged(2);
        record.delivered(2, record.now(), LONG);
        record.may_have_ended(2);
        record.delivered(2, record.now(), LONG);
        record.acknowledged(3);
        record.delivered(3, record.now(), LONG);
        record.releasing(Some(3)).end(None::<()>);
        record.delivered(3, record.now(), LONG);
        record.completed(3, record.now());
    });
    let second = vec![2];
    assert_eq!(
        verdict,
        Verdict {
            second,
            ..Verdict::default()
        }
    );
}

#[test]
fn a_second_claim_before_expiry_is_a_violation() {
    let verdict = verdict_on(|record| {
        record.delivered(1, record.now(), LONG);
        record.delivered(1, record.now(), LONG);
        record.delivered(2, record.now(), Duration::ZERO);
        record.delivered(2, record.now(), LONG);
    });
    assert_eq!(verdict.second, [1]);
}

/// The first claim is released before the second one begins, but its response arrives last.
#[test]
fn claims_that_overlap_may_have_happened_in_either_order() {
    for (is_released, second) in [(true, vec![]), (false, vec![1])] {
        let verdict = verdict_on(|record| {
            let first = record.now();
            if is_released {
                record.releasing(Some(1)).end(Some(()));
            }
            std::thread::sleep(Duration::from_millis(1));
            record.delivered(1, record.now(), LONG);
            record.delivered(1, first, LONG);
        });
        assert_eq!(verdict.second, second);
    }
}

#[test]
fn an_ended_job_is_not_completed_or_claimed_again() {
    let verdict = verdict_on(|record| {
        record.completed(1, record.now());
        record.completed(1, record.now());
        record.removed(2, record.now());
        // Moved after it was completed.
        record.completed(3, record.now());
        record.moved(3, record.now(), true);
        std::thread::sleep(Duration::from_millis(1));
        record.delivered(2, record.now(), LONG);
        record.delivered(3, record.now(), LONG);
        record.completed(3, record.now());
    });
    assert_eq!(
        (verdict.completed_twice, verdict.delivered_after_end),
        (vec![1], vec![2])
    );
}
