//! Operations: one thing that is done to many jobs. Each is a row that goes on with its batches: a batch is one
//! group, in which the verb is run on some hundred jobs and the row says how far it has come, so nothing is done
//! twice or left out whenever the server ends. `run.rs` is what goes on of its own accord, `act.rs` what is done to one
//! job, `undo.rs` how what was removed comes back.

pub mod apply;
pub mod changes;
pub mod rows;
pub mod run;
pub mod undo;

use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, QueueKey};
use crate::engine::queries::queues::Page;
use crate::engine::queries::search::{Hit, Reach};
use crate::engine::unit_of_work::{Needs, Work};
use crate::search::Search;
use crate::store::Statement;
pub use changes::Operating;
pub use rows::{COLUMNS, load, operation, tidy};
pub use run::Operator;

/// How many jobs one operation concerns at the most.
pub const JOBS_MAX: i64 = 10_000_000;

/// Of how many jobs, and of how many bytes of them, what an operation removes is kept. Where there is more nothing is.
pub const UNDO_JOBS_MAX: i64 = 100_000;
const UNDO_BYTES_MAX: i64 = 64 << 20;

/// For how long after its end an operation can be undone.
const UNDO_S: f64 = 30.0;

/// Operations that have not ended, running or waiting for their turn.
const ACTIVE_MAX: i64 = 100;

/// Jobs that are named one by one.
const LISTED_MAX: usize = 1_000;

/// How far it is counted before it is asked whether that is meant.
const COUNT_REACH: Reach = Reach {
    jobs: usize::MAX,
    looked_at: 1_000_000,
    time: std::time::Duration::from_secs(2),
};

/// Jobs that are shown of those that are counted.
const SAMPLES: usize = 3;

/// What is done to each job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum Action {
    /// Failed and dead jobs are put back to work.
    Retry,
    /// Jobs are cancelled or deleted.
    Cancel,
    /// Jobs of qless are put into the queue of that name.
    Move { queue: String },
    /// Jobs of qless get another priority.
    Priority { priority: f64 },
    /// Jobs of qless get a tag.
    Tag { tag: String },
    /// A tag is taken off jobs of qless.
    Untag { tag: String },
    /// The events of jobs of qless become public.
    Track,
    /// They are public no longer.
    Untrack,
}

impl Action {
    /// Whether it removes jobs.
    pub fn removes(&self) -> bool {
        matches!(self, Action::Cancel)
    }
}

/// To which jobs it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// All that fit the text of a search, when it is made and when it is their turn.
    Search(String),
    /// Those with these numbers ([`Job::seq`]).
    Jobs(Vec<i64>),
}

/// How far an operation is; the codes are those of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Also while it waits for its turn.
    Running = 1,
    Done = 2,
    /// Ended by somebody in the middle.
    Cancelled = 3,
    /// Ended in the middle because it could not go on.
    Failed = 4,
    Undoing = 5,
    Undone = 6,
}

impl Stage {
    const ALL: [Stage; 6] = [
        Stage::Running,
        Stage::Done,
        Stage::Cancelled,
        Stage::Failed,
        Stage::Undoing,
        Stage::Undone,
    ];

    pub fn is_active(self) -> bool {
        matches!(self, Stage::Running | Stage::Undoing)
    }
}

/// An operation as it stands in the database.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its place in the order of insertion: what was put later is not touched.
    pub id: i64,
    pub created_at: Time,
    /// Who asked for it.
    pub who: String,
    pub action: Action,
    pub subject: Subject,
    pub stage: Stage,
    /// Jobs, as they were counted when it was made; if not all could be counted, there may be more.
    pub total: i64,
    pub is_least: bool,
    /// Jobs of this number and above have been seen to.
    pub down_to: i64,
    pub done: i64,
    pub skipped: i64,
    /// How many of those it removed are there again, and how many could not be restored.
    pub restored: i64,
    pub lost: i64,
    /// What it removes is kept for a while.
    pub keeps: bool,
    pub kept_bytes: i64,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// Until when it can be undone.
    pub undo_until: Option<Time>,
    /// Why it failed.
    pub why: Option<String>,
}

impl Operation {
    /// Whether it can be undone at `now`.
    pub fn can_be_undone(&self, now: Time) -> bool {
        let is_over = !self.stage.is_active() && self.stage != Stage::Undone;
        is_over && self.undo_until.is_some_and(|until| until > now)
    }

    /// Ends it at this moment.
    fn end(&mut self, stage: Stage, now: Time) {
        self.stage = stage;
        self.ended_at = Some(now);
        let kept = self.keeps && self.done > 0;
        self.undo_until = kept.then(|| now.plus_seconds(UNDO_S));
    }
}

/// An operation that somebody asks for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub who: String,
    pub action: Action,
    pub subject: Subject,
    /// What [`Engine::count`] said of it.
    pub counted: Counted,
}

/// What an operation would concern.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub jobs: i64,
    /// Of these, to how many the action can be done, as they stand now.
    pub able: i64,
    /// What is written in them, about.
    pub bytes: i64,
    /// There may be more.
    pub is_least: bool,
    /// The newest of them.
    pub samples: Vec<Job>,
}

impl Counted {
    /// Whether what is removed of them can be kept.
    pub fn can_be_kept(&self) -> bool {
        !self.is_least && self.jobs <= UNDO_JOBS_MAX && self.bytes <= UNDO_BYTES_MAX
    }

    fn meet(&mut self, action: &Action, job: &Job, queue: &QueueKey, bytes: i64, now: Time) {
        self.jobs += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.able += i64::from(apply::is_able(action, queue.protocol, job.standing(now)));
    }
}

/// Why nothing became of a wish about operations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the operation no longer exists")]
    Missing,
    #[error("the operation has already ended")]
    Ended,
    #[error("the operation can no longer be undone")]
    TooLate,
    #[error("too many operations are running or queued; the limit is {ACTIVE_MAX}")]
    TooMany,
    #[error("too many jobs are selected; the limit is {LISTED_MAX}")]
    TooLong,
    #[error("the search is invalid: {0}")]
    Mistaken(#[from] crate::search::Mistake),
    #[error("no jobs are selected")]
    Nobody,
}

/// A job to which an operation did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// [`Job::seq`].
    pub job: i64,
    /// Where it was, and its id, if that is known.
    pub place: Option<(QueueKey, String)>,
    pub why: String,
}

impl Engine {
    /// Counts what an operation would concern: of a search up to a million jobs, for up to two seconds.
    pub async fn count(
        &self,
        action: &Action,
        subject: &Subject,
    ) -> Result<Result<Counted, Refusal>> {
        self.freshen().await?;
        let (now, places) = (self.now(None), self.places());
        let mut counted = Counted::default();
        let mut newest = Vec::new();
        let search = match subject {
            Subject::Jobs(numbers) if numbers.len() > LISTED_MAX => {
                return Ok(Err(Refusal::TooLong));
            }
            Subject::Jobs(numbers) => {
                let mut jobs = self.sized(numbers).await?;
                jobs.retain(|(job, _)| places.contains_key(&job.queue) && !job.is_expired(now));
                for (job, bytes) in &jobs {
                    let queue = places.get(&job.queue).map(|queue| &queue.key);
                    queue.inspect(|queue| counted.meet(action, job, queue, *bytes, now));
                }
                let samples = jobs.iter().take(SAMPLES).map(|(job, _)| job.seq);
                let samples: Vec<i64> = samples.collect();
                counted.samples = self.brief(&samples, &places, now).await?;
                return Ok(Ok(counted));
            }
            Subject::Search(text) => match Search::parse(text) {
                Ok(search) => search,
                Err(mistake) => return Ok(Err(mistake.into())),
            },
        };
        let mut meet = |hit: Hit<'_>| {
            counted.meet(action, hit.job, &hit.queue.key, hit.bytes, now);
            if newest.len() < SAMPLES {
                newest.push(hit.job.seq);
            }
        };
        let walk = self.walk(&search, &places, None, COUNT_REACH, now, &mut meet);
        counted.is_least = walk.await?.is_cut;
        counted.samples = self.brief(&newest, &places, now).await?;
        Ok(Ok(counted))
    }

    /// Makes an operation, which begins when it is its turn. Its id.
    pub async fn operate(&self, asked: Asked) -> Result<Result<i64, Refusal>> {
        match &asked.subject {
            Subject::Jobs(numbers) if numbers.len() > LISTED_MAX => {
                return Ok(Err(Refusal::TooLong));
            }
            Subject::Jobs(numbers) if numbers.is_empty() => return Ok(Err(Refusal::Nobody)),
            Subject::Jobs(_) => {}
            Subject::Search(text) => {
                if let Err(mistake) = Search::parse(text) {
                    return Ok(Err(mistake.into()));
                }
            }
        }
        let active = self.readers().rows(Statement::new(rows::COUNT_ACTIVE, []));
        if active.await?.first().map_or(Ok(0), |row| row.int(0))? >= ACTIVE_MAX {
            return Ok(Err(Refusal::TooMany));
        }
        let id = self.write(Needs::default(), None, 1, move |work| {
            let id = work.next_seq();
            let operation = made(id, work.now, &asked);
            work.operating.make(operation);
            Ok(id)
        });
        let id = id.await?;
        self.operator().call();
        Ok(Ok(id))
    }

    /// Ends an operation in the middle; what it has done stays.
    pub async fn cancel_operation(&self, id: i64) -> Result<Result<(), Refusal>> {
        self.change_operation(id, |operation, now| {
            if operation.stage != Stage::Running {
                return Err(Refusal::Ended);
            }
            operation.end(Stage::Cancelled, now);
            Ok(())
        })
        .await
    }

    /// Puts back what an operation has removed.
    pub async fn undo_operation(&self, id: i64) -> Result<Result<(), Refusal>> {
        let done = self.change_operation(id, |operation, now| {
            if !operation.can_be_undone(now) {
                return Err(Refusal::TooLate);
            }
            operation.stage = Stage::Undoing;
            Ok(())
        });
        let done = done.await?;
        self.operator().call();
        Ok(done)
    }

    async fn change_operation(
        &self,
        id: i64,
        change: impl Fn(&mut Operation, Time) -> Result<(), Refusal> + Send + 'static,
    ) -> Result<Result<(), Refusal>> {
        let needs = Needs {
            operation: Some(id),
            ..Needs::default()
        };
        self.write(needs, None, 1, move |work: &mut Work| {
            let now = work.now;
            let Some((operation, _)) = work.operating.get(id) else {
                return Ok(Err(Refusal::Missing));
            };
            let mut changed = operation.clone();
            let done = change(&mut changed, now);
            if done.is_ok() {
                work.operating.set(changed);
            }
            Ok(done)
        })
        .await
    }

    /// The operation with that id.
    pub async fn operation(&self, id: i64) -> Result<Option<Operation>> {
        let rows = self.readers().rows(load(&[id])).await?;
        let first = rows.first().map(operation).transpose()?;
        Ok(first.map(|(operation, _)| operation))
    }

    /// How many operations are known, and some of them, newest first.
    pub async fn operations(&self, page: Page) -> Result<(i64, Vec<Operation>)> {
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        let batch = vec![
            Statement::new(rows::COUNT, []),
            Statement::new(rows::NEWEST, [limit.into(), offset.into()]),
        ];
        let mut answers = self.readers().read(batch).await?.into_iter();
        let mut next = || answers.next().unwrap_or_default().rows;
        let total = next().first().map_or(Ok(0), |row| row.int(0))?;
        let found = next();
        let found = found.iter().map(|row| Ok(operation(row)?.0));
        Ok((total, found.collect::<Result<_>>()?))
    }

    /// The jobs to which the operation did nothing, in the order in which it met them; the first thousand are known.
    pub async fn skips(&self, id: i64, page: Page) -> Result<Vec<Skip>> {
        let args = [id, page.limit as i64, page.offset as i64];
        let skips = Statement::new(rows::SKIPS, args.map(Into::into));
        let rows = self.readers().rows(skips).await?;
        rows.iter().map(|row| Ok(rows::skip(row)?)).collect()
    }
}

/// The operation as it begins.
fn made(id: i64, now: Time, asked: &Asked) -> Operation {
    let counted = &asked.counted;
    Operation {
        id,
        created_at: now,
        who: asked.who.clone(),
        action: asked.action.clone(),
        subject: asked.subject.clone(),
        stage: Stage::Running,
        total: counted.jobs,
        is_least: counted.is_least,
        down_to: id,
        done: 0,
        skipped: 0,
        restored: 0,
        lost: 0,
        keeps: asked.action.removes() && counted.can_be_kept(),
        kept_bytes: 0,
        started_at: None,
        ended_at: None,
        undo_until: None,
        why: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_of_100000_jobs_and_64_mib_can_be_kept() {
        for (jobs, bytes, is_least, expected) in [
            (99_999, 67_108_863, false, true),
            (100_000, 67_108_864, false, true),
            (100_001, 1, false, false),
            (1, 67_108_865, false, false),
            (1, 1, true, false),
        ] {
            let counted = Counted {
                jobs,
                bytes,
                is_least,
                ..Counted::default()
            };
            assert_eq!(counted.can_be_kept(), expected, "{jobs} {bytes}");
        }
    }
}
