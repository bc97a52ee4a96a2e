//! Bulk operations: count, start, cancel, undo.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::operations::rows;
use crate::engine::operations::{
    ACTIVE_MAX, Action, COUNT_REACH, LISTED_MAX, NewOperation, Operation, OperationError,
    OperationEstimate, SAMPLES, Stage, Subject,
};
use crate::engine::queries::search::Hit;
use crate::engine::unit_of_work::Needs;
use crate::search::Search;
use crate::store::Statement;

impl Engine {
    /// Counts the jobs an operation would apply to. A search counts up to 1,000,000 jobs, for up to 2 s.
    pub async fn estimate_operation(
        &self,
        action: &Action,
        subject: &Subject,
    ) -> Result<Result<OperationEstimate, OperationError>> {
        self.refresh_cache().await?;
        let (now, places) = (self.now(None), self.visible_queues());
        let mut counted = OperationEstimate::default();
        let mut newest = Vec::new();
        let search = match subject {
            Subject::Jobs(numbers) if numbers.len() > LISTED_MAX => {
                return Ok(Err(OperationError::TooLong));
            }
            Subject::Jobs(numbers) => {
                let mut jobs = self.jobs_with_sizes(numbers).await?;
                jobs.retain(|(job, _)| places.contains_key(&job.queue) && !job.is_expired(now));
                for (job, bytes) in &jobs {
                    let queue = places.get(&job.queue).map(|queue| &queue.key);
                    queue.inspect(|queue| counted.meet(action, job, queue, *bytes, now));
                }
                let samples = jobs.iter().take(SAMPLES).map(|(job, _)| job.seq);
                let samples: Vec<i64> = samples.collect();
                counted.samples = self.job_summaries(&samples, &places, now).await?;
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
        counted.samples = self.job_summaries(&newest, &places, now).await?;
        Ok(Ok(counted))
    }

    /// Creates an operation and returns its ID. It runs in the background, with up to three others at a time.
    pub async fn start_operation(
        &self,
        asked: NewOperation,
    ) -> Result<Result<i64, OperationError>> {
        match &asked.subject {
            Subject::Jobs(numbers) if numbers.len() > LISTED_MAX => {
                return Ok(Err(OperationError::TooLong));
            }
            Subject::Jobs(numbers) if numbers.is_empty() => return Ok(Err(OperationError::Nobody)),
            Subject::Jobs(_) => {}
            Subject::Search(text) => {
                if let Err(mistake) = Search::parse(text) {
                    return Ok(Err(mistake.into()));
                }
            }
        }
        let active = self.readers().rows(Statement::new(rows::COUNT_ACTIVE, []));
        if active.await?.first().map_or(Ok(0), |row| row.int(0))? >= ACTIVE_MAX {
            return Ok(Err(OperationError::TooMany));
        }
        let id = self.write(Needs::default(), None, 1, move |work| {
            let id = work.next_seq();
            let operation = made(id, work.now, &asked);
            work.operations.add(operation);
            Ok(id)
        });
        let id = id.await?;
        self.operation_runner().wake();
        Ok(Ok(id))
    }

    /// Stops a running operation. Changes made so far remain.
    pub async fn cancel_operation(&self, id: i64) -> Result<Result<(), OperationError>> {
        self.change_operation(id, |operation, now| {
            if operation.stage != Stage::Running {
                return Err(OperationError::Ended);
            }
            operation.end(Stage::Cancelled, now);
            Ok(())
        })
        .await
    }

    /// Restores the jobs that an operation has removed.
    pub async fn undo_operation(&self, id: i64) -> Result<Result<(), OperationError>> {
        let done = self.change_operation(id, |operation, now| {
            if !operation.can_be_undone(now) {
                return Err(OperationError::TooLate);
            }
            operation.stage = Stage::Undoing;
            Ok(())
        });
        let done = done.await?;
        self.operation_runner().wake();
        Ok(done)
    }
}

/// The operation in its initial state.
fn made(id: i64, now: Time, asked: &NewOperation) -> Operation {
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
