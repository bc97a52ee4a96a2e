//! The dead letter: where a job goes whose last try was lost, and how it comes back.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::What;
use crate::engine::model::job::{FOR_EVER, Job, JobKey, LMSTFY_SCOPE, QueueId, QueueKey, State};
use crate::engine::model::job_rows::{self, job_columns};
use crate::engine::unit_of_work::Work;
use crate::engine::verbs::lmstfy::publish::ends_after;
use crate::store::{Row, Statement};

/// A queue's dead letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetter {
    pub size: i64,
    /// The id of the job that has been there longest.
    pub head: Option<String>,
}

/// Takes lost leases away, before jobs of the queue are given to anybody: what has tries left waits among the
/// others, since its lease ended.
pub fn lapse_lost(work: &mut Work, queue: QueueId) {
    let mut back = Vec::new();
    while let Some(key) = work.next_lost(queue) {
        if lapse(work, &key) {
            back.push(key);
        }
    }
    work.line_up(queue, back);
}

/// Takes a lost lease away. A job with tries left waits again: by lmstfy's rules since the lease ended, by Relay's
/// where it was in line. One without tries goes to the dead letter, where it stays. One whose time to live ended
/// before is gone. Whether it waits.
pub fn lapse(work: &mut Work, key: &JobKey) -> bool {
    let now = work.now;
    let Some(lease) = work.job_mut(key).and_then(|job| job.lease.take()) else {
        return false;
    };
    let Some(job) = work.job_mut(key) else {
        return false;
    };
    if job.is_expired(lease.until) {
        work.remove(key);
        return false;
    }
    job.history.push(What::TimedOut, lease.until, None, None);
    if job.remaining != FOR_EVER {
        job.remaining -= 1;
    }
    let (queue, waits) = (job.queue, job.remaining >= 0);
    if waits {
        job.state = State::Waiting;
        job.since = lease.until;
        if key.scope == LMSTFY_SCOPE {
            job.ready_at = lease.until;
        }
    } else {
        die(work, key, lease.until);
        work.tally.died(queue, now);
    }
    work.tally.lost(queue, now);
    waits
}

/// Puts a job into the dead letter. By Relay's rules it is gone, so another may have its key.
fn die(work: &mut Work, key: &JobKey, at: Time) {
    let Some(job) = work.job_mut(key) else { return };
    job.history.push(What::Died, at, None, None);
    job.state = State::Dead;
    job.since = at;
    job.expires_at = None;
    if key.scope == LMSTFY_SCOPE {
        return;
    }
    let job = job.clone();
    work.remove(key);
    let seq = work.next_seq();
    work.insert(Job {
        seq,
        key: JobKey::of_the_dead(seq, &*key.id),
        ..job
    });
}

/// Takes a job out of the dead letter: it waits behind all others, and those that came out before it, for one try.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::NotDead`].
pub fn respawn(work: &mut Work, key: &JobKey, ttl_s: u32) -> Result<()> {
    let (now, expires_at) = (work.now, ends_after(work, ttl_s));
    let place = work.tick();
    let id = || key.id.clone();
    let job = work
        .job_mut(key)
        .ok_or_else(|| Error::NoSuchJob { id: id() })?;
    if job.state != State::Dead {
        return Err(Error::NotDead {
            id: id(),
            state: job.standing(now),
        });
    }
    job.history.push(What::Respawned, now, None, None);
    job.state = State::Waiting;
    job.ready_at = place;
    job.since = now;
    job.retries = 0;
    job.remaining = 0;
    job.expires_at = expires_at;
    let queue = job.queue;
    work.tally.put(queue, now);
    Ok(())
}

/// Whether the job is there, and in this queue.
pub fn is_in(work: &Work, queue: &QueueKey, key: &JobKey) -> bool {
    let queue = work.queue(queue);
    let job = work.job(key);
    job.is_some_and(|job| queue.is_some_and(|queue| queue.id == job.queue))
}

/// Deletes a job if it is in the dead letter of this queue. Whether it was.
pub fn bury(work: &mut Work, queue: &QueueKey, key: &JobKey) -> bool {
    let is_dead = work.job(key).is_some_and(|job| job.state == State::Dead);
    let found = is_dead && is_in(work, queue, key);
    if found {
        work.remove(key);
    }
    found
}

impl Engine {
    /// The jobs with these numbers, as far as they are in the queue's dead letter, oldest first.
    pub async fn dead_jobs(&self, queue: &QueueKey, seqs: &[i64]) -> Result<Vec<Job>> {
        self.freshen().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(Vec::new());
        };
        let seqs: Vec<(i64,)> = seqs.iter().map(|seq| (*seq,)).collect();
        let found = Statement::of_rows(DEAD_BY_SEQ, &seqs).with(queue.id);
        let rows = self.readers().rows(found).await?;
        let jobs: Result<Vec<Job>> = rows.iter().map(|row| Ok(job_rows::job(row)?.0)).collect();
        let mut jobs = jobs?;
        jobs.sort_by_key(|job| (job.since, job.seq));
        Ok(jobs)
    }

    /// The keys of up to `count` jobs of a dead letter, oldest first, of those that came to it until a moment and
    /// stand after a place in it; and the place of the last of them.
    pub(in crate::engine) async fn dead_keys(
        &self,
        queue: &QueueKey,
        after: Option<(i64, i64)>,
        until: Time,
        count: usize,
    ) -> Result<(Vec<JobKey>, Option<(i64, i64)>)> {
        self.freshen().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok((Vec::new(), None));
        };
        let (since, seq) = after.unwrap_or((i64::MIN, i64::MIN));
        let args = [queue.id, until.0, since, seq, count as i64];
        let found = Statement::new(DEAD_KEYS, args.map(Into::into));
        let rows = self.readers().rows(found).await?;
        let key = |row: &Row| {
            Ok(JobKey {
                scope: row.int(2)?,
                id: row.text(3)?,
            })
        };
        let place = |row: &Row| Ok((row.int(0)?, row.int(1)?));
        let keys: Result<Vec<JobKey>> = rows.iter().map(key).collect();
        let last: Result<Option<(i64, i64)>> = rows.last().map(place).transpose();
        Ok((keys?, last?))
    }

    /// What the dead letter of a queue has.
    pub async fn dead_letter(&self, queue: &QueueKey) -> Result<DeadLetter> {
        self.freshen().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(DeadLetter::default());
        };
        let batch = [COUNT, HEAD].map(|sql| Statement::new(sql, [queue.id.into()]));
        let mut answers = self.readers().read(batch.into()).await?.into_iter();
        let mut rows = || answers.next().unwrap_or_default().rows;
        let size = rows().first().map_or(Ok(0), |row| row.int(0))?;
        let head = rows().first().map(|row| row.text(0)).transpose()?;
        Ok(DeadLetter { size, head })
    }
}

const DEAD_BY_SEQ: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0) AND j.queue = $2 AND j.state = 8"
);

const DEAD_KEYS: &str = "
SELECT since, seq, scope, id FROM jobs
WHERE queue = $1 AND state = 8 AND since <= $2 AND (since, seq) > ($3, $4) ORDER BY since, seq LIMIT $5 + 0";

const COUNT: &str = "
SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM tallies WHERE kind = 0 AND queue = $1 AND slot = 8";

const HEAD: &str = "SELECT id FROM jobs WHERE queue = $1 AND state = 8 ORDER BY since, seq LIMIT 1";
