//! Forms that are answered with their own page, because they contain long texts that an error must not lose, or create
//! a secret that is shown once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use leptos::prelude::provide_context;
use serde::Deserialize;

use super::Dashboard;
use super::authentication::{RequestInfo, forbid};
use super::forms::{
    PageForm, redirect_with_message, redirect_with_undo, render, render_in, set_status, take_slot,
};
use super::large_forms::Rejected;
use crate::ui::actions::database::CHECK;
use crate::ui::actions::manual::{self, EDIT_AND_RETRY};
use crate::ui::actions::put::PUT;
use crate::ui::actions::records::{
    CREATE_RECORD, SET_STATE, change_record, create_record as create,
};
use crate::ui::actions::tokens::{CREATE_TOKEN, create_token as create_secret};
use crate::ui::context::sentence;
use crate::ui::error::PageError;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::check::load::load_check;
use crate::ui::pages::check::model::{CheckOutcome, CheckView};
use crate::ui::pages::edit::model::EditedJob;
use crate::ui::pages::namespaces::model::NewToken;
use crate::ui::pages::put::model::NewJob;
use crate::ui::pages::records::model::{Change, NewRecord, RecordFormError};
use crate::ui::{actions, urls};

/// `POST /ui/check`
pub async fn check(State(dashboard): State<Dashboard>, info: RequestInfo) -> Response {
    if !info.may(CHECK.role) {
        return forbid(dashboard, info, CHECK.role).await;
    }
    let checked = load_check(&dashboard.engine).await.map_err(|error| {
        tracing::error!(%error, "failed to check the database");
        PageError::Unavailable(sentence(&error))
    });
    let (status, outcome) = match &checked {
        Ok(view) => (StatusCode::OK, found(view)),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    };
    info.set_outcome(checked.is_ok(), &outcome);
    let checked = CheckOutcome(checked);
    let mut response = render(dashboard, &Uri::from_static(CHECK.path), info, move || {
        provide_context(checked.clone());
    })
    .await;
    set_status(&mut response, status);
    response
}

/// How many inconsistencies a check has found.
fn found(view: &CheckView) -> String {
    match view.total() {
        0 => "No inconsistencies found.".to_owned(),
        1 => "1 inconsistency found.".to_owned(),
        n => format!("{n} inconsistencies found."),
    }
}

/// `POST /ui/put`
pub async fn put(
    State(dashboard): State<Dashboard>,
    info: RequestInfo,
    PageForm(form): PageForm<NewJob>,
) -> Response {
    if !info.may(PUT.role) {
        return forbid(dashboard, info, PUT.role).await;
    }
    match actions::put::put(&info.engine(&dashboard), form).await {
        Ok(id) => {
            let message = format!("Job “{id}” added.");
            redirect_with_message(&info, &urls::qless_job(&id), message)
        }
        Err(rejected) => show_rejected(dashboard, info, rejected).await,
    }
}

/// `POST /ui/edit`
pub async fn edit_and_retry(
    State(dashboard): State<Dashboard>,
    info: RequestInfo,
    PageForm(form): PageForm<EditedJob>,
) -> Response {
    if !info.may(EDIT_AND_RETRY.role) {
        return forbid(dashboard, info, EDIT_AND_RETRY.role).await;
    }
    let (engine, id) = (info.engine(&dashboard), form.id.clone());
    match manual::edit_and_retry(&engine, info.user(), form).await {
        Ok((message, operation)) => {
            redirect_with_undo(&info, &urls::qless_job(&id), message, Some(operation))
        }
        Err(rejected) => show_rejected(dashboard, info, rejected).await,
    }
}

/// Shows the page of a form with what was typed, and why it was rejected.
async fn show_rejected(
    dashboard: Dashboard,
    info: RequestInfo,
    rejected: impl Rejected,
) -> Response {
    // The error can quote the payload, which must not appear in the audit log.
    info.set_outcome(false, "The form was rejected.");
    let (uri, rejected) = (info.uri.clone(), rejected.limited());
    render(dashboard, &uri, info, move || {
        provide_context(rejected.clone());
    })
    .await
}

/// `POST /ui/jobq/{name}`
pub async fn create_record(
    State(dashboard): State<Dashboard>,
    info: RequestInfo,
    PageForm(form): PageForm<NewRecord>,
) -> Response {
    if !info.may(CREATE_RECORD.role) {
        return forbid(dashboard, info, CREATE_RECORD.role).await;
    }
    let (queue, _) = PageRequest::at(info.uri.path()).queue();
    let (engine, bytes_max) = (info.engine(&dashboard), dashboard.jobq_body_max);
    match create(&engine, &queue, &form, bytes_max).await {
        Ok(id) => {
            let page = urls::job(&queue, &id.to_string());
            redirect_with_message(&info, &page, format!("Job {id} created."))
        }
        Err(form_error) => show_record_error(dashboard, info, form_error).await,
    }
}

/// `POST /ui/jobq/{name}/job/{id}`
pub async fn change(
    State(dashboard): State<Dashboard>,
    info: RequestInfo,
    PageForm(form): PageForm<Change>,
) -> Response {
    if !info.may(SET_STATE.role) {
        return forbid(dashboard, info, SET_STATE.role).await;
    }
    let request = PageRequest::at(info.uri.path());
    let (queue, id) = request.queue_and_job();
    // The state is left out: it can be as long and as private as a payload.
    let outcome = match form {
        Change::State { .. } => "State set.",
        Change::Event { .. } => "Event added to the log.",
    };
    let (engine, bytes_max) = (info.engine(&dashboard), dashboard.jobq_body_max);
    match change_record(&engine, &queue, &id, form, bytes_max).await {
        Ok(message) => {
            info.set_outcome(true, outcome);
            redirect_with_message(&info, &urls::job(&queue, &id), message)
        }
        Err(form_error) => show_record_error(dashboard, info, form_error).await,
    }
}

/// The page of the form, with the user's input and the error.
async fn show_record_error(
    dashboard: Dashboard,
    info: RequestInfo,
    form_error: RecordFormError,
) -> Response {
    // Does not contain the user's input.
    let outcome = match &form_error {
        RecordFormError::Create(..) => "Job not created.",
        RecordFormError::Advance { .. } => "State not set.",
        RecordFormError::Conflict(_) => "State not set: it has changed since the page was loaded.",
        RecordFormError::Append { .. } => "Event not added.",
    };
    info.set_outcome(false, outcome);
    let (uri, form_error) = (info.uri.clone(), form_error.limited());
    render(dashboard, &uri, info, move || {
        provide_context(form_error.clone());
    })
    .await
}

/// The fields of the form for a new token.
#[derive(Deserialize)]
pub struct TokenForm {
    #[serde(default)]
    namespace: String,
    description: String,
    #[serde(default)]
    expires: String,
    /// Differs each time the form is shown.
    #[serde(default)]
    once: String,
}

/// The forms for tokens that were sent last: user, namespace and [`TokenForm::once`].
static SENT: Mutex<VecDeque<[String; 3]>> = Mutex::new(VecDeque::new());

/// How many of them are remembered.
const SENT_MAX: usize = 1_000;

/// Characters of each part that are remembered.
const SENT_CHARS_MAX: usize = 256;

/// Whether the form is sent for the first time. Programs other than browsers need not send [`TokenForm::once`].
fn is_first(user: &str, form: &TokenForm) -> bool {
    if form.once.is_empty() {
        return true;
    }
    // Bounds the memory; valid names and the server's own values are shorter.
    let start = |text: &str| text.chars().take(SENT_CHARS_MAX).collect();
    let sent = [user, form.namespace.trim(), &form.once].map(start);
    let mut all = SENT.lock().unwrap_or_else(PoisonError::into_inner);
    if all.contains(&sent) {
        return false;
    }
    if all.len() >= SENT_MAX {
        all.pop_front();
    }
    all.push_back(sent);
    true
}

/// `POST /ui/namespaces`
pub async fn create_token(
    State(dashboard): State<Dashboard>,
    info: RequestInfo,
    PageForm(form): PageForm<TokenForm>,
) -> Response {
    show_new_token(dashboard, info, form).await
}

/// `POST /ui/namespaces/{name}`
pub async fn create_token_in(
    State(dashboard): State<Dashboard>,
    Path(namespace): Path<String>,
    info: RequestInfo,
    PageForm(form): PageForm<TokenForm>,
) -> Response {
    show_new_token(dashboard, info, TokenForm { namespace, ..form }).await
}

/// Creates a token and shows it in the response. A redirect would have to put it into a cookie or a URL.
async fn show_new_token(dashboard: Dashboard, info: RequestInfo, form: TokenForm) -> Response {
    if !info.may(CREATE_TOKEN.role) {
        return forbid(dashboard, info, CREATE_TOKEN.role).await;
    }
    let uri = info.uri.clone();
    // Before the token is created, because its secret is shown only in this response.
    let slot = match take_slot(&dashboard, &uri, &info).await {
        Ok(slot) => slot,
        Err(busy) => return busy,
    };
    let namespace = form.namespace.trim();
    let engine = info.engine(&dashboard);
    let made = if is_first(info.user(), &form) {
        create_secret(&engine, namespace, &form.description, &form.expires).await
    } else {
        Err("this form was already sent; to create another token, send the form again".to_owned())
    };
    match &made {
        Ok(_) => info.set_outcome(true, &format!("Token created for {namespace}.")),
        Err(why) => info.set_outcome(false, &format!("Token not created: {why}.")),
    }
    let token = NewToken {
        namespace: namespace.to_owned(),
        description: form.description,
        expires: form.expires,
        made,
    };
    let mut response = render_in(slot, dashboard, &uri, info, move || {
        provide_context(token.clone());
    })
    .await;
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    response
}
