//! Counts the jobs of a bulk operation, for its confirmation.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, Result};
use crate::ui::actions::operations::{
    action_kind, engine_action, job_selection, must_type, no_jobs, without_argument,
};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::operation::{ConfirmView, OperationRequest};
use crate::ui::present::queue_refs::queue_names;
use crate::ui::present::rows;

/// What a bulk operation would change, or why it is not possible.
#[server]
pub async fn confirm(request: OperationRequest) -> Result<Result<ConfirmView, String>, PageError> {
    read(Role::Operator, async |context| {
        load_confirm(&context.engine, &request).await
    })
    .await
}

/// What the confirmation shows, or why the action is not possible.
pub async fn load_confirm(
    engine: &Engine,
    request: &OperationRequest,
) -> Result<Result<ConfirmView, String>> {
    // A missing argument is not an error: the page has a field for it.
    let action = match action_kind(request) {
        Ok(kind) => engine_action(kind, request).unwrap_or_else(|_| without_argument(kind)),
        Err(why) => return Ok(Err(why)),
    };
    let selection = match job_selection(request) {
        Ok(selection) => selection,
        Err(why) => return Ok(Err(why)),
    };
    let counted = match engine.estimate_operation(&action, &selection).await? {
        Ok(counted) => counted,
        Err(why) => return Ok(Err(why.to_string())),
    };
    if counted.jobs == 0 && !counted.is_lower_bound {
        return Ok(Err(no_jobs(request)));
    }
    Ok(Ok(ConfirmView {
        jobs: counted.jobs,
        is_minimum: counted.is_lower_bound,
        applicable: counted.applicable,
        samples: rows(engine, &counted.samples),
        can_be_undone: action.removes() && counted.can_be_kept(),
        must_type: must_type(&counted),
        queues: queue_names(engine),
    }))
}
