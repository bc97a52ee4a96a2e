//! Forms about records of Jobq. What was typed may be long, and must not be lost: where it is refused, the form is
//! answered with its page, which has it.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use leptos::prelude::provide_context;

use super::entry::{Asked, forbid};
use super::forms::Filled;
use super::{Dashboard, forms};
use crate::api::turn;
use crate::api::views::{Change, NewRecord, Role, Undone};
use crate::app::visit::{Visit, to};

/// `POST /ui/jobq/{name}`
pub async fn create(
    State(dashboard): State<Dashboard>,
    asked: Asked,
    Filled(form): Filled<NewRecord>,
) -> Response {
    if !asked.may(Role::Operator) {
        return forbid(dashboard, asked, Role::Operator).await;
    }
    let (queue, _) = visit(&asked.uri).place();
    match turn::create_record(&asked.engine(&dashboard), &queue, &form).await {
        Ok(id) => {
            let page = to::job(&queue, &id.to_string());
            forms::lead_to(&asked, &page, format!("Job {id} created."))
        }
        Err(undone) => answer(dashboard, asked, undone).await,
    }
}

/// `POST /ui/jobq/{name}/job/{id}`
pub async fn change(
    State(dashboard): State<Dashboard>,
    asked: Asked,
    Filled(form): Filled<Change>,
) -> Response {
    if !asked.may(Role::Operator) {
        return forbid(dashboard, asked, Role::Operator).await;
    }
    let visit = visit(&asked.uri);
    let (queue, next) = visit.place();
    // After the queue's name stands `job`.
    let id = visit.name(next + 1);
    // A state may be as long as a payload, and as private.
    let said = match form {
        Change::State { .. } => "State set.",
        Change::Event { .. } => "Event added to the log.",
    };
    match turn::change_record(&asked.engine(&dashboard), &queue, &id, form).await {
        Ok(done) => {
            asked.say(true, said);
            forms::lead_to(&asked, &to::job(&queue, &id), done)
        }
        Err(undone) => answer(dashboard, asked, undone).await,
    }
}

fn visit(uri: &Uri) -> Visit {
    Visit {
        path: uri.path().to_owned(),
        ..Visit::default()
    }
}

/// The page on which the form stood, with what was typed and why nothing was done.
async fn answer(dashboard: Dashboard, asked: Asked, undone: Undone) -> Response {
    asked.say(false, told(&undone));
    let more = move || provide_context(undone.clone());
    let uri = asked.uri.clone();
    forms::answer(dashboard, &uri, asked, more).await
}

/// Why nothing was done, without what was typed.
fn told(undone: &Undone) -> &'static str {
    match undone {
        Undone::Create(..) => "The payload or state is invalid.",
        Undone::Advance { .. } => "The new state is invalid.",
        Undone::Conflict(_) => "State not set: it has changed since the page was loaded.",
        Undone::Append { .. } => "The event is invalid.",
    }
}
