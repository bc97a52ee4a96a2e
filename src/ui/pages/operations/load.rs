//! Loads the operations.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, JobAction, JobSelection, Operation, Result, Skip};
use crate::ui::context::{read, read_or_missing};
use crate::ui::error::PageError;
use crate::ui::model::PAGE_ROWS;
use crate::ui::model::operation::{
    JobActionKind, OperationRequest, OperationRow, OperationView, OperationsView, SkipRow,
};
use crate::ui::model::paging::PagePlace;
use crate::ui::present::paging::{neighbors, place};
use crate::ui::present::queue_refs::queue_ref;

/// A page of the operations, newest first.
#[server]
pub async fn operations(#[server(default)] page: PagePlace) -> Result<OperationsView, PageError> {
    read(Role::Viewer, async |context| {
        load_operations(&context.engine, &page).await
    })
    .await
}

/// The operation with this ID, and a page of the jobs that it skipped.
#[server(name = LoadOperation)]
pub async fn operation(
    id: String,
    #[server(default)] page: PagePlace,
) -> Result<OperationView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_operation(&context.engine, &id, &page).await,
        || format!("Operation “{id}” not found. The last 1,000 operations are kept for 30 days."),
    )
    .await
}

/// Maximum number of skipped jobs whose reasons are stored.
const SKIPS_KNOWN: i64 = 1_000;

/// A page of the operations, newest first.
pub async fn load_operations(engine: &Engine, page: &PagePlace) -> Result<OperationsView> {
    let (total, found) = engine.operations(place(page), PAGE_ROWS).await?;
    let rows = found.rows.iter().map(|operation| row(engine, operation));
    Ok(OperationsView {
        total,
        rows: rows.collect(),
        neighbors: neighbors(&found),
    })
}

/// The operation, and a page of the jobs that it skipped.
pub async fn load_operation(
    engine: &Engine,
    id: &str,
    page: &PagePlace,
) -> Result<Option<OperationView>> {
    let Ok(id) = id.parse() else {
        return Ok(None);
    };
    let Some(operation) = engine.operation(id).await? else {
        return Ok(None);
    };
    let skips = engine.skips(id, place(page), PAGE_ROWS).await?;
    let neighbors = neighbors(&skips);
    let skip = |skip: Skip| SkipRow {
        job: skip.job,
        queue_ref: skip.queue_and_id.map(|(queue, id)| (queue_ref(&queue), id)),
        reason: skip.reason,
    };
    Ok(Some(OperationView {
        row: row(engine, &operation),
        skips: skips.rows.into_iter().map(skip).collect(),
        known: (operation.skipped + operation.not_restored).min(SKIPS_KNOWN),
        neighbors,
    }))
}

fn row(engine: &Engine, operation: &Operation) -> OperationRow {
    let now = engine.now(None);
    let (action, arg) = match &operation.action {
        JobAction::Retry => (JobActionKind::Retry, String::new()),
        JobAction::Cancel => (JobActionKind::Cancel, String::new()),
        JobAction::Move { queue } => (JobActionKind::Move, queue.clone()),
        JobAction::Priority { priority } => (JobActionKind::Priority, priority.to_string()),
        JobAction::Tag { tag } => (JobActionKind::Tag, tag.clone()),
        JobAction::Untag { tag } => (JobActionKind::Untag, tag.clone()),
        JobAction::RenameTag { to, .. } => (JobActionKind::RenameTag, to.clone()),
        JobAction::Track => (JobActionKind::Track, String::new()),
        JobAction::Untrack => (JobActionKind::Untrack, String::new()),
        JobAction::TimeOut => (JobActionKind::TimeOut, String::new()),
        JobAction::EditAndRetry => (JobActionKind::EditAndRetry, String::new()),
        JobAction::Complete => (JobActionKind::Complete, String::new()),
    };
    let (all, q, jobs) = match &operation.selection {
        JobSelection::Search(text) => (true, text.clone(), Vec::new()),
        JobSelection::Jobs(jobs) => (
            false,
            String::new(),
            jobs.iter().map(ToString::to_string).collect(),
        ),
    };
    let until = operation.undo_until.map(|until| until.0);
    OperationRow {
        id: operation.id,
        who: operation.who.clone(),
        action,
        request: OperationRequest {
            action: action.as_str().to_owned(),
            all,
            q,
            jobs,
            arg,
        },
        state: operation.state,
        total: operation.total,
        is_minimum: operation.is_lower_bound,
        done: operation.done,
        skipped: operation.skipped,
        restored: operation.restored,
        lost: operation.not_restored,
        created: operation.created_at.0,
        started: operation.started_at.map(|at| at.0),
        ended: operation.ended_at.map(|at| at.0),
        undo_until: until.filter(|_| operation.can_be_undone(now)),
        can_be_undone: operation.keeps_removed,
        error: operation.error.clone(),
    }
}
