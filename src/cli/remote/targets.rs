//! Changes of qless jobs: one by one for IDs, as an operation for a search.

use std::io::BufRead;

use serde_json::json;

use super::feed::wait_until;
use super::job::{back, missing_first};
use super::operation::{finished, result_of};
use super::rows::{job_json, job_table};
use super::{ActionOutcome, Result, Session};
use crate::cli::exit::{Code, Failure};
use crate::cli::output::printable;
use crate::cli::{Outcome, print, print_notice};
use crate::config::{BulkFlags, JobAction, Targets};
use crate::time::number;
use crate::ui::actions::jobs::{
    AddTag, Cancel, MoveJob, Prioritize, RemoveTag, Retry, Track, Untrack,
};
use crate::ui::actions::operations::{StartOperation, no_jobs};
use crate::ui::model::operation::{ConfirmView, Confirmation, OperationRequest};
use crate::ui::pages::confirm::load::Confirm;

/// Maximum length of a line with an ID, in bytes.
const ID_BYTES_MAX: usize = 4_096;

/// Runs the action on each job that is named, or as an operation on all jobs that match the search.
pub async fn bulk_or_each(targets: &Targets, action: &JobAction) -> Outcome {
    let session = Session::new(&targets.remote)?;
    if let Some(search) = &targets.search {
        return start(&session, &request(action, search), &targets.bulk).await;
    }
    if targets.bulk.dry_run || targets.bulk.wait {
        return Err(Failure::usage("--dry-run and --wait need --search").into());
    }
    let act = async |session: &Session, id: String| {
        let done = change(session, action, id.clone()).await;
        missing_first(session, &id, done).await
    };
    act_on_ids(&session, &targets.ids, act).await
}

/// Runs an action on each job. A hyphen among the IDs stands for those on standard input, one per line.
pub async fn act_on_ids(
    session: &Session,
    ids: &[String],
    act: impl AsyncFn(&Session, String) -> Result<ActionOutcome>,
) -> Outcome {
    let act = async |session: &Session, id: &String| act(session, id.clone()).await;
    let mut worst = None;
    for given in ids {
        let outcome = if given == "-" {
            let lines = std::io::stdin().lock().lines();
            let mut problem = None;
            let ids = lines.map_while(|line| match line {
                Ok(line) if line.len() <= ID_BYTES_MAX => Some(line.trim().to_owned()),
                Ok(_) => {
                    problem = Some(Failure::usage(format!(
                        "a line of standard input has more than {ID_BYTES_MAX} bytes"
                    )));
                    None
                }
                Err(error) => {
                    problem = Some(Failure::usage(format!(
                        "cannot read standard input: {error}"
                    )));
                    None
                }
            });
            let ids = ids.filter(|id| !id.is_empty());
            let outcome = session.each(ids, String::clone, &act).await;
            problem.map_or(outcome, |problem| Err(problem.into()))
        } else {
            session.each([given.clone()], String::clone, &act).await
        };
        let Err(error) = outcome else {
            continue;
        };
        match error.downcast_ref::<Failure>() {
            // The errors were reported; the other jobs can still be changed.
            Some(failure) if failure.message.is_empty() => worst = worst.max(Some(failure.code)),
            _ => return Err(error),
        }
    }
    worst.map_or(Ok(()), |code| Err(Failure::reported(code).into()))
}

/// Changes one job.
pub async fn change(session: &Session, action: &JobAction, id: String) -> Result<ActionOutcome> {
    let back = back();
    match action.clone() {
        JobAction::Retry => session.act(Retry { id, back }).await,
        JobAction::Cancel => {
            session
                .act(Cancel {
                    id,
                    after: back.clone(),
                    back,
                })
                .await
        }
        JobAction::Move(queue) => session.act(MoveJob { id, queue, back }).await,
        JobAction::Priority(priority) => {
            let priority = priority.to_string();
            session.act(Prioritize { id, priority, back }).await
        }
        JobAction::Tag(tag) => session.act(AddTag { id, tag, back }).await,
        JobAction::Untag(tag) => session.act(RemoveTag { id, tag, back }).await,
        JobAction::Track => session.act(Track { id, back }).await,
        JobAction::Untrack => session.act(Untrack { id, back }).await,
    }
}

/// The operation on all jobs that match a search.
fn request(action: &JobAction, search: &str) -> OperationRequest {
    let (name, arg) = match action {
        JobAction::Retry => ("retry", String::new()),
        JobAction::Cancel => ("cancel", String::new()),
        JobAction::Move(queue) => ("move", queue.clone()),
        JobAction::Priority(priority) => ("priority", priority.to_string()),
        JobAction::Tag(tag) => ("tag", tag.clone()),
        JobAction::Untag(tag) => ("untag", tag.clone()),
        JobAction::Track => ("track", String::new()),
        JobAction::Untrack => ("untrack", String::new()),
    };
    OperationRequest {
        action: name.to_owned(),
        all: true,
        q: search.to_owned(),
        jobs: Vec::new(),
        arg,
    }
}

/// Starts an operation after a confirmation, and waits for its end if that is asked for.
pub async fn start(session: &Session, request: &OperationRequest, bulk: &BulkFlags) -> Outcome {
    let call = Confirm {
        request: request.clone(),
    };
    let view = session.read(call).await?.map_err(|why| {
        let is_empty = why == no_jobs(request);
        Failure::new(
            if is_empty {
                Code::NotFound
            } else {
                Code::Usage
            },
            why,
        )
    })?;
    let at_least = if view.is_minimum { "at least " } else { "" };
    let (jobs, applicable) = (number(view.jobs), number(view.applicable));
    if bulk.dry_run {
        let json = || {
            json!({
                "action": request.action, "jobs": view.jobs, "jobs_is_minimum": view.is_minimum,
                "applicable": view.applicable, "can_be_undone": view.can_be_undone,
                "samples": view.samples.iter().map(job_json).collect::<Vec<_>>(),
            })
        };
        let text = || {
            let undo = if view.can_be_undone { "can" } else { "cannot" };
            format!(
                "matching jobs: {at_least}{jobs}; {applicable} can be changed in their current state; this {undo} be \
                 undone\n\n{}",
                job_table(&view.samples)
            )
        };
        print(&session.format(json, text));
        return Ok(());
    }
    let argument = if request.arg.is_empty() {
        String::new()
    } else {
        format!(" ({})", request.arg)
    };
    let question = format!(
        "{}{argument}: matching jobs: {at_least}{jobs}. Continue?",
        request.action
    );
    session.confirm(&question, bulk.yes.yes)?;
    let (id, message) = begin(session, request, &view).await?;
    if !bulk.wait {
        let json =
            || json!({ "operation": id, "jobs": view.jobs, "jobs_is_minimum": view.is_minimum });
        print(&session.format(json, || format!("operation {id}\n")));
        if !session.json {
            print_notice(&printable(&message));
        }
        return Ok(());
    }
    wait(session, id).await
}

/// Starts an operation on the jobs that were counted. Returns its number and the server's message.
///
/// # Errors
/// If the server cannot be reached, or refuses it.
pub async fn begin(
    session: &Session,
    request: &OperationRequest,
    view: &ConfirmView,
) -> Result<(i64, String)> {
    let seen = Confirmation {
        counted: view.jobs.to_string(),
        undo: if view.can_be_undone { "yes" } else { "" }.to_owned(),
        typed: view.jobs.to_string(),
    };
    let OperationRequest {
        action,
        q,
        jobs,
        arg,
        ..
    } = request.clone();
    let done = session
        .act(StartOperation {
            action,
            of: "all".to_owned(),
            q,
            jobs,
            arg,
            from: String::new(),
            seen,
        })
        .await?;
    let id = done
        .page
        .rsplit('/')
        .next()
        .and_then(|id| id.parse::<i64>().ok());
    let id =
        id.ok_or_else(|| Failure::new(Code::Error, "the server did not name the operation"))?;
    Ok((id, done.message))
}

/// Waits for the end of an operation and shows its result.
///
/// # Errors
/// If it fails or is stopped.
pub async fn wait(session: &Session, id: i64) -> Outcome {
    wait_until(session, async || Ok(finished(session, id).await?.is_some())).await?;
    let (text, failure) = result_of(session, id).await?;
    print(&text);
    failure.map_or(Ok(()), |failure| Err(failure.into()))
}
