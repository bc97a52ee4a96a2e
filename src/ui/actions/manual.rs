//! Retries a failed job with another payload or after a delay, and completes a job without a worker. The forms contain
//! the state that the page has shown: a job that has changed since is refused.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::input::{optional, seconds};
use super::{Action, ActionOutcome, Target, act};
use crate::auth::Role;
use crate::blocking::poll_blocking_if_many;
use crate::engine::{EffectiveState, Engine, Error, JobKey, SeenJob, Time};
use crate::memory::reserve_with_copy;
use crate::query::minified;
use crate::ui::context::sentence;
use crate::ui::error::PageError;
use crate::ui::pages::edit::load::EDITED_BYTES_MAX;
use crate::ui::pages::edit::model::{EditedJob, RejectedEdit};

/// `POST /ui/edit`
pub static EDIT_AND_RETRY: Action = Action::new(
    "edit_and_retry",
    "/ui/edit",
    Role::Operator,
    Target::qless_job,
);

pub static COMPLETE: Action =
    Action::new("complete", Complete::PATH, Role::Admin, Target::qless_job);

/// Retries the job of a form. Returns the message, and the operation that undoes it.
pub async fn edit_and_retry(
    engine: &Engine,
    user: &str,
    form: EditedJob,
) -> Result<(String, i64), RejectedEdit> {
    let retry = async {
        let seen = seen_job(&form.id, &form.state, &form.since)?;
        let delay = optional(&form.delay).map(|text| seconds("the delay", text, "1"));
        let delay = delay.transpose()?.unwrap_or_default();
        let body = new_payload(engine, &form).await?;
        let is_edited = body.is_some();
        let done = engine.edit_and_retry(seen, body, delay, user.to_owned());
        let done = done.await.map_err(|error| error.to_string())?;
        let operation = done.map_err(|why| why.to_string())?;
        let with = if is_edited { " with a new payload" } else { "" };
        let after = if delay > 0.0 {
            format!(", to run in {delay} s")
        } else {
            String::new()
        };
        let message = format!("Job “{}” was requeued{with}{after}.", form.id);
        Ok((message, operation))
    };
    retry.await.map_err(|why: String| RejectedEdit {
        why: sentence(&why),
        typed: form,
    })
}

/// The payload of the form without whitespace; `None` if it is the same JSON as that of the job.
async fn new_payload(engine: &Engine, form: &EditedJob) -> Result<Option<String>, String> {
    let Some(typed) = &form.data else {
        return Ok(None);
    };
    let typed = minified(typed).map_err(|why| format!("the payload is not valid JSON: {why}"))?;
    let key = JobKey::qless(&form.id);
    let is_same = Box::pin(has_payload(engine, &key, &typed)).await;
    let is_same = is_same.map_err(|error| error.to_string())?;
    Ok((!is_same).then_some(typed))
}

/// Whether this JSON without whitespace is the payload of the job. A payload that is too large for the page is not
/// compared. The page did not show it, so the payload in the form replaces it.
async fn has_payload(engine: &Engine, key: &JobKey, typed: &str) -> Result<bool, Error> {
    let bytes = engine.body_bytes(key).await?;
    let Some(bytes) = bytes.filter(|bytes| *bytes <= EDITED_BYTES_MAX) else {
        return Ok(false);
    };
    // For the payload and its copy without whitespace, until they have been compared.
    let _reserved = reserve_with_copy(bytes).await?;
    let body = engine.body_up_to(key, bytes).await?;
    let compare =
        async { body.is_some_and(|body| minified(&body).is_ok_and(|stored| stored == typed)) };
    Ok(poll_blocking_if_many(bytes, compare).await)
}

/// The job as the page has shown it.
fn seen_job(id: &str, state: &str, since: &str) -> Result<SeenJob, String> {
    let state = EffectiveState::ALL
        .into_iter()
        .find(|it| it.as_str() == state);
    match (state, since.parse()) {
        (Some(state), Ok(since)) => Ok(SeenJob {
            key: JobKey::qless(id),
            state,
            since: Time(since),
        }),
        _ => {
            Err("the form does not say which state the job was in; load the page again".to_owned())
        }
    }
}

/// Completes a job without a worker.
#[server]
pub async fn complete(
    id: String,
    state: String,
    since: String,
    back: String,
) -> Result<(), PageError> {
    act(&COMPLETE, &back, async |context| {
        let seen = seen_job(&id, &state, &since)?;
        let user = context.user.clone();
        let done = context.engine.complete_manually(seen, user).await?;
        let (operation, can_be_undone) = done.map_err(|why| why.to_string())?;
        let outcome = ActionOutcome::from(format!("Job “{id}” completed."));
        Ok(if can_be_undone {
            outcome.with_undo(operation)
        } else {
            outcome
        })
    })
    .await
}
