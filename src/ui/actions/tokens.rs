//! Actions on tokens of lmstfy namespaces.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::{Action, Target, act};
use crate::auth::Role;
use crate::engine::{Engine, Expiry};
use crate::ui::error::PageError;
use crate::ui::urls;

/// `POST /ui/namespaces`; the page itself shows the new token (`http/page_forms.rs`).
pub static CREATE_TOKEN: Action =
    Action::new("create_token", "/ui/namespaces", Role::Admin, |form| {
        Target::namespace(form.field("namespace").trim())
    });

/// `POST /ui/namespaces/{name}`
pub static CREATE_TOKEN_IN: Action = Action::new(
    "create_token",
    "/ui/namespaces/{name}",
    Role::Admin,
    |form| Target::namespace(&form.request.name(2)),
);

/// Creates a token and returns it; only its hash is stored. If `expires` is blank, the token never expires.
///
/// # Errors
/// If the description is missing, `expires` is invalid, or the name of the namespace is invalid.
pub async fn create_token(
    engine: &Engine,
    namespace: &str,
    description: &str,
    expires: &str,
) -> Result<String, String> {
    let description = description.trim();
    if description.is_empty() {
        return Err("the description is missing; say who uses the token and for what".to_owned());
    }
    let expires = Some(expires.trim()).filter(|text| !text.is_empty());
    let expires = expires.map(str::parse::<Expiry>).transpose();
    let expires = expires.map_err(|flaw| flaw.to_string())?;
    let token = engine.create_token_until(namespace.trim(), description, None, expires);
    token.await.map_err(|error| error.to_string())
}

pub static REVOKE_TOKEN: Action =
    Action::new("revoke_token", RevokeToken::PATH, Role::Admin, |form| {
        let (name, namespace) = (form.field("name"), form.field("namespace"));
        Target::new(
            format!("token {name} of {namespace}"),
            urls::namespace(namespace),
        )
    });

/// Revokes a token: its requests are rejected from now on.
#[server]
pub async fn revoke_token(namespace: String, name: String, back: String) -> Result<(), PageError> {
    act(&REVOKE_TOKEN, &back, async |context| {
        if !context.engine.revoke_token(&namespace, &name).await? {
            return Err("this token no longer exists".into());
        }
        Ok(format!("Token {name} of {namespace} revoked.").into())
    })
    .await
}
