//! Server functions that read. The pages call them while they are rendered.

use leptos::prelude::*;

use super::Trouble;
use super::views::{
    AboutView, Asked, AuditQuery, AuditView, CheckView, ConfigView, ConfirmView, DeadView,
    FailingView, FailuresView, JobView, LmstfyJobView, NamespaceView, NamespacesView, NewJobView,
    OperationView, OperationsView, OverviewView, Place, QueueRow, QueueView, RangeView, RecordView,
    RecordsView, RecurringView, RecurringsView, RelayJobView, Role, ScheduledView, SearchView,
    SearchesView, Spark, StatsView, TagView, TagsView, Tally, TrackedView, Wanted, Wish, WorkerRow,
    WorkerView,
};

/// Jobs on one page of a list.
pub const PAGE_JOBS: usize = 50;

/// Failed jobs of a group whose times are counted at the most.
pub const FAILURES_COUNTED_MAX: i64 = 10_000;

/// The most records that a query finds.
pub const FOUND_MAX: usize = 100;

/// Tags on one page of their list.
pub const PAGE_TAGS: usize = 100;

/// Everything the overview shows.
#[server]
pub async fn overview() -> Result<OverviewView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::overview(&desk.engine).await)
}

/// All queues.
#[server]
pub async fn queues() -> Result<Vec<QueueRow>, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::queues(&desk.engine).await)
}

/// The queue of that name, and a page of its jobs in the state of that name from `offset` on.
#[server]
pub async fn queue(place: Place, state: String, offset: usize) -> Result<QueueView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::queue(&desk.engine, &place, &state, offset).await;
    desk.found(found, || {
        let name = place.label();
        format!("Queue “{name}” not found, or it has no list “{state}”.")
    })
}

/// What the queue of that name did on a UTC day, `YYYY-MM-DD`; today if that is empty.
#[server]
pub async fn stats(place: Place, day: String) -> Result<StatsView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::stats(&desk.engine, &place, &day).await;
    desk.found(found, || {
        let name = place.label();
        format!("Queue “{name}” not found, or “{day}” is not a day.")
    })
}

/// What there is to tell about the server.
#[server]
pub async fn about() -> Result<AboutView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::about(&desk.engine).await)
}

/// What happened over time, in one queue or in all.
#[server]
pub async fn range(asked: Asked) -> Result<RangeView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::range(&desk.engine, &asked).await;
    desk.found(found, || "Queue not found.".to_owned())
}

/// How many jobs were completed in each queue in the last half hour, by the minute; queues without any are left out.
#[server]
pub async fn sparks() -> Result<Vec<Spark>, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::sparks(&desk.engine).await)
}

/// All options in force.
#[server]
pub async fn config() -> Result<ConfigView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    Ok(super::turn::config(&desk.engine))
}

/// The job with that id.
#[server]
pub async fn job(id: String) -> Result<JobView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::job(&desk.engine, &id).await;
    desk.found(found, || {
        format!("Job “{id}” not found. It may have been canceled, or removed after it completed.")
    })
}

/// The lmstfy job with that id in that queue.
#[server]
pub async fn lmstfy_job(place: Place, id: String) -> Result<LmstfyJobView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::lmstfy_job(&desk.engine, &place, &id).await;
    desk.found(found, || {
        let queue = place.label();
        format!("Job “{id}” not found in {queue}. It was acknowledged or deleted, or it expired.")
    })
}

/// The Relay job with that id in that queue.
#[server]
pub async fn relay_job(place: Place, id: String) -> Result<RelayJobView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::relay_job(&desk.engine, &place, &id).await;
    desk.found(found, || {
        let queue = place.label();
        format!("Job “{id}” not found in {queue}. It was completed, deleted or dead-lettered.")
    })
}

/// The dead Relay job with that number in that queue.
#[server]
pub async fn dead_relay_job(place: Place, letter: String) -> Result<RelayJobView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::dead_relay_job(&desk.engine, &place, &letter).await;
    desk.found(found, || {
        let queue = place.label();
        format!("Dead job “{letter}” not found in {queue}. It was requeued or deleted, or was removed after 30 days.")
    })
}

/// The Jobq queue of that name, and a page of the records that are wanted of it, from `offset` on.
#[server]
pub async fn records(place: Place, wanted: Wanted, offset: usize) -> Result<RecordsView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::records(&desk.engine, &place, &wanted, offset).await;
    desk.found(found, || {
        let queue = place.label();
        format!("Jobq queue “{queue}” not found. It was deleted or never created.")
    })
}

/// The Jobq record with that number in that queue.
#[server]
pub async fn record(place: Place, id: String) -> Result<RecordView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::record(&desk.engine, &place, &id).await;
    desk.found(found, || {
        let queue = place.label();
        format!("Job “{id}” not found in {queue}. It was deleted or never existed.")
    })
}

/// The form for a new job of this queue, or like the job with the id `like`.
#[server]
pub async fn new_job(queue: String, like: String) -> Result<NewJobView, Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    desk.answer(super::turn::new_job(&desk.engine, queue, &like).await)
}

/// A page of the jobs that a text means, newest first: those before the one with the number `after`, or the first.
#[server]
pub async fn search(text: String, after: Option<i64>) -> Result<SearchView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::search(&desk.engine, text, after).await)
}

/// What somebody is about to do to many jobs; or why that cannot be done.
#[server]
pub async fn confirm(wish: Wish) -> Result<Result<ConfirmView, String>, Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    desk.answer(super::turn::confirm(&desk.engine, &wish).await)
}

/// The operations, newest first, a page of them from `offset` on.
#[server]
pub async fn operations(offset: usize) -> Result<OperationsView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::operations(&desk.engine, offset).await)
}

/// The operation with that id, and a page of what it skipped, from `offset` on.
#[server]
pub async fn operation(id: String, offset: usize) -> Result<OperationView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::operation(&desk.engine, &id, offset).await;
    desk.found(found, || {
        format!("Operation “{id}” not found. The last 1,000 operations are kept for 30 days.")
    })
}

/// Saved searches, and what the box of the search suggests.
#[server]
pub async fn searches() -> Result<SearchesView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::searches(&desk.engine).await)
}

/// The dead letters, fullest first: those of a namespace, or all, whose queue's name contains a word; a page of
/// them from `offset` on.
#[server]
pub async fn dead(namespace: String, queue: String, offset: usize) -> Result<DeadView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::dead(&desk.engine, &namespace, &queue, offset).await)
}

/// All namespaces.
#[server]
pub async fn namespaces() -> Result<NamespacesView, Trouble> {
    let desk = super::desk::Desk::here(Role::Admin)?;
    desk.answer(super::turn::namespaces(&desk.engine, desk.no_auth).await)
}

/// The namespace of that name.
#[server]
pub async fn namespace(name: String) -> Result<NamespaceView, Trouble> {
    let desk = super::desk::Desk::here(Role::Admin)?;
    let found = super::turn::namespace(&desk.engine, &name, desk.no_auth).await;
    desk.found(found, || format!("“{name}” is not a valid namespace name."))
}

/// The tags from `offset` on, most used first.
#[server]
pub async fn tags(offset: usize) -> Result<TagsView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::tags(&desk.engine, offset).await)
}

/// The jobs with a tag, a page of them from `offset` on.
#[server]
pub async fn tagged(tag: String, offset: usize) -> Result<TagView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::tagged(&desk.engine, &tag, offset).await)
}

/// The scheduled jobs of all queues, those that are due next, from `offset` on.
#[server]
pub async fn scheduled(offset: usize) -> Result<ScheduledView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::scheduled(&desk.engine, offset).await)
}

/// The tracked jobs and what happened to them lately.
#[server]
pub async fn tracked() -> Result<TrackedView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::tracked(&desk.engine).await)
}

/// The recurring jobs of a queue, or of all, a page of them from `offset` on.
#[server]
pub async fn recurrings(queue: Option<String>, offset: usize) -> Result<RecurringsView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::recurrings(&desk.engine, queue.as_deref(), offset).await)
}

/// The recurring job with that id.
#[server]
pub async fn recurring(id: String) -> Result<RecurringView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::recurring(&desk.engine, &id).await;
    desk.found(found, || format!("Recurring job “{id}” not found."))
}

/// Compares everything that the server keeps twice. Reads the whole database.
#[server]
pub async fn check() -> Result<CheckView, Trouble> {
    let desk = super::desk::Desk::here(Role::Admin)?;
    desk.answer(super::turn::check(&desk.engine).await)
}

/// What people did in the dashboard: a page of the entries that are wanted, newest first.
#[server]
pub async fn audit(query: AuditQuery) -> Result<AuditView, Trouble> {
    let desk = super::desk::Desk::here(Role::Admin)?;
    desk.answer(super::turn::audit(&desk.engine, &query).await)
}

/// The failure groups in which a job failed in a range (`1h`, `24h`, `7d`, else all), and whose name or newest message
/// contains a text.
#[server]
pub async fn failures(range: String, text: String) -> Result<FailuresView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::all_failures(&desk.engine, &range, &text).await)
}

/// One failure group, its jobs that failed in a range and say what has this fingerprint, if there is one, and a page of
/// them from `offset` on.
#[server]
pub async fn failure(
    group: String,
    range: String,
    fingerprint: String,
    offset: usize,
) -> Result<FailingView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::failing(&desk.engine, &group, &range, &fingerprint, offset).await;
    desk.answer(found)
}

/// All workers, those with stalled jobs first.
#[server]
pub async fn workers() -> Result<Vec<WorkerRow>, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(super::turn::workers(&desk.engine).await)
}

/// The worker of that name and the jobs it holds.
#[server]
pub async fn worker(name: String) -> Result<WorkerView, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    let found = super::turn::worker(&desk.engine, &name).await;
    desk.found(found, || {
        format!("Worker “{name}” not found. It has not been seen in the last 24 hours.")
    })
}

/// The numbers of the whole server, as the live feed has them.
#[server]
pub async fn glance() -> Result<Tally, Trouble> {
    let desk = super::desk::Desk::here(Role::Viewer)?;
    desk.answer(desk.feed.glance().await)
}
