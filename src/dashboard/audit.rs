//! What people do, for the audit: one entry for each form that acts. What it changes the engine notes with the change
//! itself; how it ended is added here, in the words in which it was told.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use futures::{StreamExt, stream};
use uuid::Uuid;

use super::entry::{Asked, forbid};
use super::{Dashboard, FORM_BYTES_MAX};
use crate::api::turn::{self, Target};
use crate::api::views::{AuditQuery, Role};
use crate::app::visit::{AuthMethod, Visit};
use crate::auth::Identity;
use crate::engine::{Actor, Engine};
use crate::request::RequestId;

/// Somebody's action while it is done, and what became of it.
#[derive(Clone, Debug)]
pub struct Noted {
    actor: Arc<Actor>,
    said: Arc<OnceLock<(bool, String)>>,
}

impl Noted {
    /// The engine, which notes what is changed through it.
    pub fn engine(&self, engine: &Engine) -> Engine {
        engine.acting_as(Arc::clone(&self.actor))
    }

    /// Whether it was done, and in what words that is told. The first word counts.
    pub fn say(&self, done: bool, text: &str) {
        drop(self.said.set((done, text.to_owned())));
    }
}

/// Who asks for what by this request.
pub fn actor_of(asked: &Asked, who: &Identity, action: &str) -> Actor {
    let id = asked.request_id.clone();
    Actor {
        id: Uuid::now_v7().simple().to_string(),
        who: who.name.clone(),
        role: who.role.as_str().to_owned(),
        action: action.to_owned(),
        request_id: id.map(|RequestId(id)| id).unwrap_or_default(),
        source: asked.from.map(|from| from.to_string()).unwrap_or_default(),
        ..Actor::default()
    }
}

/// Lets somebody act whose role suffices, and notes it either way.
pub async fn note(dashboard: Dashboard, request: Request, least: Role, next: Next) -> Response {
    let asked = Asked::by(&request);
    let Some(principal) = asked.principal.clone() else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let (mut request, fields) = match fields_of(request).await {
        Ok(read) => read,
        Err(status) => return status.into_response(),
    };
    let path = request.uri().path();
    let Some((action, target)) = turn::audited_action(path, &fields) else {
        return answer(dashboard, request, asked, least, next).await;
    };
    let Target { words, link } = target;
    let actor = Actor {
        target: words,
        link,
        ..actor_of(&asked, &principal.identity, &action)
    };
    let noted = Noted {
        actor: Arc::new(actor),
        said: Arc::default(),
    };
    request.extensions_mut().insert(noted.clone());
    let is_allowed = principal.identity.role >= least;
    let (engine, entry) = (dashboard.engine.clone(), Arc::clone(&dashboard.entry));
    let response = answer(dashboard, request, asked, least, next).await;
    if !is_allowed {
        // Guests are many and have no name.
        if matches!(principal.method, AuthMethod::Key | AuthMethod::Session) {
            let why = format!("Requires the {} role.", least.as_str());
            entry.refused.note(&engine, &noted.actor, &why).await;
        }
        return response;
    }
    let status = response.status();
    let outcome = noted.said.get().cloned().or_else(|| {
        let is_unread = status.is_client_error()
            && ![StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&status);
        let unread = || (false, format!("The request failed with status {status}."));
        (is_unread || status.is_server_error()).then(unread)
    });
    if let Some((done, said)) = outcome
        && let Err(error) = engine.record_outcome(&noted.actor, done, &said).await
    {
        tracing::error!(%error, "failed to write the audit log");
    }
    response
}

async fn answer(
    dashboard: Dashboard,
    request: Request,
    asked: Asked,
    least: Role,
    next: Next,
) -> Response {
    let role = asked
        .principal
        .as_ref()
        .map(|principal| principal.identity.role);
    if role.is_some_and(|role| role >= least) {
        next.run(request).await
    } else {
        forbid(dashboard, asked, least).await
    }
}

/// The fields of a form that is not too long to be looked at twice. Of a longer one its page knows all that matters.
async fn fields_of(request: Request) -> Result<(Request, Vec<(String, String)>), StatusCode> {
    let (parts, body) = request.into_parts();
    let (mut read, mut rest) = (BytesMut::new(), body.into_data_stream());
    while read.len() <= FORM_BYTES_MAX
        && let Some(some) = rest.next().await
    {
        read.extend_from_slice(&some.map_err(|_| StatusCode::BAD_REQUEST)?);
    }
    let read = read.freeze();
    let fields = Visit {
        query: match read.len() <= FORM_BYTES_MAX {
            true => String::from_utf8_lossy(&read).into_owned(),
            false => String::new(),
        },
        ..Visit::default()
    };
    let whole = stream::once(async { Ok(read) }).chain(rest);
    let request = Request::from_parts(parts, Body::from_stream(whole));
    Ok((request, fields.all_params()))
}

/// The most entries of an export.
const EXPORT_MAX: usize = 10_000;

/// `GET /ui/audit.csv`
pub async fn csv(State(dashboard): State<Dashboard>, asked: Asked) -> Response {
    export(dashboard, asked, "csv", "text/csv; charset=utf-8").await
}

/// `GET /ui/audit.json`
pub async fn json(State(dashboard): State<Dashboard>, asked: Asked) -> Response {
    export(dashboard, asked, "json", "application/json").await
}

async fn export(
    dashboard: Dashboard,
    asked: Asked,
    kind: &'static str,
    content: &'static str,
) -> Response {
    if !asked.may(Role::Admin) {
        return forbid(dashboard, asked, Role::Admin).await;
    }
    let visit = Visit {
        query: asked.uri.query().unwrap_or_default().to_owned(),
        ..Visit::default()
    };
    let query = AuditQuery::of(|name| visit.param(name).unwrap_or_default());
    let found = turn::audit_export(&dashboard.engine, &query, EXPORT_MAX).await;
    let (entries, more) = match found {
        Ok(found) => found,
        Err(error) => {
            tracing::error!(%error, "failed to read the audit log");
            let why = "The database is unavailable. Try again in a moment.\n";
            return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        }
    };
    let text = match kind {
        "csv" => turn::audit_csv(&entries),
        _ => turn::audit_json(&entries, more),
    };
    let mut headers = HeaderMap::new();
    let name = if more { "audit-newest" } else { "audit" };
    let disposition = format!("attachment; filename=\"{name}.{kind}\"");
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    // A table has no place to say so.
    let more = HeaderValue::from_static(if more { "true" } else { "false" });
    headers.insert(HeaderName::from_static("x-switchyard-more"), more);
    (headers, text).into_response()
}
