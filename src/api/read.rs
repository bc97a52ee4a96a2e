//! Server functions that read. The pages call them while they are rendered.

use leptos::prelude::*;

use super::Trouble;
use super::views::{
    AuditQuery, AuditView, CheckView, ConfigView, DeadView, GroupRow, GroupView, JobView,
    LmstfyJobView, NamespaceView, NamespacesView, OverviewView, Place, QueueRow, QueueView,
    RecordView, RecordsView, RecurringView, RecurringsView, RelayJobView, SearchView, StatsView,
    TagView, TagsView, Tally, TrackedView, Wanted, WorkerRow, WorkerView,
};

/// Jobs on one page of a list.
pub const PAGE_JOBS: usize = 50;

/// The most records that a query finds.
pub const FOUND_MAX: usize = 100;

/// Tags on one page of their list.
pub const PAGE_TAGS: usize = 100;

/// Everything the overview shows.
#[server]
pub async fn overview() -> Result<OverviewView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::overview(&desk.engine).await)
}

/// All queues.
#[server]
pub async fn queues() -> Result<Vec<QueueRow>, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::queues(&desk.engine).await)
}

/// The queue of that name, and a page of its jobs in the state of that name from `offset` on.
#[server]
pub async fn queue(place: Place, state: String, offset: usize) -> Result<QueueView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::queue(&desk.engine, &place, &state, offset).await;
    desk.found(found, || {
        let name = place.label();
        format!("There is no queue “{name}” with a list “{state}”.")
    })
}

/// What the queue of that name did on a UTC day, `YYYY-MM-DD`; today if that is empty.
#[server]
pub async fn stats(place: Place, day: String) -> Result<StatsView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::stats(&desk.engine, &place, &day).await;
    desk.found(found, || {
        let name = place.label();
        format!("There is no queue “{name}”, or no day “{day}”.")
    })
}

/// All options in force.
#[server]
pub async fn config() -> Result<ConfigView, Trouble> {
    let desk = super::desk::Desk::here()?;
    Ok(super::turn::config(&desk.engine))
}

/// The job with that id.
#[server]
pub async fn job(id: String) -> Result<JobView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::job(&desk.engine, &id).await;
    desk.found(found, || format!("There is no job “{id}”."))
}

/// The lmstfy job with that id in that queue.
#[server]
pub async fn lmstfy_job(place: Place, id: String) -> Result<LmstfyJobView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::lmstfy_job(&desk.engine, &place, &id).await;
    desk.found(found, || {
        let queue = place.label();
        format!("There is no job “{id}” in {queue}: it has been acknowledged, or its time to live has ended.")
    })
}

/// The Relay job with that id in that queue.
#[server]
pub async fn relay_job(place: Place, id: String) -> Result<RelayJobView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::relay_job(&desk.engine, &place, &id).await;
    desk.found(found, || {
        let queue = place.label();
        format!("There is no job “{id}” in {queue}: it has been completed or deleted, or is among the queue’s dead letters.")
    })
}

/// The dead Relay job with that number in that queue.
#[server]
pub async fn dead_relay_job(place: Place, letter: String) -> Result<RelayJobView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::dead_relay_job(&desk.engine, &place, &letter).await;
    desk.found(found, || {
        let queue = place.label();
        format!("There is no dead job “{letter}” in {queue}: it has been enqueued again or deleted, or died more than 30 days ago.")
    })
}

/// The Jobq queue of that name, and a page of the records that are wanted of it, from `offset` on.
#[server]
pub async fn records(place: Place, wanted: Wanted, offset: usize) -> Result<RecordsView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::records(&desk.engine, &place, &wanted, offset).await;
    desk.found(found, || {
        let queue = place.label();
        format!(
            "There is no queue “{queue}” of Jobq: nobody has created it, or it has been deleted."
        )
    })
}

/// The Jobq record with that number in that queue.
#[server]
pub async fn record(place: Place, id: String) -> Result<RecordView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::record(&desk.engine, &place, &id).await;
    desk.found(found, || {
        let queue = place.label();
        format!("There is no job “{id}” in {queue}: it has been deleted, or never was.")
    })
}

/// A page of the jobs that a text means, newest first: those before the one with the number `after`, or the first.
#[server]
pub async fn search(text: String, after: Option<i64>) -> Result<SearchView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::search(&desk.engine, text, after).await)
}

/// The dead letters, fullest first: those of a namespace, or all, whose queue's name contains a word; a page of
/// them from `offset` on.
#[server]
pub async fn dead(namespace: String, queue: String, offset: usize) -> Result<DeadView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::dead(&desk.engine, &namespace, &queue, offset).await)
}

/// All namespaces.
#[server]
pub async fn namespaces() -> Result<NamespacesView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::namespaces(&desk.engine, desk.no_auth).await)
}

/// The namespace of that name.
#[server]
pub async fn namespace(name: String) -> Result<NamespaceView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::namespace(&desk.engine, &name, desk.no_auth).await;
    desk.found(found, || format!("No namespace can be called “{name}”."))
}

/// The tags from `offset` on, most used first.
#[server]
pub async fn tags(offset: usize) -> Result<TagsView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::tags(&desk.engine, offset).await)
}

/// The jobs with a tag, a page of them from `offset` on.
#[server]
pub async fn tagged(tag: String, offset: usize) -> Result<TagView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::tagged(&desk.engine, &tag, offset).await)
}

/// The tracked jobs and what happened to them lately.
#[server]
pub async fn tracked() -> Result<TrackedView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::tracked(&desk.engine).await)
}

/// The recurring jobs of a queue, or of all, a page of them from `offset` on.
#[server]
pub async fn recurrings(queue: Option<String>, offset: usize) -> Result<RecurringsView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::recurrings(&desk.engine, queue.as_deref(), offset).await)
}

/// The recurring job with that id.
#[server]
pub async fn recurring(id: String) -> Result<RecurringView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::recurring(&desk.engine, &id).await;
    desk.found(found, || format!("There is no recurring job “{id}”."))
}

/// Compares everything that the server keeps twice. Reads the whole database.
#[server]
pub async fn check() -> Result<CheckView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::check(&desk.engine).await)
}

/// What people did in the dashboard: a page of the entries that are wanted, newest first.
#[server]
pub async fn audit(query: AuditQuery) -> Result<AuditView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::audit(&desk.engine, &query).await)
}

/// All failure groups, most jobs first.
#[server]
pub async fn failures() -> Result<Vec<GroupRow>, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::failures(&desk.engine).await)
}

/// One failure group, and a page of its jobs from `offset` on.
#[server]
pub async fn failure(group: String, offset: usize) -> Result<GroupView, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::failure(&desk.engine, &group, offset).await)
}

/// All workers, those with stalled jobs first.
#[server]
pub async fn workers() -> Result<Vec<WorkerRow>, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(super::turn::workers(&desk.engine).await)
}

/// The worker of that name and the jobs it holds.
#[server]
pub async fn worker(name: String) -> Result<WorkerView, Trouble> {
    let desk = super::desk::Desk::here()?;
    let found = super::turn::worker(&desk.engine, &name).await;
    desk.found(found, || {
        format!("No worker “{name}” has shown itself within a day.")
    })
}

/// The numbers of the whole server, as the live feed has them.
#[server]
pub async fn glance() -> Result<Tally, Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.answer(desk.feed.glance().await)
}
