//! The verbs that change something. Each returns after the commit.
//!
//! A verb on several items does one after the other, each for itself, and gives a result for each.

mod jobq;
mod lmstfy;
mod relay;

use super::Engine;
use super::check;
use super::chores::Chore;
use super::claim::{self, Claim, Order};
use super::clock::Time;
use super::config;
use super::depend::{self, Depend};
use super::error::Result;
use super::finish::{self, Fail, Next, Retry};
use super::job::{Job, JobKey, QueueKey, State};
use super::lease::{self, Holder};
use super::mend;
use super::put::{self, Put};
use super::queues;
use super::recur::{self, Change, Recur, Recurring};
use super::tag;
use super::track;
use super::work::{Needs, Oldest, Wanted, Work};
pub use relay::Revived;

/// Jobs that are moved out of a list in one transaction; more are moved in several.
const MOVE_BATCH: usize = 1_000;

/// A result for each item.
type Each<T> = Result<Vec<Result<T>>>;

// ---- getting jobs in and out ----

impl Engine {
    /// Puts jobs into `queue` for `client`. Per job, its id.
    pub async fn put(
        &self,
        queue: QueueKey,
        jobs: Vec<Put>,
        client: String,
        now: Option<Time>,
    ) -> Each<String> {
        let needs = needs_of_puts(&jobs);
        self.each(jobs, needs, now, move |work, job| {
            put::put(work, &queue, job, &client)
        })
        .await
    }

    /// Puts jobs that are there into `queue` for `client`. Per job, its id.
    pub async fn requeue(
        &self,
        queue: QueueKey,
        jobs: Vec<Put>,
        client: String,
        now: Option<Time>,
    ) -> Each<String> {
        let needs = needs_of_puts(&jobs);
        self.each(jobs, needs, now, move |work, job| {
            put::requeue(work, &queue, job, &client)
        })
        .await
    }

    /// Gives a worker jobs; see `engine/claim.rs` for the order. If the caller hangs up meanwhile, none.
    pub async fn claim(&self, claim: Claim, now: Option<Time>) -> Result<Vec<Job>> {
        let needs = Needs {
            claim: claim.wanted(),
            ..Needs::default()
        };
        let items = claim.count;
        let in_turn = (claim.order == Order::RoundRobin).then(|| claim.clone());
        let first = in_turn.as_ref().map_or(0, |claim| self.0.turns.next(claim));
        let verb = move |work: &mut Work| claim::claim(work, &claim, first);
        let (jobs, next) = self.write(needs, now, items, verb).await?;
        if let Some(claim) = in_turn {
            self.0.turns.set(&claim, next);
        }
        Ok(jobs)
    }

    /// The jobs that a claim of `count` would meet, in its order. Makes the children of recurring jobs
    /// that are due, as a claim does, and changes nothing else.
    pub async fn peek(
        &self,
        queue: &QueueKey,
        count: usize,
        now: Option<Time>,
    ) -> Result<Vec<Job>> {
        if self.child_is_due(queue, self.now(now)).await? {
            let needs = Needs {
                claim: vec![Wanted {
                    queue: queue.clone(),
                    count,
                    paused_too: true,
                }],
                ..Needs::default()
            };
            self.write(needs, now, count, |_| Ok(())).await?;
        }
        self.next_jobs(queue, count, now).await
    }

    // ---- what a worker says of a job that it has ----

    /// Renews leases. Each job may get a new body. Per job, the seconds until the next heartbeat.
    pub async fn heartbeat(
        &self,
        jobs: Vec<(JobKey, Option<String>)>,
        holder: Holder,
        now: Option<Time>,
    ) -> Each<f64> {
        let needs = named(jobs.iter().map(|(key, _)| key));
        self.each(jobs, needs, now, move |work, (key, body)| {
            lease::heartbeat(work, key, &holder, body.as_deref())
        })
        .await
    }

    /// Completes jobs with their bodies, each for good or to go on elsewhere. Per job, its state now.
    pub async fn complete(
        &self,
        jobs: Vec<(JobKey, String, Option<Next>)>,
        holder: Holder,
        now: Option<Time>,
    ) -> Each<State> {
        let mut needs = named(jobs.iter().map(|(key, ..)| key));
        for next in jobs.iter().filter_map(|(_, _, next)| next.as_ref()) {
            needs.depends(&next.depends);
        }
        self.each(jobs, needs, now, move |work, (key, body, next)| {
            finish::complete(work, key, &holder, body, next.as_ref())
        })
        .await
    }

    /// Fails jobs.
    pub async fn fail(&self, jobs: Vec<Fail>, holder: Holder, now: Option<Time>) -> Each<()> {
        let needs = named(jobs.iter().map(|job| &job.key));
        self.each(jobs, needs, now, move |work, job| {
            finish::fail(work, &holder, job)
        })
        .await
    }

    /// Gives jobs back to be tried again. Per job, the retries left; negative if it was failed instead.
    pub async fn retry(&self, jobs: Vec<Retry>, holder: Holder, now: Option<Time>) -> Each<i64> {
        let needs = named(jobs.iter().map(|job| &job.key));
        self.each(jobs, needs, now, move |work, job| {
            finish::retry(work, &holder, job)
        })
        .await
    }

    // ---- what anybody may do with a job ----

    /// Takes jobs from their workers; each is first in line for another.
    pub async fn time_out(&self, keys: Vec<JobKey>, now: Option<Time>) -> Each<()> {
        let needs = named(&keys);
        self.each(keys, needs, now, lease::time_out).await
    }

    /// Cancels all of these jobs, or none.
    pub async fn cancel(&self, keys: Vec<JobKey>, now: Option<Time>) -> Result<()> {
        self.write(named(&keys), now, keys.len(), move |work| {
            mend::cancel(work, &keys)
        })
        .await
    }

    /// Puts the oldest `count` failures of `group` back to work, into `queue` or else each into its
    /// own. Returns how many. Large numbers go in several transactions.
    pub async fn unfail(
        &self,
        group: &str,
        queue: Option<QueueKey>,
        count: usize,
        now: Option<Time>,
    ) -> Result<usize> {
        let mut batches = Batches::of(count, MOVE_BATCH);
        while let Some(batch) = batches.next() {
            let oldest = Oldest::Failed {
                group: group.to_owned(),
                count: batch,
            };
            let queue = queue.clone();
            let verb = move |work: &mut Work| {
                let keys = work.take_oldest();
                Ok(mend::unfail(work, &keys, queue.as_ref()))
            };
            batches.found(self.write(of(oldest), now, batch, verb).await?);
        }
        Ok(batches.done)
    }

    /// Puts one failed job back to work in its own queue.
    pub async fn unfail_one(&self, key: JobKey, now: Option<Time>) -> Result<()> {
        self.write(named([&key]), now, 1, move |work| {
            mend::unfail_one(work, &key)
        })
        .await
    }

    /// Moves a job, whatever its state, to `queue`, where it is put anew with what it has.
    pub async fn relocate(&self, key: JobKey, queue: QueueKey, now: Option<Time>) -> Result<()> {
        self.write(named([&key]), now, 1, move |work| {
            mend::relocate(work, &key, &queue)
        })
        .await
    }

    /// Gives jobs other priorities.
    pub async fn prioritize(&self, jobs: Vec<(JobKey, f64)>, now: Option<Time>) -> Each<()> {
        let needs = named(jobs.iter().map(|(key, _)| key));
        self.each(jobs, needs, now, |work, (key, priority)| {
            mend::prioritize(work, key, *priority)
        })
        .await
    }

    /// Changes what jobs wait for.
    pub async fn depend(&self, jobs: Vec<(JobKey, Depend)>, now: Option<Time>) -> Each<()> {
        let mut needs = named(jobs.iter().map(|(key, _)| key));
        for (_, change) in &jobs {
            if let Depend::On(ids) = change {
                needs.depends(ids);
            }
        }
        self.each(jobs, needs, now, |work, (key, change)| {
            depend::depend(work, key, change)
        })
        .await
    }

    /// Gives jobs tags. Per job, all it has.
    pub async fn tag(
        &self,
        jobs: Vec<(JobKey, Vec<String>)>,
        now: Option<Time>,
    ) -> Each<Vec<String>> {
        let needs = named(jobs.iter().map(|(key, _)| key));
        self.each(jobs, needs, now, |work, (key, tags)| {
            tag::tag(work, key, tags)
        })
        .await
    }

    /// Takes tags off jobs. Per job, those it has left.
    pub async fn untag(
        &self,
        jobs: Vec<(JobKey, Vec<String>)>,
        now: Option<Time>,
    ) -> Each<Vec<String>> {
        let needs = named(jobs.iter().map(|(key, _)| key));
        self.each(jobs, needs, now, |work, (key, tags)| {
            tag::untag(work, key, tags)
        })
        .await
    }

    /// Makes the events of jobs public, and tags them.
    pub async fn track(&self, jobs: Vec<(JobKey, Vec<String>)>, now: Option<Time>) -> Each<()> {
        let needs = named(jobs.iter().map(|(key, _)| key));
        self.each(jobs, needs, now, |work, (key, tags)| {
            track::track(work, key, tags)
        })
        .await
    }

    /// Tracks jobs, there or not, no longer.
    pub async fn untrack(&self, keys: Vec<JobKey>, now: Option<Time>) -> Each<()> {
        self.each(keys, Needs::default(), now, |work, key| {
            track::untrack(work, key);
            Ok(())
        })
        .await
    }

    /// Adds a word to the histories of jobs: a message, and the JSON text of an object with more.
    pub async fn note(
        &self,
        notes: Vec<(JobKey, String, Option<String>)>,
        now: Option<Time>,
    ) -> Each<()> {
        let needs = named(notes.iter().map(|(key, ..)| key));
        self.each(notes, needs, now, |work, (key, message, data)| {
            mend::note(work, key, message, data.as_deref())
        })
        .await
    }

    // ---- recurring jobs ----

    /// Puts recurring jobs into `queue`. Per job, its id.
    pub async fn recur(
        &self,
        queue: QueueKey,
        jobs: Vec<Recur>,
        now: Option<Time>,
    ) -> Each<String> {
        let needs = Needs {
            recurring: jobs.iter().filter_map(|job| job.id.clone()).collect(),
            ..Needs::default()
        };
        self.each(jobs, needs, now, move |work, job| {
            recur::recur(work, &queue, job)
        })
        .await
    }

    /// Changes a recurring job. Returns it.
    pub async fn change_recurring(
        &self,
        id: &str,
        change: Change,
        now: Option<Time>,
    ) -> Result<Recurring> {
        let id = id.to_owned();
        self.write(recurring(&id), now, 1, move |work| {
            recur::change(work, &id, &change)
        })
        .await
    }

    /// Ends a recurring job, there or not; its children stay.
    pub async fn unrecur(&self, id: &str, now: Option<Time>) -> Result<()> {
        let id = id.to_owned();
        self.write(recurring(&id), now, 1, move |work| {
            recur::unrecur(work, &id);
            Ok(())
        })
        .await
    }

    // ---- queues, workers, options ----

    /// Pauses a queue, so that nobody gets a job of it, or lets it go on.
    pub async fn pause(&self, queue: QueueKey, paused: bool, now: Option<Time>) -> Result<()> {
        self.write(Needs::default(), now, 1, move |work| {
            queues::pause(work, &queue, paused);
            Ok(())
        })
        .await
    }

    /// The queue is not listed any more until something is put into it. What is in it stays.
    pub async fn forget_queue(&self, queue: QueueKey, now: Option<Time>) -> Result<()> {
        self.write(Needs::default(), now, 1, move |work| {
            queues::forget(work, &queue);
            Ok(())
        })
        .await
    }

    /// The worker is not listed any more until it shows itself. Jobs that it has stay with it.
    pub async fn forget_worker(&self, worker: &str, now: Option<Time>) -> Result<()> {
        let worker = worker.to_owned();
        self.write(Needs::default(), now, 1, move |work| {
            work.forget_worker(&worker);
            Ok(())
        })
        .await
    }

    /// Sets an option to a value, which is JSON text, or forgets it (`None`), so that its default is in
    /// force again.
    pub async fn configure(
        &self,
        option: &str,
        value: Option<String>,
        now: Option<Time>,
    ) -> Result<()> {
        let option = option.to_owned();
        self.write(Needs::default(), now, 1, move |work| {
            config::configure(work, &option, value.clone())
        })
        .await
    }

    /// Forgets everything.
    pub async fn flush(&self) -> Result<()> {
        self.chore(Chore::Flush).await.map(drop)
    }

    /// Sets right those of the problems that are still there.
    pub(super) async fn set_right(
        &self,
        moment: check::Moment,
        problems: Vec<check::Problem>,
    ) -> Result<()> {
        let mend = Chore::Mend(moment, problems.into());
        self.chore(mend).await.map(drop)
    }

    async fn each<I: Send + 'static, T: Send + 'static>(
        &self,
        items: Vec<I>,
        needs: Needs,
        now: Option<Time>,
        mut verb: impl FnMut(&mut Work, &I) -> Result<T> + Send + 'static,
    ) -> Each<T> {
        self.write(needs, now, items.len(), move |work| {
            Ok(items.iter().map(|item| verb(work, item)).collect())
        })
        .await
    }
}

fn named<'a>(keys: impl IntoIterator<Item = &'a JobKey>) -> Needs {
    Needs {
        jobs: keys.into_iter().cloned().collect(),
        ..Needs::default()
    }
}

fn of(oldest: Oldest) -> Needs {
    Needs {
        oldest: Some(oldest),
        ..Needs::default()
    }
}

/// Up to so many jobs, a batch at a time, until a batch finds fewer than it might.
struct Batches {
    left: usize,
    max: usize,
    done: usize,
}

impl Batches {
    fn of(count: usize, max: usize) -> Batches {
        Batches {
            left: count,
            max,
            done: 0,
        }
    }

    /// How many the next batch is to take.
    fn next(&self) -> Option<usize> {
        (self.left > 0).then(|| self.left.min(self.max))
    }

    fn found(&mut self, found: usize) {
        let all = self.next().is_some_and(|batch| found >= batch);
        self.left = if all { self.left - found } else { 0 };
        self.done += found;
    }
}

fn recurring(id: &str) -> Needs {
    Needs {
        recurring: vec![id.to_owned()],
        ..Needs::default()
    }
}

fn needs_of_puts(jobs: &[Put]) -> Needs {
    let mut needs = Needs::default();
    for job in jobs {
        needs.jobs.extend(job.id.iter().map(JobKey::qless));
        needs.depends(job.depends.as_deref().unwrap_or_default());
    }
    needs
}
