//! Signing in and out.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use leptos::prelude::provide_context;
use serde::Deserialize;

use super::audit::actor_of;
use super::entry::{Asked, LOGIN, session};
use super::forms::Filled;
use super::{Dashboard, forms};
use crate::api::views::{Role, SignIn};
use crate::app::visit::{self, is_ours};
use crate::auth::{CredentialSource, Identity, PresentedCredentials};
use crate::engine::{Actor, Error, SESSION_AGE_S, Session};
use crate::secret::{self, Hash};

/// What somebody has typed.
#[derive(Deserialize)]
pub struct Typed {
    #[serde(default)]
    name: String,
    #[serde(default)]
    secret: String,
    /// The page to go on to.
    #[serde(default)]
    next: String,
}

/// Under which name the audit has those who gave none that any key belongs to.
const UNKNOWN: &str = "unknown";

/// `POST /ui/login`
pub async fn sign_in(
    State(dashboard): State<Dashboard>,
    asked: Asked,
    Filled(typed): Filled<Typed>,
) -> Response {
    let shown = PresentedCredentials::from_form(&typed.name, typed.secret.trim());
    let Ok(secret) = secret::generate() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let active = dashboard.entry.keyring.active();
    let keys = &active.ui;
    let attempt = || {
        let (who, proof) = keys.proof(&shown, &secret)?;
        Some((who.clone(), proof))
    };
    let throttle = &dashboard.entry.throttle;
    let found = throttle.attempt(
        asked.from,
        Hash::of(&typed.name),
        CredentialSource::Form,
        attempt,
    );
    // Each sign-in is a session and an entry of the audit.
    let found = found.and_then(|found| match &found {
        Some((who, _)) => throttle
            .sign_in(asked.from, Hash::of(&who.name))
            .map(|()| found),
        None => Ok(None),
    });
    let (who, proof) = match found {
        Ok(Some(found)) => found,
        Ok(None) => {
            tracing::warn!(from = ?asked.from, "failed sign-in: wrong name or key");
            // Names that no key has are not kept: strangers could write into the audit with them.
            let who = keys.known_name(&typed.name).unwrap_or(UNKNOWN);
            let who = Identity {
                name: who.to_owned(),
                role: Role::default(),
            };
            let actor = Actor {
                role: String::new(),
                ..actor_of(&asked, &who, "sign_in")
            };
            let refused = &dashboard.entry.refused;
            refused
                .note(&dashboard.engine, &actor, "Wrong name or key.")
                .await;
            let refused = SignIn::Wrong(typed.name);
            let status = StatusCode::FORBIDDEN;
            return page(dashboard, asked, typed.next, Some(refused), status).await;
        }
        Err(wait) => {
            let seconds = wait.as_secs() + 1;
            let status = StatusCode::TOO_MANY_REQUESTS;
            let refused = Some(SignIn::TooOften(seconds));
            let mut response = page(dashboard, asked, typed.next, refused, status).await;
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            return response;
        }
    };
    let begun = begin(&dashboard, &asked, &who, &secret, proof).await;
    if let Err(error) = begun {
        tracing::error!(%error, "failed to start a session");
        let why = "Cannot sign in: the database is unavailable. Try again in a moment.\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    let is_page = is_ours(&typed.next) && !typed.next.starts_with(LOGIN);
    let next = if is_page { &typed.next } else { "/ui" };
    let kept = session_cookie(&secret, SESSION_AGE_S);
    ([(header::SET_COOKIE, kept)], Redirect::to(next)).into_response()
}

async fn begin(
    dashboard: &Dashboard,
    asked: &Asked,
    who: &Identity,
    secret: &str,
    proof: Hash,
) -> Result<(), Error> {
    let session = Session {
        name: who.name.clone(),
        proof,
    };
    let engine = &dashboard.engine;
    engine
        .begin_session(Hash::of(secret), session, None)
        .await?;
    let said = format!("Signed in as {}.", who.role.as_str());
    engine
        .record_outcome(&actor_of(asked, who, "sign_in"), true, &said)
        .await
}

/// `POST /ui/logout`
pub async fn sign_out(State(dashboard): State<Dashboard>, asked: Asked) -> Response {
    if let Some(secret) = session(&asked.headers) {
        let engine = &dashboard.engine;
        let mut ended = engine.end_session(Hash::of(secret)).await;
        if let (Ok(()), Some(principal)) = (&ended, &asked.principal) {
            let actor = actor_of(&asked, &principal.identity, "sign_out");
            ended = engine.record_outcome(&actor, true, "Signed out.").await;
        }
        if let Err(error) = ended {
            tracing::error!(%error, "failed to end a session");
            let why = "Not signed out: the database is unavailable. Try again in a moment.\n";
            return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        }
    }
    let gone = session_cookie("", 0);
    ([(header::SET_COOKIE, gone)], Redirect::to(LOGIN)).into_response()
}

/// The page on which one signs in, as the answer to something else.
pub async fn page(
    dashboard: Dashboard,
    asked: Asked,
    next: String,
    refused: Option<SignIn>,
    status: StatusCode,
) -> Response {
    let mut address = format!("{LOGIN}?next=");
    visit::encode(&next, &mut address);
    let uri = Uri::try_from(address).unwrap_or(Uri::from_static(LOGIN));
    let more = move || {
        if let Some(refused) = refused.clone() {
            provide_context(refused);
        }
    };
    let mut response = forms::answer(dashboard, &uri, asked, more).await;
    *response.status_mut() = status;
    response
}

/// Not `SameSite=Strict`: a link of another site, a message about an alarm say, is to lead in. What changes something
/// must come from our own pages anyway (`guard`).
fn session_cookie(secret: &str, age_s: i64) -> String {
    let name = visit::SESSION_COOKIE;
    format!("{name}={secret}; Path=/ui; Max-Age={age_s}; HttpOnly; SameSite=Lax")
}
