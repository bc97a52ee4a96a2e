//! Starts, stops and undoes bulk operations. The page `confirm` shows what an operation would change.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::input::{check_name, number};
use super::{Action, ActionOutcome, Target, act};
use crate::auth::Role;
use crate::engine::{self, Engine, JobSelection, NewOperation, OperationEstimate};
use crate::search::Search;
use crate::ui::error::PageError;
use crate::ui::model::operation::{Confirmation, JobActionKind, OperationRequest};
use crate::ui::urls;

/// The number of jobs above which the user must type the number to confirm.
pub const TYPED_ABOVE: i64 = 1_000;

pub static START_OPERATION: Action = Action::new(
    "start_operation",
    StartOperation::PATH,
    Role::Operator,
    |form| {
        let jobs = match form.field("of") {
            "all" => form.field("q"),
            _ => "selected jobs",
        };
        Target::new(
            format!("{} of {jobs}", form.field("action")),
            urls::search(form.field("q")),
        )
    },
);

/// Starts an operation and shows its page. On error, shows the confirmation again with the user's input. `from` is the
/// list in which the user has chosen the jobs. The path is that of earlier versions.
#[server(endpoint = "operate")]
pub async fn start_operation(
    action: String,
    #[server(default)] of: String,
    #[server(default)] q: String,
    #[server(default)] jobs: Vec<String>,
    #[server(default)] arg: String,
    #[server(default)] from: String,
    #[server(flatten)] seen: Confirmation,
) -> Result<(), PageError> {
    let request = OperationRequest {
        action,
        all: of == "all",
        q,
        jobs,
        arg,
    };
    let back = urls::confirm(&request, &seen.typed, &from);
    act(&START_OPERATION, &back, async |context| {
        let (id, message) = start(&context.engine, &context.user, &request, &seen).await?;
        Ok(ActionOutcome::at(urls::operation(id), message))
    })
    .await
}

/// Starts the operation. Returns its ID and the message. Fails if there are no jobs; if the user must type their number
/// and typed another one, or there are now more than twice as many; or if undo was offered and is no longer possible.
pub async fn start(
    engine: &Engine,
    user: &str,
    request: &OperationRequest,
    seen: &Confirmation,
) -> Result<(i64, String), String> {
    let (kind, selection) = (action_kind(request)?, job_selection(request)?);
    let action = engine_action(kind, request)?;
    let text = |error: engine::Error| error.to_string();
    let counted = engine
        .estimate_operation(&action, &selection)
        .await
        .map_err(text)?;
    let counted = counted.map_err(|why| why.to_string())?;
    if counted.jobs == 0 && !counted.is_lower_bound {
        return Err(no_jobs(request));
    }
    let shown = seen.counted.parse().unwrap_or(0);
    if must_type(&counted) && typed_number(&seen.typed) != Some(shown) {
        return Err(
            "the number you typed does not match the number of jobs on the page; nothing was changed"
                .to_owned(),
        );
    }
    if must_type(&counted) && counted.jobs > i64::saturating_mul(shown, 2) {
        return Err(format!(
            "there are now {} jobs, more than twice the number shown; review and confirm again",
            counted.jobs
        ));
    }
    let removes = action.removes();
    let can_be_undone = removes && counted.can_be_kept();
    if seen.undo == "yes" && removes && !can_be_undone {
        return Err(
            "there are now too many jobs to undo this; review and confirm again".to_owned(),
        );
    }
    let asked = NewOperation {
        who: user.to_owned(),
        action,
        selection,
        estimate: counted,
    };
    let id = engine.start_operation(asked).await.map_err(text)?;
    let id = id.map_err(|why| why.to_string())?;
    let undo = if can_be_undone {
        " You can undo it for 30 s after it ends."
    } else {
        ""
    };
    Ok((id, format!("Operation started.{undo}")))
}

/// Whether the user must type the number of jobs.
pub fn must_type(counted: &OperationEstimate) -> bool {
    counted.jobs > TYPED_ABOVE || counted.is_lower_bound
}

/// A number with optional separators: `12,410`, `12 410`.
fn typed_number(text: &str) -> Option<i64> {
    let separator = |c: char| c == ',' || c.is_whitespace();
    text.replace(separator, "").parse().ok()
}

/// Why the request applies to no jobs.
pub fn no_jobs(request: &OperationRequest) -> String {
    if request.all {
        "no jobs match the search".to_owned()
    } else {
        "the selected jobs no longer exist".to_owned()
    }
}

/// The kind of action that the request names.
pub fn action_kind(request: &OperationRequest) -> Result<JobActionKind, String> {
    JobActionKind::parse(&request.action).ok_or_else(|| "no action was given".to_owned())
}

/// The action with its argument.
pub fn engine_action(
    kind: JobActionKind,
    request: &OperationRequest,
) -> Result<engine::JobAction, String> {
    let arg = request.arg.trim();
    Ok(match kind {
        JobActionKind::Retry => engine::JobAction::Retry,
        JobActionKind::Cancel => engine::JobAction::Cancel,
        JobActionKind::Track => engine::JobAction::Track,
        JobActionKind::Untrack => engine::JobAction::Untrack,
        JobActionKind::TimeOut => engine::JobAction::TimeOut,
        JobActionKind::EditAndRetry => engine::JobAction::EditAndRetry,
        JobActionKind::Complete => engine::JobAction::Complete,
        JobActionKind::Priority => engine::JobAction::Priority {
            priority: number("the priority", arg)?,
        },
        JobActionKind::Move => {
            // Not trimmed, because the name of a queue can start with whitespace.
            check_name("the queue name", &request.arg)?;
            engine::JobAction::Move {
                queue: request.arg.clone(),
            }
        }
        JobActionKind::RenameTag => {
            check_name("the tag", arg)?;
            let search = Search::parse(&request.q).map_err(|mistake| mistake.to_string())?;
            let from = search.tag().ok_or("the search names no tag to rename")?;
            engine::JobAction::RenameTag {
                from: from.to_owned(),
                to: arg.to_owned(),
            }
        }
        JobActionKind::Tag | JobActionKind::Untag => {
            check_name("the tag", arg)?;
            let tag = arg.to_owned();
            if kind == JobActionKind::Tag {
                engine::JobAction::Tag { tag }
            } else {
                engine::JobAction::Untag { tag }
            }
        }
    })
}

/// An action that applies to the same jobs as any action of this kind, to count the jobs before the argument is known.
pub fn without_argument(kind: JobActionKind) -> engine::JobAction {
    match kind {
        JobActionKind::Retry => engine::JobAction::Retry,
        JobActionKind::Cancel => engine::JobAction::Cancel,
        JobActionKind::TimeOut => engine::JobAction::TimeOut,
        JobActionKind::Move
        | JobActionKind::Priority
        | JobActionKind::Tag
        | JobActionKind::Untag
        | JobActionKind::RenameTag
        | JobActionKind::Track
        | JobActionKind::Untrack
        | JobActionKind::EditAndRetry
        | JobActionKind::Complete => engine::JobAction::Track,
    }
}

/// The jobs that the request names.
pub fn job_selection(request: &OperationRequest) -> Result<JobSelection, String> {
    if request.all {
        return Ok(JobSelection::Search(request.q.clone()));
    }
    let mut jobs: Vec<i64> = request
        .jobs
        .iter()
        .filter_map(|job| job.parse().ok())
        .collect();
    jobs.sort_unstable_by(|a, b| b.cmp(a));
    jobs.dedup();
    if jobs.is_empty() {
        return Err("no jobs are selected".to_owned());
    }
    Ok(JobSelection::Jobs(jobs))
}

const fn control(name: &'static str, path: &'static str) -> Action {
    Action::new(name, path, Role::Operator, |form| {
        let id = form.field("id");
        let link = id.parse().map(urls::operation).unwrap_or_default();
        Target::new(format!("operation {id}"), link)
    })
}

pub static STOP_OPERATION: Action = control("stop_operation", StopOperation::PATH);

/// Stops an operation. Changes that it has already made are kept.
#[server]
pub async fn stop_operation(id: i64, back: String) -> Result<(), PageError> {
    act(&STOP_OPERATION, &back, async |context| {
        let stopped = context.engine.stop_operation(id).await?;
        stopped.map_err(|why| why.to_string())?;
        Ok("Operation stopped. Changes already made are kept."
            .to_owned()
            .into())
    })
    .await
}

pub static UNDO_OPERATION: Action = control("undo_operation", UndoOperation::PATH);

/// Begins to undo an operation. Its jobs are restored in the background.
#[server]
pub async fn undo_operation(id: i64, back: String) -> Result<(), PageError> {
    act(&UNDO_OPERATION, &back, async |context| {
        let undone = context.engine.undo_operation(id).await?;
        undone.map_err(|why| why.to_string())?;
        Ok("Undo started.".to_owned().into())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_number_can_have_separators() {
        assert_eq!(typed_number(" 12,410 "), Some(12_410));
        assert_eq!(typed_number("12 410"), Some(12_410));
        for text in ["", "all", "12.410", "-"] {
            assert_eq!(typed_number(text), None, "{text}");
        }
    }
}
