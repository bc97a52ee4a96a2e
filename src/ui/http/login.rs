//! Sign-in and sign-out.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use leptos::prelude::provide_context;
use serde::Deserialize;

use crate::auth::{CredentialSource, Identity, PresentedCredentials, Role};
use crate::engine::{Actor, Error, SESSION_AGE_S, Session};
use crate::secret::{self, Hash};
use crate::ui::actions::session::{SIGN_IN, SIGN_OUT};
use crate::ui::cookies;
use crate::ui::http::Dashboard;
use crate::ui::http::audit::actor;
use crate::ui::http::authentication::{RequestInfo, session};
use crate::ui::http::forms::{self, PageForm};
use crate::ui::http::page_slots::busy;
use crate::ui::pages::login::model::SignInError;
use crate::ui::urls::LOGIN;
use crate::ui::urls::encoding::{encode, is_dashboard_page};

/// The fields of the sign-in form.
#[derive(Deserialize)]
pub struct LoginForm {
    #[serde(default)]
    name: String,
    #[serde(default)]
    secret: String,
    /// The page to open after the sign-in.
    #[serde(default)]
    next: String,
}

/// The audit name of a failed sign-in with an unknown name.
const UNKNOWN: &str = "unknown";

/// `POST /ui/login`
pub async fn sign_in(
    State(dashboard): State<Dashboard>,
    info: RequestInfo,
    PageForm(form): PageForm<LoginForm>,
) -> Response {
    let presented = PresentedCredentials::from_form(&form.name, form.secret.trim());
    let Ok(secret) = secret::generate() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let active = dashboard.authenticator.keyring.active();
    let keys = &active.ui;
    let attempt = || {
        let (user, proof) = keys.proof(&presented, &secret)?;
        Some((user.clone(), proof))
    };
    let throttle = &dashboard.authenticator.throttle;
    let found = throttle.attempt(
        info.from,
        Hash::of(&form.name),
        CredentialSource::Form,
        attempt,
    );
    // Limited, because each sign-in adds a session, and audit entries of its beginning and its end.
    let found = found.and_then(|found| {
        if let Some((user, _)) = &found {
            throttle.sign_in(info.from, Hash::of(&user.name))?;
            dashboard.authenticator.action_limit.count(user, 2)?;
        }
        Ok(found)
    });
    let (user, proof) = match found {
        Ok(Some(found)) => found,
        Ok(None) => {
            if throttle.may_log(info.from) {
                tracing::warn!(from = ?info.from, "failed sign-in: wrong name or key");
            }
            record_failure(&dashboard, &info, keys.known_name(&form.name)).await;
            let why = SignInError::Wrong(form.name);
            let status = StatusCode::FORBIDDEN;
            return page(dashboard, info, form.next, Some(why), status).await;
        }
        Err(wait) => {
            let seconds = wait.as_secs() + 1;
            let status = StatusCode::TOO_MANY_REQUESTS;
            let why = Some(SignInError::TooOften(seconds));
            let mut response = page(dashboard, info, form.next, why, status).await;
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            return response;
        }
    };
    let started = start_session(&dashboard, &info, &user, &secret, proof).await;
    if let Err(error) = started {
        tracing::error!(%error, "failed to start a session");
        let why = "Cannot sign in: the database is unavailable. Try again in a moment.\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    let is_page = is_dashboard_page(&form.next) && !form.next.starts_with(LOGIN);
    let next = if is_page { &form.next } else { "/ui" };
    let cookie = cookies::session(&secret, SESSION_AGE_S);
    ([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response()
}

/// Records a failed sign-in in the audit log. An unknown name is not recorded, because strangers could use it to write
/// to the log.
async fn record_failure(dashboard: &Dashboard, info: &RequestInfo, known_name: Option<&str>) {
    let user = Identity {
        name: known_name.unwrap_or(UNKNOWN).to_owned(),
        role: Role::default(),
    };
    let actor = Actor {
        role: String::new(),
        ..actor(info, &user, SIGN_IN.name)
    };
    let rejections = &dashboard.authenticator.rejections;
    rejections
        .record(&dashboard.engine, &actor, "Wrong name or key.")
        .await;
}

async fn start_session(
    dashboard: &Dashboard,
    info: &RequestInfo,
    user: &Identity,
    secret: &str,
    proof: Hash,
) -> Result<(), Error> {
    let session = Session {
        name: user.name.clone(),
        proof,
    };
    let engine = &dashboard.engine;
    engine
        .begin_session(Hash::of(secret), session, None)
        .await?;
    let text = format!("Signed in as {}.", user.role.as_str());
    engine
        .record_session(&actor(info, user, SIGN_IN.name), true, &text)
        .await
}

/// `POST /ui/logout`
pub async fn sign_out(State(dashboard): State<Dashboard>, info: RequestInfo) -> Response {
    if let Some(secret) = session(&info.headers) {
        let ended = end_session(&dashboard, &info, secret).await;
        if let Err(Error::Busy) = ended {
            return busy();
        }
        if let Err(error) = ended {
            tracing::error!(%error, "failed to end a session");
            let why = "Not signed out: the database is unavailable. Try again in a moment.\n";
            return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        }
    }
    let cookie = cookies::delete_session();
    ([(header::SET_COOKIE, cookie)], Redirect::to(LOGIN)).into_response()
}

/// Ends the session, if it exists: clients can invent secrets, and one that is not found costs no write.
async fn end_session(dashboard: &Dashboard, info: &RequestInfo, secret: &str) -> Result<(), Error> {
    let (engine, authenticator) = (&dashboard.engine, &dashboard.authenticator);
    let known = authenticator.look_up(engine, secret, info.from).await?;
    if known.is_none() {
        return Ok(());
    }
    engine.end_session(Hash::of(secret)).await?;
    let Some(principal) = &info.principal else {
        return Ok(());
    };
    let actor = Actor {
        id: sign_out_entry(secret),
        ..actor(info, &principal.identity, SIGN_OUT.name)
    };
    engine.record_session(&actor, false, "Signed out.").await
}

/// The ID of the audit entry for the end of a session. One per session, so that repeated requests add no entries.
fn sign_out_entry(session: &str) -> String {
    let hash = Hash::of(format!("sign-out {session}")).hex();
    hash.get(..32).unwrap_or(&hash).to_owned()
}

/// The sign-in page as a response. After the sign-in it leads to `next`.
pub async fn page(
    dashboard: Dashboard,
    info: RequestInfo,
    next: String,
    error: Option<SignInError>,
    status: StatusCode,
) -> Response {
    let mut address = format!("{LOGIN}?next=");
    encode(&next, &mut address);
    let uri = Uri::try_from(address).unwrap_or(Uri::from_static(LOGIN));
    let more = move || {
        if let Some(error) = error.clone() {
            provide_context(error);
        }
    };
    let mut response = forms::render(dashboard, &uri, info, more).await;
    forms::set_status(&mut response, status);
    response
}
