//! The form for a new job. What was typed may be long, and must not be lost: where it is refused, the form is answered
//! with its page, which has it.

use axum::extract::State;
use axum::response::Response;
use leptos::prelude::provide_context;

use super::entry::{Asked, forbid};
use super::forms::Filled;
use super::{Dashboard, forms};
use crate::api::turn;
use crate::api::views::{NewJob, Role};
use crate::app::visit::to;

/// `POST /ui/put`
pub async fn put(
    State(dashboard): State<Dashboard>,
    asked: Asked,
    Filled(form): Filled<NewJob>,
) -> Response {
    if !asked.may(Role::Operator) {
        return forbid(dashboard, asked, Role::Operator).await;
    }
    match turn::put(&asked.engine(&dashboard), form).await {
        Ok(id) => forms::lead_to(&asked, &to::qless_job(&id), format!("Job “{id}” added.")),
        Err(not_put) => {
            // The reason may have a piece of the payload in it.
            asked.say(false, "The form was rejected.");
            let more = move || provide_context(not_put.clone());
            let uri = asked.uri.clone();
            forms::answer(dashboard, &uri, asked, more).await
        }
    }
}
