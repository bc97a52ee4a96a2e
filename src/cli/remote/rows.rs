//! The rows of lists, as JSON and as tables. Times in JSON are RFC 3339; tables show them relative to now.

use serde_json::{Value, json};

use crate::cli::now;
use crate::cli::output::Table;
use crate::time::{self, number, relative};
use crate::ui::model::job::{Entry, EventKind, FailureNote, JobRow, JobTimes, limited};
use crate::ui::model::operation::{OperationRow, OperationState};
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::recurring::RecurringRow;
use crate::ui::model::state::EffectiveState;
use crate::ui::model::worker::WorkerRow;
use crate::ui::pages::records::model::RecordRow;

/// A time relative to now; empty if there is none.
pub fn ago(at: Option<i64>) -> String {
    at.map_or_else(String::new, |at| relative(at, now()))
}

/// A time in UTC, and relative to now.
pub fn moment(at: i64) -> String {
    format!("{} ({})", time::utc_millis(at), relative(at, now()))
}

pub fn iso(at: Option<i64>) -> Option<String> {
    at.map(time::iso)
}

/// A count; empty if it is 0, so that the others stand out.
fn count(n: i64) -> String {
    if n == 0 { String::new() } else { number(n) }
}

/// The name of a queue as commands take it.
pub fn queue_name(queue: &QueueRef) -> String {
    let name = &queue.name;
    match queue.protocol {
        Protocol::Qless if crate::config::queue_name(name).is_ok_and(|it| it.name == *name) => {
            name.clone()
        }
        Protocol::Lmstfy => format!("lmstfy:{}/{name}", queue.namespace),
        protocol => format!("{}:{name}", protocol.as_str()),
    }
}

pub fn queue_json(row: &QueueRow) -> Value {
    let (queue, counts) = (&row.queue_ref, &row.counts);
    json!({
        "name": queue_name(queue), "api": queue.protocol.as_str(), "namespace": queue.namespace,
        "queue": queue.name, "paused": row.paused, "pause": pause_json(row),
        "forgotten": row.forgotten,
        "waiting": counts.waiting, "scheduled": counts.scheduled, "depends": counts.depends,
        "running": counts.running, "stalled": counts.stalled, "failed": counts.failed,
        "complete": counts.complete, "dead": counts.dead, "records": counts.records,
        "recurring": row.recurring, "oldest_waiting": iso(row.oldest_waiting),
        "last_claim": iso(row.last_claim),
    })
}

/// `paused`, with who paused the queue, when it resumes, and why; empty if it is not paused.
pub fn pause_status(row: &QueueRow) -> String {
    let details = row.pause.words(now());
    match (row.paused, details.is_empty()) {
        (false, _) => String::new(),
        (true, true) => "paused".to_owned(),
        (true, false) => format!("paused ({details})"),
    }
}

/// The details of a pause; null if the queue is not paused.
fn pause_json(row: &QueueRow) -> Value {
    let pause = &row.pause;
    match row.paused {
        false => Value::Null,
        true => json!({
            "since": iso(pause.since), "until": iso(pause.until), "reason": &*pause.reason, "by": &*pause.by,
        }),
    }
}

pub fn queue_table(rows: &[QueueRow]) -> String {
    let mut table = Table::new(&[
        "QUEUE",
        "WAITING",
        "SCHEDULED",
        "DEPENDS",
        "RUNNING",
        "STALLED",
        "FAILED",
        "DEAD",
        "RECORDS",
        "OLDEST",
        "STATUS",
    ]);
    for row in rows {
        let counts = &row.counts;
        let status = match (row.paused, row.unclaimed_since(now())) {
            (true, _) => pause_status(row),
            (false, Some(_)) => "no claims".to_owned(),
            (false, None) => String::new(),
        };
        table.row([
            queue_name(&row.queue_ref),
            count(counts.waiting),
            count(counts.scheduled),
            count(counts.depends),
            count(counts.running),
            count(counts.stalled),
            count(counts.failed),
            count(counts.dead),
            count(counts.records),
            ago(row.oldest_waiting.filter(|_| counts.waiting > 0)),
            status,
        ]);
    }
    table.render()
}

fn failure_json(failure: Option<&FailureNote>) -> Value {
    failure.map_or(Value::Null, |it| {
        json!({ "group": it.group, "message": it.message, "worker": it.worker, "at": time::iso(it.when) })
    })
}

pub fn job_json(row: &JobRow) -> Value {
    let queue = &row.queue_ref;
    json!({
        "id": row.id, "api": queue.protocol.as_str(), "namespace": queue.namespace, "queue": queue.name,
        "state": row.listed_state().as_str(), "class": row.klass, "priority": row.priority,
        "retries": limited(row.retries), "retries_left": limited(row.remaining).map(|n| n.max(0)),
        "tags": row.tags, "worker": row.worker, "state_time": time::iso(row.state_time),
        "preview": row.preview, "failure": failure_json(row.failure.as_ref()),
        "dependencies": row.dependency_count, "expires": iso(row.expires_at), "dead_number": row.dead_number,
    })
}

/// What a person wants to know first about a job in its state.
fn job_detail(row: &JobRow) -> String {
    match (row.state, &row.failure, &row.worker) {
        (EffectiveState::Failed, Some(failure), _) => {
            format!("{}: {}", failure.group, failure.message)
        }
        (EffectiveState::Running | EffectiveState::Stalled, _, Some(worker)) => {
            format!("by {worker}")
        }
        _ => row.preview.clone(),
    }
}

pub fn job_table(rows: &[JobRow]) -> String {
    let mut table = Table::new(&[
        "ID",
        "QUEUE",
        "STATE",
        "TIME",
        "RETRIES LEFT",
        "TAGS",
        "DETAIL",
    ]);
    for row in rows {
        let retries = match row.queue_ref.protocol {
            Protocol::Jobq => String::new(),
            _ => row.retries_left(),
        };
        table.row([
            row.id.clone(),
            queue_name(&row.queue_ref),
            row.listed_state().to_string(),
            relative(row.state_time, now()),
            retries,
            row.tags.join(","),
            job_detail(row),
        ]);
    }
    table.render()
}

/// The records of a Jobq queue.
pub fn record_table(rows: &[RecordRow]) -> String {
    let mut table = Table::new(&["ID", "STATE", "MODIFIED", "PAYLOAD"]);
    for row in rows {
        table.row([
            row.id.to_string(),
            row.state.clone().unwrap_or_default(),
            ago(Some(row.modified)),
            row.preview.clone(),
        ]);
    }
    table.render()
}

pub fn worker_json(row: &WorkerRow) -> Value {
    json!({
        "name": row.name, "last_seen": time::iso(row.last_seen), "running": row.running, "stalled": row.stalled,
    })
}

pub fn worker_table(rows: &[WorkerRow]) -> String {
    let mut table = Table::new(&["WORKER", "LAST SEEN", "RUNNING", "STALLED"]);
    for row in rows {
        let seen = relative(row.last_seen, now());
        table.row([
            row.name.clone(),
            seen,
            count(row.running),
            count(row.stalled),
        ]);
    }
    table.render()
}

pub fn recurring_json(row: &RecurringRow) -> Value {
    let has_cron = !row.cron.is_empty();
    let interval = (!has_cron).then_some(row.interval as f64 / 1e6);
    let (cron, zone) = (has_cron.then_some(&row.cron), has_cron.then_some(&row.zone));
    let next = (row.next_due != i64::MAX).then(|| time::iso(row.next_due));
    json!({
        "id": row.id, "queue": row.queue, "paused": row.queue_paused, "class": row.klass,
        "interval_s": interval, "cron": cron, "zone": zone, "recurring_paused": row.is_paused,
        "next": next, "jobs": row.children,
        "backlog": row.backlog, "priority": row.priority, "retries": row.retries, "tags": row.tags,
    })
}

pub fn recurring_table(rows: &[RecurringRow]) -> String {
    let mut table = Table::new(&["ID", "QUEUE", "SCHEDULE", "NEXT", "JOBS", "STATUS"]);
    for row in rows {
        table.row([
            row.id.clone(),
            row.queue.clone(),
            row.schedule(),
            match row.next_due {
                i64::MAX => String::new(),
                next => relative(next, now()),
            },
            number(row.children),
            match (row.is_paused, row.queue_paused) {
                (true, _) => "paused".to_owned(),
                (false, true) => "queue paused".to_owned(),
                (false, false) => String::new(),
            },
        ]);
    }
    table.render()
}

fn phase(row: &OperationRow) -> &'static str {
    match row.state {
        OperationState::Running if row.started.is_none() => "waiting",
        state => state.as_str(),
    }
}

/// Whether the operation makes no more changes.
pub fn has_ended(row: &OperationRow) -> bool {
    !row.state.is_active()
}

pub fn operation_json(row: &OperationRow) -> Value {
    json!({
        "id": row.id, "user": row.who, "action": row.action.as_str(), "argument": row.request.arg,
        "search": row.request.all.then_some(&row.request.q), "phase": phase(row), "total": row.total,
        "total_is_minimum": row.is_minimum, "done": row.done, "skipped": row.skipped,
        "restored": row.restored, "created": time::iso(row.created), "started": iso(row.started),
        "ended": iso(row.ended), "undo_until": iso(row.undo_until), "error": row.error,
    })
}

pub fn operation_table(rows: &[OperationRow]) -> String {
    let mut table = Table::new(&[
        "ID", "ACTION", "STATE", "APPLIED", "SKIPPED", "TOTAL", "CREATED", "USER", "JOBS",
    ]);
    for row in rows {
        let jobs = if row.request.all {
            row.request.q.clone()
        } else {
            "selected".to_owned()
        };
        table.row([
            row.id.to_string(),
            format!("{} {}", row.action.as_str(), row.request.arg)
                .trim_end()
                .to_owned(),
            phase(row).to_owned(),
            number(row.done),
            number(row.skipped),
            number(row.total),
            relative(row.created, now()),
            row.who.clone(),
            jobs,
        ]);
    }
    table.render()
}

fn event_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Put => "put",
        EventKind::Popped => "claimed",
        EventKind::TimedOut => "lease ended",
        EventKind::Retried => "retried",
        EventKind::Failed => "failed",
        EventKind::Done => "completed",
        EventKind::DeadLettered => "dead-lettered",
        EventKind::Respawned => "respawned",
        EventKind::Note => "note",
        EventKind::Created => "created",
        EventKind::Advanced => "state changed",
        EventKind::Event => "event",
    }
}

fn entry_json(entry: &Entry) -> Value {
    json!({
        "event": event_name(entry.what), "at": time::iso(entry.when), "subject": entry.subject,
        "detail": entry.detail, "message": entry.message,
    })
}

pub fn history_json(history: &[Entry]) -> Value {
    history.iter().map(entry_json).collect()
}

pub fn times_json(times: &JobTimes) -> Value {
    json!({
        "created": time::iso(times.created), "state_since": time::iso(times.state_since),
        "available": time::iso(times.available_at), "lease_expires": iso(times.expires),
        "history": history_json(&times.history),
    })
}

pub fn history_table(history: &[Entry]) -> String {
    let mut table = Table::new(&["TIME", "EVENT", "SUBJECT", "DETAIL"]);
    for entry in history {
        let detail = [entry.detail.as_deref(), entry.message.as_deref()];
        let detail: Vec<&str> = detail.into_iter().flatten().collect();
        table.row([
            time::utc_millis(entry.when),
            event_name(entry.what).to_owned(),
            entry.subject.clone().unwrap_or_default(),
            detail.join(": "),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::present::queue_refs::queue_ref;

    #[test]
    fn the_name_of_a_queue_can_be_passed_to_other_commands() {
        for queue in [
            QueueRef::qless("mail"),
            QueueRef::qless("relay:x"),
            QueueRef::qless("lmstfy:"),
            QueueRef::qless("a/b:c"),
            QueueRef::lmstfy("shop", "a_b"),
            QueueRef::relay(""),
            QueueRef::jobq("a:b"),
        ] {
            let name = queue_name(&queue);
            let parsed = crate::config::queue_name(&name).unwrap();
            assert_eq!(queue_ref(&parsed), queue, "{name}");
        }
    }
}
