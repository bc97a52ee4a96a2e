//! Namespaces, which come into being with their first queue or token, and their tokens.

use std::collections::BTreeMap;

use super::super::views::{NamespaceRow, NamespaceView, NamespacesView, QueueRow, Tally, TokenRow};
use super::{listed, queue_row};
use crate::engine::{Engine, Expiry, Protocol, QueueCounts, Result, Token};

/// All namespaces that have a queue or a token, by name.
pub async fn namespaces(engine: &Engine, open: bool) -> Result<NamespacesView> {
    let (queues, tokens) = futures::try_join!(engine.queues(None), engine.tokens())?;
    let mut rows = Rows::new();
    for queue in of_lmstfy(&queues, None) {
        let row = row(&mut rows, &queue.place.namespace);
        row.queues += 1;
        row.tally = row.tally.plus(queue.tally);
    }
    for token in &tokens {
        row(&mut rows, &token.namespace).tokens += 1;
    }
    Ok(NamespacesView {
        rows: rows.into_values().collect(),
        open,
    })
}

type Rows = BTreeMap<String, NamespaceRow>;

fn row<'a>(rows: &'a mut Rows, name: &str) -> &'a mut NamespaceRow {
    rows.entry(name.to_owned()).or_insert_with(|| NamespaceRow {
        name: name.to_owned(),
        queues: 0,
        tally: Tally::default(),
        tokens: 0,
    })
}

/// One namespace. There may be nothing in it (yet).
pub async fn namespace(engine: &Engine, name: &str, open: bool) -> Result<Option<NamespaceView>> {
    if !can_be(name) {
        return Ok(None);
    }
    let (queues, tokens) = futures::try_join!(engine.queues(None), engine.tokens())?;
    let tokens = tokens.into_iter().filter(|token| token.namespace == name);
    Ok(Some(NamespaceView {
        name: name.to_owned(),
        queues: of_lmstfy(&queues, Some(name)),
        tokens: tokens.map(token_row).collect(),
        open,
    }))
}

/// Makes a token, and returns its secret, which is not kept. It does not expire if `expires` is blank.
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
    let made = engine.create_token_until(namespace.trim(), description, None, expires);
    made.await.map_err(|error| error.to_string())
}

/// Takes a token away.
pub async fn revoke_token(engine: &Engine, namespace: &str, name: &str) -> Result<(), String> {
    let done = engine.revoke_token(namespace, name).await;
    match done.map_err(|error| error.to_string())? {
        true => Ok(()),
        false => Err("this token no longer exists".to_owned()),
    }
}

/// Whether a namespace can have this name.
fn can_be(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(is_plain)
}

fn of_lmstfy(queues: &[QueueCounts], namespace: Option<&str>) -> Vec<QueueRow> {
    let wanted = |queue: &&QueueCounts| {
        let key = &queue.queue.key;
        key.protocol == Protocol::Lmstfy && namespace.is_none_or(|name| name == key.namespace)
    };
    listed(queues.iter().filter(wanted).map(queue_row))
}

fn token_row(token: Token) -> TokenRow {
    TokenRow {
        name: token.name,
        description: token.description,
        created: token.created_at.0,
        expires: token.expires_at.map(|at| at.0),
        expired: token.is_expired,
        last_used: token.last_used_at.map(|at| at.0),
    }
}
