//! Converts engine types to the view models that several pages show.

pub mod csv;
pub mod paging;
pub mod queue_refs;
pub mod workers;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::engine::{
    Engine, FailureGroup, Job, JobKey, Pause, Queue, QueueCounts, Result, State, Time, WorkerCounts,
};
use crate::ui::model::failure::GroupRow;
use crate::ui::model::job::{Entry, FailureNote, JobRow, JobTimes};
use crate::ui::model::queue::{PauseDetails, QueueRow};
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::state::{Counts, EffectiveState};
use crate::ui::model::worker::WorkerRow;
use crate::ui::present::queue_refs::{queue_of, queue_ref};

/// Maximum number of characters of a payload in a list.
pub const PREVIEW_CHARS: usize = 160;

/// All queues except deleted Jobq queues whose records still exist.
pub struct ListedQueues(Arc<Vec<QueueCounts>>);

impl ListedQueues {
    pub fn iter(&self) -> impl Iterator<Item = &QueueCounts> {
        let all = self.0.iter();
        all.filter(|queue| !is_deleted_jobq_queue(&queue.queue))
    }
}

pub async fn listed_queues(engine: &Engine) -> Result<ListedQueues> {
    Ok(ListedQueues(all_queues(engine).await?))
}

/// All queues, for a page. If there are thousands, reserves memory first.
pub async fn all_queues(engine: &Engine) -> Result<Arc<Vec<QueueCounts>>> {
    engine.reserve_page_of_queues().await?;
    engine.queues(None).await
}

fn is_deleted_jobq_queue(queue: &Queue) -> bool {
    queue.forgotten && queue.key.protocol == Protocol::Jobq
}

/// Leaves out idle queues that have been removed from the lists.
pub fn without_forgotten(rows: impl Iterator<Item = QueueRow>) -> Vec<QueueRow> {
    rows.filter(|queue| !queue.forgotten || !queue.is_idle())
        .collect()
}

/// The counts of the whole server.
pub async fn total(engine: &Engine) -> Result<Counts> {
    let queues = ListedQueues(engine.queues(None).await?);
    let counts = queues.iter().map(|queue| queue.counts);
    Ok(counts.fold(Counts::default(), Counts::plus))
}

pub fn times(job: &Job, now: Time) -> JobTimes {
    JobTimes {
        created: job.created_at.0,
        state_since: job.state_since(now).0,
        available_at: job.ready_at.0,
        expires: job.lease.as_ref().map(|lease| lease.until.0),
        history: job.events().into_iter().map(entry).collect(),
    }
}

pub fn queue_row(queue: &QueueCounts) -> QueueRow {
    QueueRow {
        queue_ref: queue_ref(&queue.queue.key),
        counts: queue.counts,
        oldest_waiting: queue.oldest_waiting.map(|time| time.0),
        paused: queue.pause.is_some(),
        pause: queue.pause.as_ref().map(pause_details).unwrap_or_default(),
        forgotten: queue.queue.forgotten,
        recurring: queue.recurring,
        last_claim: queue.claims.as_ref().map(|claims| claims.last.0),
        claimants: (queue.claims.iter())
            .flat_map(|claims| &claims.workers)
            .map(|(name, at)| (name.clone(), at.0))
            .collect(),
    }
}

/// The details of a pause.
pub fn pause_details(pause: &Pause) -> PauseDetails {
    PauseDetails {
        since: pause.since.map(|time| time.0),
        until: pause.until.map(|time| time.0),
        reason: pause.reason.clone(),
        by: pause.by.clone(),
    }
}

pub fn group_row(group: &FailureGroup) -> GroupRow {
    GroupRow {
        group: group.group.clone(),
        count: group.count,
        first: group.first.map(|time| time.0),
        last: group.last.map(|time| time.0),
        message: group.message.clone(),
        muted: None,
    }
}

pub fn worker_row(worker: &WorkerCounts) -> WorkerRow {
    WorkerRow {
        name: worker.name.clone(),
        last_seen: worker.last_seen.0,
        running: worker.jobs,
        stalled: worker.stalled,
    }
}

pub fn rows(engine: &Engine, jobs: &[Job]) -> Vec<JobRow> {
    let now = engine.now(None);
    jobs.iter().map(|job| job_row(engine, job, now)).collect()
}

pub fn job_row(engine: &Engine, job: &Job, now: Time) -> JobRow {
    let state = job.effective_state(now);
    let lease = job.lease.as_ref();
    let state_time = match state {
        EffectiveState::Waiting | EffectiveState::Scheduled => job.ready_at,
        EffectiveState::Running | EffectiveState::Stalled => {
            lease.map_or(job.since, |lease| lease.until)
        }
        EffectiveState::Depends
        | EffectiveState::Failed
        | EffectiveState::Complete
        | EffectiveState::Dead => job.since,
        EffectiveState::Record => job.updated_at.unwrap_or(job.since),
    };
    let queue_ref = queue_of(engine, job.queue);
    let preview = match queue_ref.protocol {
        Protocol::Qless | Protocol::Relay | Protocol::Jobq => preview(&job.body),
        Protocol::Lmstfy => bytes_preview(&job.body),
    };
    JobRow {
        seq: job.seq,
        id: job.key.id.clone(),
        queue_ref,
        klass: job.klass.clone(),
        state,
        priority: job.priority,
        retries: job.retries,
        remaining: job.remaining,
        tags: job.tags.clone(),
        worker: lease.map(|lease| lease.worker.clone()),
        state_time: state_time.0,
        preview,
        failure: job.failure.as_ref().map(|failure| FailureNote {
            group: failure.group.clone(),
            message: failure.message.clone(),
            worker: failure.worker.clone(),
            when: failure.at.0,
        }),
        dependency_count: job.dependencies.len(),
        expires_at: job.expires_at.map(|time| time.0),
        dead_number: dead_number(job),
    }
}

pub fn entry(event: crate::engine::Event) -> Entry {
    Entry {
        what: event.what,
        when: event.when.0,
        subject: event.subject,
        detail: event.detail,
        message: event.message,
    }
}

/// Characters of a payload that are looked at for its preview. Most payloads are not indented by thousands of spaces.
const PREVIEW_EXAMINED_MAX: usize = 10_000;

/// The beginning of a payload on one line.
pub fn preview(body: &str) -> String {
    let mut short = String::new();
    let mut space = false;
    let mut length = 0;
    for (examined, c) in body.chars().enumerate() {
        if examined >= PREVIEW_EXAMINED_MAX {
            short.push('…');
            break;
        }
        if c.is_whitespace() || c.is_control() {
            space = length > 0;
            continue;
        }
        if length >= PREVIEW_CHARS {
            short.push('…');
            break;
        }
        if std::mem::take(&mut space) {
            short.push(' ');
            length += 1;
        }
        short.push(c);
        length += 1;
    }
    short
}

/// Maximum number of bytes of a binary body in a list.
const PREVIEW_BYTES: usize = 32;

/// The beginning of a body on one line: text, or bytes in hex.
pub fn bytes_preview(base64: &str) -> String {
    // Decodes only what the preview needs: 4 base64 characters are 3 bytes, and a character has at most 4 bytes.
    let some = base64
        .get(..(PREVIEW_CHARS + 2) * 4 / 3 * 4)
        .unwrap_or(base64);
    let bytes = BASE64.decode(some).unwrap_or_default();
    let text = match str::from_utf8(&bytes) {
        Ok(text) => Some(text),
        // The cut can be within a character.
        Err(error) if error.error_len().is_none() && some.len() < base64.len() => bytes
            .get(..error.valid_up_to())
            .and_then(|whole| str::from_utf8(whole).ok()),
        Err(_) => None,
    };
    match text.filter(|text| !text.contains('\0')) {
        Some(text) => preview(text),
        None => {
            let shown = bytes.iter().take(PREVIEW_BYTES);
            let shown: Vec<String> = shown.map(|byte| format!("{byte:02x}")).collect();
            let more = if bytes.len() > PREVIEW_BYTES {
                " …"
            } else {
                ""
            };
            format!("{}{more}", shown.join(" "))
        }
    }
}

/// The number of a dead Relay job, which identifies it because new jobs can use its ID. `None` for other jobs.
pub fn dead_number(job: &Job) -> Option<i64> {
    let has_own_key = job.key == JobKey::dead_relay(job.seq, &*job.key.id);
    (job.state == State::Dead && has_own_key).then_some(job.seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_one_short_line() {
        assert_eq!(preview(" {\n  \"a\":\t1 }\n"), "{ \"a\": 1 }");
        let long = preview(&"ä".repeat(1000));
        assert_eq!(long.chars().count(), PREVIEW_CHARS + 1);
        assert!(long.ends_with('…'));
    }
}
