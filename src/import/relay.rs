//! Translates Relay's table (relay-io/relay, `relay-postgres/migrations`).

use futures::TryStreamExt;

use super::target::Target;
use super::{ImportError, NAMED_MAX, Result};
use crate::engine::{Engine, EventKind, Import, Lease, Protocol, QueueKey, State, Time, UNLIMITED};
use crate::store::{RelayRow, RelayTable};

/// Jobs that are looked up in the target at once.
const LOOKED_UP: usize = 500;

/// The number of jobs that the target already has, and some of their IDs.
///
/// # Errors
/// If the source or the target cannot be read.
pub async fn count_existing(table: &mut RelayTable, engine: &Engine) -> Result<(u64, Vec<String>)> {
    let (mut count, mut examples) = (0, Vec::new());
    let mut rows = table.rows().try_chunks(LOOKED_UP);
    while let Some(rows) = rows
        .try_next()
        .await
        .map_err(|it| ImportError::Source(it.1))?
    {
        let key = |row: RelayRow| (QueueKey::relay(row.queue), row.id);
        let keys: Vec<_> = rows.into_iter().map(key).collect();
        let found = engine.existing_jobs_in(&keys).await?;
        count += found.len() as u64;
        let room = NAMED_MAX.saturating_sub(examples.len());
        examples.extend(found.into_iter().take(room));
    }
    Ok((count, examples))
}

/// Imports all jobs.
///
/// # Errors
/// If the source cannot be read or the target cannot be written.
pub async fn import(table: &mut RelayTable, target: &mut Target<'_>) -> Result<()> {
    let mut rows = table.rows();
    while let Some(row) = rows.try_next().await.map_err(ImportError::Source)? {
        if row.is_too_long {
            let reason = "its payload or state exceeds 16 MiB";
            target.skip(Protocol::Relay, state(&row).as_str(), &row.id, reason);
            continue;
        }
        target.job(translate(row)).await?;
    }
    Ok(())
}

fn state(row: &RelayRow) -> State {
    match (row.in_flight, row.is_due) {
        (true, _) => State::Running,
        (false, true) => State::Waiting,
        (false, false) => State::Scheduled,
    }
}

fn translate(row: RelayRow) -> Import {
    let created_at = Time(row.created_at);
    let queue = QueueKey::relay(row.queue.as_str());
    let state = state(&row);
    let mut import = Import::new(queue, row.id, row.payload.as_str().into(), created_at);
    let limit = |count: Option<i64>| count.filter(|count| *count >= 0).unwrap_or(UNLIMITED);
    let job = &mut import.job;
    job.state = state;
    job.timeout_s = Some(row.timeout_s);
    job.retries = limit(row.max_retries);
    job.remaining = limit(row.retries_remaining);
    job.work_state = row.state;
    job.updated_at = Some(Time(row.updated_at));
    job.ready_at = Time(row.run_at);
    job.since = Time(row.updated_at);
    job.history
        .push(EventKind::Put, created_at, Some(&row.queue), None);
    if row.in_flight {
        let run_id = row.run_id.map(|id| id.replace('-', ""));
        job.history
            .push(EventKind::Popped, Time(row.updated_at), None, None);
        job.lease = Some(Lease {
            worker: String::new(),
            id: run_id.unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string()),
            until: Time(row.expires_at.unwrap_or(row.updated_at)),
            in_grace_period: false,
        });
    }
    import
}
