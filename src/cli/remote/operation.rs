//! `switchyard operation`.

use serde_json::json;

use super::feed::watched;
use super::rows::{has_ended, moment, operation_json, operation_table, queue_name};
use super::targets::wait;
use super::{Result, Session};
use crate::cli::Outcome;
use crate::cli::exit::{Code, Failure};
use crate::cli::output::{Table, fields, json_line};
use crate::config::{Limit, OperationCommand};
use crate::time::number;
use crate::ui::actions::operations::{StopOperation, UndoOperation};
use crate::ui::model::operation::{OperationRow, OperationState, OperationView};
use crate::ui::model::paging::PagePlace;
use crate::ui::pages::operations::load::{LoadOperation, Operations};

pub async fn run(command: &OperationCommand) -> Outcome {
    match command {
        OperationCommand::List {
            remote,
            limit,
            watch,
        } => {
            let session = Session::new(remote)?;
            watched(&session, watch.watch, async || list(&session, *limit).await).await
        }
        OperationCommand::Show { operation, watch } => {
            let session = Session::new(&operation.remote)?;
            watched(&session, watch.watch, async || {
                show(&session, operation.id).await
            })
            .await
        }
        OperationCommand::Wait(operation) => {
            let session = Session::new(&operation.remote)?;
            wait(&session, operation.id).await
        }
        OperationCommand::Stop(operation) => {
            let session = Session::new(&operation.remote)?;
            let id = operation.id;
            load(&session, id).await?;
            let done = session.act(StopOperation { id, back: back() }).await?;
            session.report(&id.to_string(), &done);
            Ok(())
        }
        OperationCommand::Undo(operation) => {
            let session = Session::new(&operation.remote)?;
            let id = operation.id;
            load(&session, id).await?;
            let done = session.act(UndoOperation { id, back: back() }).await?;
            session.report(&id.to_string(), &done);
            Ok(())
        }
    }
}

/// The page to which a form would return.
fn back() -> String {
    "/ui/operations".to_owned()
}

async fn load(session: &Session, id: i64) -> Result<OperationView> {
    load_page(session, id, PagePlace::default()).await
}

async fn load_page(session: &Session, id: i64, page: PagePlace) -> Result<OperationView> {
    let id = id.to_string();
    session.read(LoadOperation { id, page }).await
}

/// The operation with all skipped jobs whose reasons are stored.
async fn load_with_skips(session: &Session, id: i64) -> Result<OperationView> {
    let mut view = load(session, id).await?;
    while let Some(next) = view.neighbors.next.take() {
        let more = load_page(session, id, PagePlace::after(next)).await?;
        view.skips.extend(more.skips);
        view.neighbors = more.neighbors;
    }
    Ok(view)
}

async fn list(session: &Session, limit: Limit) -> Result<String> {
    let mut rows: Vec<OperationRow> = Vec::new();
    let mut page = PagePlace::default();
    loop {
        let view = session.read(Operations { page }).await?;
        rows.extend(view.rows);
        match view.neighbors.next {
            Some(next) if rows.len() < limit.limit => page = PagePlace::after(next),
            _ => break,
        }
    }
    rows.truncate(limit.limit);
    Ok(session.format_rows(&rows, operation_json, operation_table))
}

async fn show(session: &Session, id: i64) -> Result<String> {
    let view = load_with_skips(session, id).await?;
    Ok(shown(session, &view))
}

fn shown(session: &Session, view: &OperationView) -> String {
    let row = &view.row;
    if session.json {
        let mut shown = operation_json(row);
        let skips = view.skips.iter().map(|skip| {
            let job = skip.queue_ref.as_ref();
            json!({
                "queue": job.map(|(queue, _)| queue_name(queue)), "id": job.map(|(_, id)| id),
                "reason": skip.reason,
            })
        });
        if let Some(shown) = shown.as_object_mut() {
            shown.insert("skips".to_owned(), skips.collect());
        }
        return json_line(&shown);
    }
    let about = fields([
        ("user", row.who.clone()),
        (
            "search",
            if row.request.all {
                row.request.q.clone()
            } else {
                String::new()
            },
        ),
        ("created", moment(row.created)),
        ("ended", row.ended.map(moment).unwrap_or_default()),
        (
            "restored",
            if row.restored == 0 {
                String::new()
            } else {
                number(row.restored)
            },
        ),
        ("undo until", row.undo_until.map(moment).unwrap_or_default()),
        ("error", row.error.clone().unwrap_or_default()),
    ]);
    let mut skips = Table::new(&["SKIPPED JOB", "QUEUE", "REASON"]);
    for skip in &view.skips {
        let (queue, id) = match &skip.queue_ref {
            Some((queue, id)) => (queue_name(queue), id.clone()),
            None => (String::new(), skip.job.to_string()),
        };
        skips.row([id, queue, skip.reason.clone()]);
    }
    let skips = if skips.is_empty() {
        String::new()
    } else {
        format!("\n{}", skips.render())
    };
    format!(
        "{}\n{about}{skips}",
        operation_table(std::slice::from_ref(row))
    )
}

/// The operation, if it has ended.
pub async fn finished(session: &Session, id: i64) -> Result<Option<OperationView>> {
    let view = load(session, id).await?;
    Ok(Some(view).filter(|view| has_ended(&view.row)))
}

/// The text of an operation that has ended, and an error if it failed or was stopped.
pub async fn result_of(session: &Session, id: i64) -> Result<(String, Option<Failure>)> {
    let view = load_with_skips(session, id).await?;
    let failure = match view.row.state {
        OperationState::Failed => Some(format!(
            "operation {id} failed: {}",
            view.row.error.clone().unwrap_or_default()
        )),
        OperationState::Stopped => Some(format!("operation {id} was stopped")),
        _ => None,
    };
    let failure = failure.map(|why| Failure::new(Code::Error, why));
    Ok((shown(session, &view), failure))
}
