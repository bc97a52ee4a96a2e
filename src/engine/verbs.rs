//! The verbs that change something. Each returns after the commit.
//!
//! A verb on several items does one after the other, each for itself, and gives a result for each.

pub mod admin;
pub mod batches;
pub mod claim;
pub mod jobq;
pub mod lmstfy;
pub mod qless;
pub mod relay;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::consistency;
use crate::engine::error::Result;
use crate::engine::maintenance::Chore;
use crate::engine::model::config;
use crate::engine::model::job::{Job, JobKey, QueueKey, State};
use crate::engine::model::queue;
use crate::engine::model::recurring::{self, Change, Recur, Recurring};
use crate::engine::unit_of_work::{Needs, Oldest, Wanted, Work};
use crate::engine::verbs::qless::complete::{self, Fail, Next, Retry};
use crate::engine::verbs::qless::depend::{self, Depend};
use crate::engine::verbs::qless::heartbeat::{self, Holder};
use crate::engine::verbs::qless::put::{self, Put};
use crate::engine::verbs::qless::tag;
use crate::engine::verbs::qless::track;
use crate::engine::verbs::qless::unfail;
use batches::{Batches, EACH_MAX, MOVE_BATCH};
pub use relay::Revived;

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
        self.each(jobs, now, need_of_put, move |work, job| {
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
        self.each(jobs, now, need_of_put, move |work, job| {
            put::requeue(work, &queue, job, &client)
        })
        .await
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
        let need = |needs: &mut Needs, (key, body): &(JobKey, Option<String>)| {
            needs.job(key);
            needs.bytes += body.as_ref().map_or(0, String::len);
        };
        self.each(jobs, now, need, move |work, (key, body)| {
            heartbeat::heartbeat(work, key, &holder, body.as_deref())
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
        let need = |needs: &mut Needs, (key, body, next): &(JobKey, String, Option<Next>)| {
            needs.job(key);
            needs.bytes += body.len();
            if let Some(next) = next {
                needs.depends(&next.depends);
            }
        };
        self.each(jobs, now, need, move |work, (key, body, next)| {
            complete::complete(work, key, &holder, body, next.as_ref())
        })
        .await
    }

    /// Fails jobs.
    pub async fn fail(&self, jobs: Vec<Fail>, holder: Holder, now: Option<Time>) -> Each<()> {
        let need = |needs: &mut Needs, job: &Fail| {
            needs.job(&job.key);
            needs.bytes += job.message.len() + job.body.as_ref().map_or(0, String::len);
        };
        self.each(jobs, now, need, move |work, job| {
            complete::fail(work, &holder, job)
        })
        .await
    }

    /// Gives jobs back to be tried again. Per job, the retries left; negative if it was failed instead.
    pub async fn retry(&self, jobs: Vec<Retry>, holder: Holder, now: Option<Time>) -> Each<i64> {
        let need = |needs: &mut Needs, job: &Retry| {
            needs.job(&job.key);
            needs.bytes += job.reason.as_ref().map_or(0, |(_, message)| message.len());
        };
        self.each(jobs, now, need, move |work, job| {
            complete::retry(work, &holder, job)
        })
        .await
    }

    // ---- what anybody may do with a job ----

    /// Takes jobs from their workers; each is first in line for another.
    pub async fn time_out(&self, keys: Vec<JobKey>, now: Option<Time>) -> Each<()> {
        self.each(keys, now, Needs::job, heartbeat::time_out).await
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
                Ok(unfail::unfail(work, &keys, queue.as_ref()))
            };
            batches.found(self.write(of(oldest), now, batch, verb).await?);
        }
        Ok(batches.done)
    }

    /// Puts one failed job back to work in its own queue.
    pub async fn unfail_one(&self, key: JobKey, now: Option<Time>) -> Result<()> {
        self.write(named([&key]), now, 1, move |work| {
            unfail::unfail_one(work, &key)
        })
        .await
    }

    /// Moves a job, whatever its state, to `queue`, where it is put anew with what it has.
    pub async fn relocate(&self, key: JobKey, queue: QueueKey, now: Option<Time>) -> Result<()> {
        self.write(named([&key]), now, 1, move |work| {
            unfail::relocate(work, &key, &queue)
        })
        .await
    }

    /// Gives jobs other priorities.
    pub async fn prioritize(&self, jobs: Vec<(JobKey, f64)>, now: Option<Time>) -> Each<()> {
        let need = |needs: &mut Needs, (key, _): &(JobKey, f64)| needs.job(key);
        self.each(jobs, now, need, |work, (key, priority)| {
            unfail::prioritize(work, key, *priority)
        })
        .await
    }

    /// Changes what jobs wait for.
    pub async fn depend(&self, jobs: Vec<(JobKey, Depend)>, now: Option<Time>) -> Each<()> {
        let need = |needs: &mut Needs, (key, change): &(JobKey, Depend)| {
            needs.job(key);
            match change {
                Depend::On(ids) => needs.depends(ids),
                Depend::Off(ids) => needs.links += ids.len(),
                Depend::OffAll => {}
            }
        };
        self.each(jobs, now, need, |work, (key, change)| {
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
        self.each(jobs, now, need_of_tagged, |work, (key, tags)| {
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
        self.each(jobs, now, need_of_tagged, |work, (key, tags)| {
            tag::untag(work, key, tags)
        })
        .await
    }

    /// Makes the events of jobs public, and tags them.
    pub async fn track(&self, jobs: Vec<(JobKey, Vec<String>)>, now: Option<Time>) -> Each<()> {
        self.each(jobs, now, need_of_tagged, |work, (key, tags)| {
            track::track(work, key, tags)
        })
        .await
    }

    /// Tracks jobs, there or not, no longer.
    pub async fn untrack(&self, keys: Vec<JobKey>, now: Option<Time>) -> Each<()> {
        self.each(
            keys,
            now,
            |_, _| {},
            |work, key| {
                track::untrack(work, key);
                Ok(())
            },
        )
        .await
    }

    /// Adds a word to the histories of jobs: a message, and the JSON text of an object with more.
    pub async fn note(
        &self,
        notes: Vec<(JobKey, String, Option<String>)>,
        now: Option<Time>,
    ) -> Each<()> {
        let need = |needs: &mut Needs, (key, message, data): &(JobKey, String, Option<String>)| {
            needs.job(key);
            needs.bytes += message.len() + data.as_ref().map_or(0, String::len);
        };
        self.each(notes, now, need, |work, (key, message, data)| {
            unfail::note(work, key, message, data.as_deref())
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
        let need = |needs: &mut Needs, job: &Recur| {
            needs.recurring.extend(job.id.clone());
            needs.tags(&job.tags);
            needs.bytes += job.body.len();
            needs.adds = true;
        };
        self.each(jobs, now, need, move |work, job| {
            recurring::recur(work, &queue, job)
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
        let mut needs = recurring(&id);
        needs.bytes = change.body.as_ref().map_or(0, String::len);
        needs.tags(&change.tag);
        needs.tags(&change.untag);
        self.write(needs, now, 1, move |work| {
            recurring::change(work, &id, &change)
        })
        .await
    }

    /// Ends a recurring job, there or not; its children stay.
    pub async fn unrecur(&self, id: &str, now: Option<Time>) -> Result<()> {
        let id = id.to_owned();
        self.write(recurring(&id), now, 1, move |work| {
            recurring::unrecur(work, &id);
            Ok(())
        })
        .await
    }

    // ---- queues, workers, options ----

    /// Pauses a queue, so that nobody gets a job of it, or lets it go on.
    pub async fn pause(&self, queue: QueueKey, paused: bool, now: Option<Time>) -> Result<()> {
        self.write(Needs::default(), now, 1, move |work| {
            queue::pause(work, &queue, paused);
            Ok(())
        })
        .await
    }

    /// The queue is not listed any more until something is put into it. What is in it stays.
    pub async fn forget_queue(&self, queue: QueueKey, now: Option<Time>) -> Result<()> {
        self.write(Needs::default(), now, 1, move |work| {
            queue::forget(work, &queue);
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
    pub(in crate::engine) async fn set_right(
        &self,
        moment: consistency::Moment,
        problems: Vec<consistency::Problem>,
    ) -> Result<()> {
        let mend = Chore::Mend(moment, problems.into());
        self.chore(mend).await.map(drop)
    }

    /// Does something to each of the items, in order. Many go in several transactions, so that other requests come in
    /// between; if one of those fails after others have been committed, that is the result of its items and of the
    /// rest.
    async fn each<I: Send + 'static, T: Send + 'static>(
        &self,
        items: Vec<I>,
        now: Option<Time>,
        need: impl Fn(&mut Needs, &I),
        verb: impl FnMut(&mut Work, &I) -> Result<T> + Clone + Send + 'static,
    ) -> Each<T> {
        let mut results = Vec::with_capacity(items.len());
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            let (mut needs, mut some) = (Needs::default(), Vec::new());
            while let Some(item) =
                items.next_if(|_| some.len() < EACH_MAX && batches::has_room(&needs))
            {
                need(&mut needs, &item);
                some.push(item);
            }
            let (count, mut verb) = (some.len(), verb.clone());
            let verbs = move |work: &mut Work| {
                let each = some.iter().map(|item| verb(work, item));
                Ok(each.collect::<Vec<_>>())
            };
            match self.write(needs, now, count, verbs).await {
                Ok(done) => results.extend(done),
                Err(error) if results.is_empty() => return Err(error),
                Err(error) => {
                    let left = count + items.by_ref().count();
                    results.extend((0..left).map(|_| Err(error.clone())));
                }
            }
        }
        Ok(results)
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

fn recurring(id: &str) -> Needs {
    Needs {
        recurring: vec![id.to_owned()],
        ..Needs::default()
    }
}

fn need_of_put(needs: &mut Needs, job: &Put) {
    needs.jobs.extend(job.id.iter().map(JobKey::qless));
    needs.depends(job.depends.as_deref().unwrap_or_default());
    needs.tags(job.tags.as_deref().unwrap_or_default());
    needs.bytes += job.body.len();
    needs.adds = true;
}

fn need_of_tagged(needs: &mut Needs, (key, tags): &(JobKey, Vec<String>)) {
    needs.job(key);
    needs.tags(tags);
}
