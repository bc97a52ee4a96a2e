//! Forms about records of Jobq. What was typed may be long, and must not be lost: where it is refused, the form is
//! answered with its page, which has it.

use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use leptos::prelude::provide_context;

use super::{Dashboard, forms};
use crate::api::turn;
use crate::api::views::{Change, NewRecord, Undone};
use crate::app::visit::{Visit, to};

/// `POST /ui/jobq/{name}`
pub async fn create(
    State(dashboard): State<Dashboard>,
    uri: Uri,
    headers: HeaderMap,
    form: Result<Form<NewRecord>, FormRejection>,
) -> Response {
    let form = match form {
        Ok(Form(form)) => form,
        Err(why) => return forms::unread(dashboard, headers, &why).await,
    };
    let (queue, _) = visit(&uri).place();
    match turn::create_record(&dashboard.engine, &queue, &form).await {
        Ok(id) => {
            let page = to::job(&queue, &id.to_string());
            forms::lead_to(&page, format!("Job {id} is recorded."))
        }
        Err(undone) => answer(dashboard, &uri, headers, undone).await,
    }
}

/// `POST /ui/jobq/{name}/job/{id}`
pub async fn change(
    State(dashboard): State<Dashboard>,
    uri: Uri,
    headers: HeaderMap,
    form: Result<Form<Change>, FormRejection>,
) -> Response {
    let form = match form {
        Ok(Form(form)) => form,
        Err(why) => return forms::unread(dashboard, headers, &why).await,
    };
    let visit = visit(&uri);
    let (queue, next) = visit.place();
    // After the queue's name stands `job`.
    let id = visit.name(next + 1);
    match turn::change_record(&dashboard.engine, &queue, &id, form).await {
        Ok(done) => forms::lead_to(&to::job(&queue, &id), done),
        Err(undone) => answer(dashboard, &uri, headers, undone).await,
    }
}

fn visit(uri: &Uri) -> Visit {
    Visit {
        path: uri.path().to_owned(),
        ..Visit::default()
    }
}

/// The page on which the form stood, with what was typed and why nothing was done.
async fn answer(dashboard: Dashboard, uri: &Uri, headers: HeaderMap, undone: Undone) -> Response {
    let more = move || provide_context(undone.clone());
    forms::answer(dashboard, uri, headers, more).await
}
