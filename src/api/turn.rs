//! From the engine's verbs and types to views.

use std::cmp::Reverse;

use crate::engine::{
    Counts, EffectiveState, Engine, EventKind, FailureGroup, Job, JobKey, Page, Queue, QueueCounts,
    Result, Time, WorkerCounts,
};

use super::read::PAGE_JOBS;
use super::views::{
    Api, Entry, FailureNote, GroupRow, Happening, JobRow, JobView, Life, Origin, OverviewView,
    Place, QueueRow, QueueView, Relative, Relatives, Stand, Tally, WorkerRow, WorkerView,
};
use places::{key, place, place_of, queue_names};

mod about;
mod audit;
mod check;
mod dead;
mod deeds;
mod failing;
mod find;
mod graph;
mod jobq;
mod lmstfy;
mod marks;
mod namespaces;
mod operations;
mod places;
mod put;
mod recurring;
mod relay;
mod scheduled;
mod search;
mod searches;
mod series;
mod settings;
mod stats;

pub use about::about;
pub use audit::{Target, audit, audit_csv, audit_export, audit_json, audited_action};
pub use check::{check, mend};
pub use dead::{dead, delete_dead, delete_dead_jobs, delete_job, destroy, respawn, respawn_jobs};
pub use deeds::{
    cancel, forget_queue, forget_worker, note, pause, prioritize, relocate, tag, time_out, track,
    undepend, undepend_all, untag, untrack,
};
pub use failing::{all_failures, failing};
pub use find::find;
pub use jobq::{change_record, create_record, expunge, make_queue, record, records};
pub use lmstfy::{body, lmstfy_job};
pub use marks::{tagged, tags, tracked};
pub use namespaces::{create_token, namespace, namespaces, revoke_token};
pub use operations::{confirm, operate, operation, operations, stop, undo};
pub use put::{new_job, put};
pub use recurring::{change_recurring, recur, recurring, recurrings, unrecur};
pub use relay::{dead_relay_job, relay_job, revive, revive_job, revive_jobs};
pub use scheduled::scheduled;
pub use search::search;
pub use searches::{save_search, searches};
pub use series::{range, recent, sparks};
pub use settings::{config, set_option, set_queue_option, unset_option};
pub use stats::stats;

/// Characters of a payload that a list shows.
const GLIMPSE_CHARS: usize = 160;

/// Names of queues that a form suggests.
const QUEUES_SUGGESTED: usize = 200;

/// Dead letters that the overview names.
const DEAD_NAMED: usize = 3;

/// Jobs before or after a job that its page lists.
const RELATIVES_SHOWN: usize = 50;

pub async fn overview(engine: &Engine) -> Result<OverviewView> {
    let (queues, groups, workers, recent) = futures::try_join!(
        there(engine),
        failures(engine),
        workers(engine),
        recent(engine)
    )?;
    let letters: Vec<_> = queues
        .iter()
        .filter(|queue| queue.counts.dead > 0)
        .cloned()
        .collect();
    Ok(OverviewView {
        totals: totals(&queues),
        queues: listed(queues.iter().map(queue_row)),
        groups,
        workers,
        dead_letters: letters.len(),
        dead: dead::rows(engine, letters, 0, DEAD_NAMED).await?,
        recent,
    })
}

pub async fn queues(engine: &Engine) -> Result<Vec<QueueRow>> {
    Ok(listed(there(engine).await?.iter().map(queue_row)))
}

/// All queues, but for those of Jobq that have been deleted, and only wait for their records to go.
async fn there(engine: &Engine) -> Result<Vec<QueueCounts>> {
    let mut queues = engine.queues(None).await?;
    queues.retain(|queue| !is_expunged(&queue.queue));
    Ok(queues)
}

fn is_expunged(queue: &Queue) -> bool {
    queue.forgotten && place(&queue.key).api == Api::Jobq
}

/// A queue that was forgotten is listed only as long as there is something to see to in it.
fn listed(rows: impl Iterator<Item = QueueRow>) -> Vec<QueueRow> {
    rows.filter(|queue| !queue.forgotten || !queue.is_idle())
        .collect()
}

/// The jobs of each API that has queues.
fn totals(queues: &[QueueCounts]) -> Vec<(Api, Tally)> {
    let total = |api: Api| {
        let mut of_api = queues
            .iter()
            .filter(|queue| place(&queue.queue.key).api == api)
            .peekable();
        of_api.peek()?;
        Some((
            api,
            of_api.map(tally_of).fold(Tally::default(), Tally::plus),
        ))
    };
    Api::ALL.into_iter().filter_map(total).collect()
}

/// The jobs of the whole server.
pub async fn total(engine: &Engine) -> Result<Tally> {
    Ok(sum(&there(engine).await?))
}

fn sum(queues: &[QueueCounts]) -> Tally {
    queues
        .iter()
        .map(tally_of)
        .fold(Tally::default(), Tally::plus)
}

fn tally_of(queue: &QueueCounts) -> Tally {
    tally(&queue.counts)
}

pub async fn queue(
    engine: &Engine,
    place: &Place,
    state: &str,
    offset: usize,
) -> Result<Option<QueueView>> {
    let key = key(place);
    let found = engine.queue(&key, None).await?;
    // Records are listed by their states.
    let Some(queue) = found.filter(|_| place.api != Api::Jobq) else {
        return Ok(None);
    };
    let queue = queue_row(&queue);
    let Some(stand) = queue.stands().find(|stand| stand.as_str() == state) else {
        return Ok(None);
    };
    let page = Page {
        offset,
        limit: PAGE_JOBS,
    };
    let jobs = engine.list_jobs(standing(stand), Some(&key), page, None);
    let jobs = jobs.await?;
    Ok(Some(QueueView {
        queue,
        stand,
        jobs: rows(engine, &jobs),
    }))
}

pub async fn job(engine: &Engine, id: &str) -> Result<Option<JobView>> {
    let now = engine.now(None);
    let Some(job) = engine.job(&JobKey::qless(id)).await? else {
        return Ok(None);
    };
    let origin = match &job.spawned_from {
        Some(id) => Some(Origin {
            id: id.clone(),
            lives: engine.recurring(id).await?.is_some(),
        }),
        None => None,
    };
    Ok(Some(JobView {
        graph: graph::graph(engine, &job).await?,
        row: job_row(engine, &job, now),
        life: life(&job),
        body: job.body.into(),
        dependencies: relatives(engine, &job.dependencies).await?,
        dependents: relatives(engine, &job.dependents).await?,
        tracked: engine.known_tracked().contains(id),
        origin,
    }))
}

fn life(job: &Job) -> Life {
    Life {
        created: job.created_at.0,
        since: job.since.0,
        ready: job.ready_at.0,
        expires: job.lease.as_ref().map(|lease| lease.until.0),
        history: job.history.events().into_iter().map(entry).collect(),
    }
}

async fn relatives(engine: &Engine, ids: &[String]) -> Result<Relatives> {
    if ids.is_empty() {
        return Ok(Relatives::default());
    }
    let keys: Vec<JobKey> = (ids.iter().take(RELATIVES_SHOWN))
        .map(JobKey::qless)
        .collect();
    let jobs = engine.list_jobs_by_key(&keys).await?;
    let now = engine.now(None);
    let relative = |(key, job): (JobKey, Option<Job>)| Relative {
        id: key.id,
        job: job.map(|job| job_row(engine, &job, now)),
    };
    Ok(Relatives {
        total: ids.len(),
        jobs: keys.into_iter().zip(jobs).map(relative).collect(),
    })
}

pub async fn failures(engine: &Engine) -> Result<Vec<GroupRow>> {
    let mut groups: Vec<GroupRow> = engine
        .failures()
        .await?
        .into_iter()
        .map(group_row)
        .collect();
    groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.group.cmp(&b.group)));
    Ok(groups)
}

/// Those with stalled jobs first, then those alive, by name: rows that change places with every sign of
/// life could not be read.
pub async fn workers(engine: &Engine) -> Result<Vec<WorkerRow>> {
    let mut workers: Vec<WorkerRow> = engine
        .workers(None)
        .await?
        .into_iter()
        .map(worker_row)
        .collect();
    let now = engine.now(None).0;
    workers.sort_by(|a, b| {
        let order = |worker: &WorkerRow| (Reverse(worker.stalled), worker.pulse(now));
        order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
    });
    Ok(workers)
}

/// A worker that holds a lease is there, even if it has not shown itself for long.
pub async fn worker(engine: &Engine, name: &str) -> Result<Option<WorkerView>> {
    // So the leases of those are kept who have no name.
    if name.is_empty() {
        return Ok(None);
    }
    let (running, stalled) = engine.worker(name, None).await?;
    let known = engine.workers(None).await?;
    let jobs: Vec<Job> = running.into_iter().chain(stalled).collect();
    let worker = match known.into_iter().find(|worker| worker.name == name) {
        Some(worker) => worker_row(worker),
        None if jobs.is_empty() => return Ok(None),
        None => WorkerRow {
            name: name.to_owned(),
            last_seen: jobs.iter().map(|job| job.since.0).max().unwrap_or_default(),
            running: 0,
            stalled: i64::try_from(jobs.len()).unwrap_or(i64::MAX),
        },
    };
    Ok(Some(WorkerView {
        worker,
        jobs: rows(engine, &jobs),
    }))
}

fn standing(stand: Stand) -> EffectiveState {
    match stand {
        Stand::Waiting => EffectiveState::Waiting,
        Stand::Scheduled => EffectiveState::Scheduled,
        Stand::Depends => EffectiveState::Depends,
        Stand::Running => EffectiveState::Running,
        Stand::Stalled => EffectiveState::Stalled,
        Stand::Failed => EffectiveState::Failed,
        Stand::Complete => EffectiveState::Complete,
        Stand::Dead => EffectiveState::Dead,
        Stand::Record => EffectiveState::Record,
    }
}

fn tally(counts: &Counts) -> Tally {
    Tally {
        waiting: counts.waiting,
        scheduled: counts.scheduled,
        depends: counts.depends,
        running: counts.running,
        stalled: counts.stalled,
        failed: counts.failed,
        complete: counts.complete,
        dead: counts.dead,
        records: counts.records,
    }
}

fn queue_row(queue: &QueueCounts) -> QueueRow {
    QueueRow {
        place: place(&queue.queue.key),
        tally: tally(&queue.counts),
        oldest_waiting: queue.oldest_waiting.map(|time| time.0),
        paused: queue.queue.paused,
        forgotten: queue.queue.forgotten,
        recurring: queue.recurring,
    }
}

fn group_row(group: FailureGroup) -> GroupRow {
    GroupRow {
        group: group.group,
        count: group.count,
        first: group.first.map(|time| time.0),
        last: group.last.map(|time| time.0),
        message: group.message,
    }
}

fn worker_row(worker: WorkerCounts) -> WorkerRow {
    WorkerRow {
        name: worker.name,
        last_seen: worker.last_seen.0,
        running: worker.jobs,
        stalled: worker.stalled,
    }
}

fn rows(engine: &Engine, jobs: &[Job]) -> Vec<JobRow> {
    let now = engine.now(None);
    jobs.iter().map(|job| job_row(engine, job, now)).collect()
}

fn job_row(engine: &Engine, job: &Job, now: Time) -> JobRow {
    let stand = stand(job.effective_state(now));
    let lease = job.lease.as_ref();
    let when = match stand {
        Stand::Waiting | Stand::Scheduled => job.ready_at,
        Stand::Running | Stand::Stalled => lease.map_or(job.since, |lease| lease.until),
        Stand::Depends | Stand::Failed | Stand::Complete | Stand::Dead => job.since,
        Stand::Record => job.updated_at.unwrap_or(job.since),
    };
    let place = place_of(engine, job.queue);
    let glimpse = match place.api {
        Api::Qless | Api::Relay | Api::Jobq => glimpse(&job.body),
        Api::Lmstfy => lmstfy::glimpse_of_bytes(&job.body),
    };
    JobRow {
        seq: job.seq,
        id: job.key.id.clone(),
        place,
        klass: job.klass.clone(),
        stand,
        priority: job.priority,
        retries: job.retries,
        remaining: job.remaining,
        tags: job.tags.clone(),
        worker: lease.map(|lease| lease.worker.clone()),
        when: when.0,
        glimpse,
        failure: job.failure.as_ref().map(|failure| FailureNote {
            group: failure.group.clone(),
            message: failure.message.clone(),
            worker: failure.worker.clone(),
            when: failure.at.0,
        }),
        waits_for: job.dependencies.len(),
        ends: job.expires_at.map(|time| time.0),
        letter: relay::letter(job),
    }
}

fn stand(standing: EffectiveState) -> Stand {
    match standing {
        EffectiveState::Waiting => Stand::Waiting,
        EffectiveState::Scheduled => Stand::Scheduled,
        EffectiveState::Depends => Stand::Depends,
        EffectiveState::Running => Stand::Running,
        EffectiveState::Stalled => Stand::Stalled,
        EffectiveState::Failed => Stand::Failed,
        EffectiveState::Complete => Stand::Complete,
        EffectiveState::Dead => Stand::Dead,
        EffectiveState::Record => Stand::Record,
    }
}

fn entry(event: crate::engine::Event) -> Entry {
    Entry {
        what: match event.what {
            EventKind::Put => Happening::Put,
            EventKind::Popped => Happening::Popped,
            EventKind::TimedOut => Happening::TimedOut,
            EventKind::Retried => Happening::Retried,
            EventKind::Failed => Happening::Failed,
            EventKind::Done => Happening::Done,
            EventKind::Died => Happening::Died,
            EventKind::Respawned => Happening::Respawned,
            EventKind::Note => Happening::Note,
            EventKind::Created => Happening::Created,
            EventKind::Advanced => Happening::Advanced,
            EventKind::Event => Happening::Event,
        },
        when: event.when.0,
        subject: event.subject,
        detail: event.detail,
    }
}

/// The beginning of a payload, its white space made single.
fn glimpse(body: &str) -> String {
    let mut short = String::new();
    let mut space = false;
    let mut length = 0;
    for c in body.chars() {
        if c.is_whitespace() || c.is_control() {
            space = length > 0;
            continue;
        }
        if length >= GLIMPSE_CHARS {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glimpse_is_one_short_line() {
        assert_eq!(glimpse(" {\n  \"a\":\t1 }\n"), "{ \"a\": 1 }");
        let long = glimpse(&"ä".repeat(1000));
        assert_eq!(long.chars().count(), GLIMPSE_CHARS + 1);
        assert!(long.ends_with('…'));
    }
}
