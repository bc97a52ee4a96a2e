//! The audit log: one entry per form that changes something. The engine adds the changes in the same transaction; the
//! outcome is added afterwards, as the message that the user sees.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use tokio::time::timeout;
use uuid::Uuid;

use super::authentication::{RequestInfo, forbid};
use super::forms::error_page;
use super::{Dashboard, FORM_BYTES_MAX};
use crate::auth::{Identity, Role};
use crate::engine::{Actor, Engine};
use crate::request::{RequestId, count_parameters, drain};
use crate::ui::access::is_read_function;
use crate::ui::actions::manual::EDIT_AND_RETRY;
use crate::ui::actions::put::PUT;
use crate::ui::actions::{self, Form, Target};
use crate::ui::error::PageError;
use crate::ui::http::PAGE_TIMEOUT;
use crate::ui::http::guard::PARAMETERS_MAX;

/// The audit entry of an action in progress.
#[derive(Clone, Debug)]
pub struct PendingEntry {
    actor: Arc<Actor>,
    outcome: Arc<OnceLock<(bool, String)>>,
}

impl PendingEntry {
    /// The engine, which adds its changes to the entry.
    pub fn engine(&self, engine: &Engine) -> Engine {
        engine.acting_as(Arc::clone(&self.actor))
    }

    /// Sets whether the action was done, and the message. Only the first call counts.
    pub fn set_outcome(&self, is_done: bool, text: &str) {
        drop(self.outcome.set((is_done, text.to_owned())));
    }
}

/// The user and the request of an audit entry.
pub fn actor(info: &RequestInfo, user: &Identity, action: &str) -> Actor {
    let id = info.request_id.clone();
    Actor {
        id: Uuid::now_v7().simple().to_string(),
        who: user.name.clone(),
        role: user.role.as_str().to_owned(),
        action: action.to_owned(),
        request_id: id.map(|RequestId(id)| id).unwrap_or_default(),
        source: info.from.map(|from| from.to_string()).unwrap_or_default(),
        ..Actor::default()
    }
}

/// Records an action that the user's role forbids. For invalid forms, whose target is uncertain.
async fn record_if_forbidden(dashboard: &Dashboard, info: &RequestInfo, form: &Form, least: Role) {
    let user = info.principal.as_ref();
    let user = user.filter(|user| user.has_credentials() && user.identity.role < least);
    let (Some(user), Some((action, _))) = (user, actions::audited(form)) else {
        return;
    };
    let rejections = &dashboard.authenticator.rejections;
    let actor = actor(info, &user.identity, &action);
    rejections
        .record(&dashboard.engine, &actor, &requires(least))
        .await;
}

fn requires(least: Role) -> String {
    format!("Requires the {} role.", least.as_str())
}

/// Runs an action if the user has the role `least` and has not taken too many. Writes the audit entry also if it fails
/// or is rejected; but not for rejected requests of guests, nor for invalid forms of users who have the role.
pub async fn audit(dashboard: Dashboard, request: Request, least: Role, next: Next) -> Response {
    let info = RequestInfo::of(&request);
    let Some(principal) = info.principal.clone() else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let (mut request, body, is_cut) = match buffer_form(request, FORM_BYTES_MAX).await {
        Ok(buffered) => buffered,
        Err(status) => return status.into_response(),
    };
    let form = form_at(request.uri().path(), &body);
    if let Some(why) = unreadable(&body).or_else(|| invalid(&form, &body, is_cut)) {
        record_if_forbidden(&dashboard, &info, &form, least).await;
        return error_page(dashboard, info, PageError::Request(why)).await;
    }
    let Some((action, target)) = actions::audited(&form) else {
        return run_or_forbid(dashboard, request, info, least, next).await;
    };
    let Target { text, link } = target;
    let actor = Actor {
        target: text,
        link,
        ..actor(&info, &principal.identity, &action)
    };
    let entry = PendingEntry {
        actor: Arc::new(actor),
        outcome: Arc::default(),
    };
    request.extensions_mut().insert(entry.clone());
    let is_allowed = principal.identity.role >= least;
    let (engine, authenticator) = (
        dashboard.engine.clone(),
        Arc::clone(&dashboard.authenticator),
    );
    // Without credentials there is no user to count. Rejected requests of guests are not recorded: there can be many.
    let reject = async |why: &str| {
        if principal.has_credentials() {
            let rejections = &authenticator.rejections;
            rejections.record(&engine, &entry.actor, why).await;
        }
    };
    // Functions that only read are in no entry unless they are rejected.
    let is_action = !is_read_function(request.uri().path());
    if is_allowed && is_action && principal.has_credentials() {
        let counted = authenticator.action_limit.count(&principal.identity, 1);
        if let Err(wait) = counted {
            reject("Too many actions.").await;
            drain(request).await;
            return too_many(dashboard, info, wait).await;
        }
    }
    let response = run_or_forbid(dashboard, request, info, least, next).await;
    if !is_allowed {
        reject(&requires(least)).await;
        return response;
    }
    let status = response.status();
    let outcome = entry.outcome.get().cloned().or_else(|| {
        let is_rejected = status.is_client_error()
            && ![StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&status);
        let failed = || (false, format!("The request failed with status {status}."));
        (is_rejected || status.is_server_error()).then(failed)
    });
    if let Some((is_done, text)) = outcome
        && let Err(error) = engine.record_outcome(&entry.actor, is_done, &text).await
    {
        tracing::error!(%error, "failed to write the audit log");
    }
    response
}

/// Runs a POST that all users may send, and that is in no audit entry: a function that only reads, a setting, a
/// sign-out.
pub async fn run_valid(dashboard: Dashboard, request: Request, next: Next) -> Response {
    let info = RequestInfo::of(&request);
    // The form must arrive within the time limit of a page.
    let Ok(buffered) = timeout(PAGE_TIMEOUT, buffer_form(request, FORM_BYTES_MAX)).await else {
        return StatusCode::REQUEST_TIMEOUT.into_response();
    };
    match buffered {
        Ok((request, form, _)) => match unreadable(&form) {
            Some(why) => error_page(dashboard, info, PageError::Request(why)).await,
            None => next.run(request).await,
        },
        Err(status) => status.into_response(),
    }
}

/// The response to a user who takes too many actions.
async fn too_many(dashboard: Dashboard, info: RequestInfo, wait: Duration) -> Response {
    let seconds = wait.as_secs() + 1;
    let why = format!("You have taken too many actions. Try again in {seconds} s.");
    let mut response = error_page(dashboard, info, PageError::TooMany(why)).await;
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

async fn run_or_forbid(
    dashboard: Dashboard,
    request: Request,
    info: RequestInfo,
    least: Role,
    next: Next,
) -> Response {
    if info.may(least) {
        next.run(request).await
    } else {
        forbid(dashboard, info, least).await
    }
}

/// The form posted to `path`; without fields if it has too many.
fn form_at(path: &str, body: &[u8]) -> Form {
    match has_too_many_fields(body) {
        true => Form::new(path, &[]),
        false => Form::new(path, body),
    }
}

/// Whether a form has so many fields that they would occupy many times its size.
fn has_too_many_fields(form: &[u8]) -> bool {
    count_parameters(form) > PARAMETERS_MAX
}

/// Why the fields of a form are not read.
fn unreadable(form: &[u8]) -> Option<String> {
    if has_nul(form) {
        Some("A field of the form contains a NUL character.".to_owned())
    } else if has_too_many_fields(form) {
        Some(format!("The form has more than {PARAMETERS_MAX} fields."))
    } else {
        None
    }
}

/// Why a form is rejected before its action runs: the log could not name its target. `is_cut`: the form continues after
/// these fields.
fn invalid(form: &Form, body: &[u8], is_cut: bool) -> Option<String> {
    let why = if !form_parts(body).all(has_plain_name) {
        "The name of a field is invalid."
    } else if is_cut && form.path() == PUT.path && form.field("queue").is_empty() {
        "The field with the queue must precede the one with the payload."
    } else if is_cut && form.path() == EDIT_AND_RETRY.path && form.field("id").is_empty() {
        "The field with the ID must precede the one with the payload."
    } else if is_cut
        && actions::deciding_field(form.path()).is_some_and(|it| form.field(it).is_empty())
    {
        "The field that selects the action must precede long ones."
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// The fields of a form, with their values.
fn form_parts(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = body.split(|byte| *byte == b'&');
    parts.filter(|part| !part.is_empty())
}

/// Whether the name of a field is a word, optionally followed by words in brackets: `form[id]`, as browsers send it.
/// Server functions also read other spellings, such as `form[[id]`, which the audit log would not recognize.
fn has_plain_name(part: &[u8]) -> bool {
    let name = part.split(|byte| *byte == b'=').next().unwrap_or_default();
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    let name = name.replace("%5B", "[").replace("%5D", "]");
    let is_word = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let (first, rest) = name.split_at(name.find('[').unwrap_or(name.len()));
    let mut bracketed = rest.split_inclusive(']');
    !first.is_empty()
        && is_word(first)
        && bracketed.all(|part| {
            let inner = part.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
            inner.is_some_and(is_word)
        })
}

/// Whether a field of the form contains a NUL, which Postgres cannot store or search.
fn has_nul(form: &[u8]) -> bool {
    memchr::memchr(0, form).is_some() || memchr::memmem::find(form, b"%00").is_some()
}

/// Buffers the form of a client without credentials in one piece: each frame, if it has only one byte, would keep the
/// buffer of 8 KiB into which it was read.
///
/// # Errors
/// The status of the response, if the body does not arrive.
pub async fn buffered(request: Request, bytes_max: usize) -> Result<Request, StatusCode> {
    let (request, ..) = buffer_form(request, bytes_max).await?;
    Ok(request)
}

/// Buffers the first `bytes_max` bytes of the form. Returns the fields that are complete in them, with a request that still
/// has the whole body, and whether there are more fields. In the forms of pages, the fields that name the target precede
/// the payload.
async fn buffer_form(
    request: Request,
    bytes_max: usize,
) -> Result<(Request, Bytes, bool), StatusCode> {
    let (parts, body) = request.into_parts();
    let (mut read, mut rest) = (BytesMut::new(), body.into_data_stream());
    while read.len() <= bytes_max
        && let Some(part) = rest.next().await
    {
        read.extend_from_slice(&part.map_err(|_| StatusCode::BAD_REQUEST)?);
    }
    let read = read.freeze();
    let form = read.slice(..complete_fields(&read, bytes_max));
    let is_cut = form.len() < read.len();
    let whole = stream::once(async { Ok(read) }).chain(rest);
    let request = Request::from_parts(parts, Body::from_stream(whole));
    Ok((request, form, is_cut))
}

/// The length of the fields of a form that are complete in its first `bytes_max` bytes.
fn complete_fields(read: &[u8], bytes_max: usize) -> usize {
    match read.get(..bytes_max + 1) {
        Some(beginning) => memchr::memrchr(b'&', beginning).unwrap_or_default(),
        None => read.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_buffered_form_keeps_no_buffer_from_which_it_was_read() {
        let read = Bytes::from(vec![b'a'; 10_000]);
        let frames = (0..100).map(|at| read.slice(at..=at));
        let frames: Vec<_> = frames.map(Ok::<_, axum::Error>).collect();
        let request = Request::new(Body::from_stream(stream::iter(frames)));
        let buffered = buffered(request, 1_000).await.unwrap();
        assert!(read.is_unique());
        let form = axum::body::to_bytes(buffered.into_body(), 1_000).await;
        assert_eq!(form.unwrap(), read.slice(..100));
    }
}
