//! Making a token. Its secret is shown once, so it must not lead anywhere: not into a cookie, an address or a
//! cache. So the form is answered with the page itself.

use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use leptos::prelude::provide_context;
use serde::Deserialize;

use super::entry::{Asked, forbid};
use super::forms::Filled;
use super::{Dashboard, forms};
use crate::api::turn;
use crate::api::views::{NewToken, Role};

/// What somebody has typed.
#[derive(Deserialize)]
pub struct Typed {
    #[serde(default)]
    namespace: String,
    description: String,
    #[serde(default)]
    expires: String,
}

/// `POST /ui/namespaces`
pub async fn create(
    State(dashboard): State<Dashboard>,
    asked: Asked,
    Filled(typed): Filled<Typed>,
) -> Response {
    answer(dashboard, asked, typed).await
}

/// `POST /ui/namespaces/{name}`
pub async fn create_in(
    State(dashboard): State<Dashboard>,
    Path(namespace): Path<String>,
    asked: Asked,
    Filled(typed): Filled<Typed>,
) -> Response {
    answer(dashboard, asked, Typed { namespace, ..typed }).await
}

async fn answer(dashboard: Dashboard, asked: Asked, typed: Typed) -> Response {
    if !asked.may(Role::Admin) {
        return forbid(dashboard, asked, Role::Admin).await;
    }
    let namespace = typed.namespace.trim();
    let engine = asked.engine(&dashboard);
    let made = turn::create_token(&engine, namespace, &typed.description, &typed.expires).await;
    match &made {
        Ok(_) => asked.say(true, &format!("Token created for {namespace}.")),
        Err(why) => asked.say(false, &format!("Token not created: {why}.")),
    }
    let token = NewToken {
        namespace: namespace.to_owned(),
        description: typed.description,
        expires: typed.expires,
        made,
    };
    let shown = move || provide_context(token.clone());
    let uri = asked.uri.clone();
    let mut response = forms::answer(dashboard, &uri, asked, shown).await;
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    response
}
