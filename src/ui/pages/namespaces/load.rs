//! Loads the namespaces and their tokens. A namespace exists while it has a queue or a token.

use std::collections::BTreeMap;

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, Protocol, QueueCounts, Result, Token, is_plain_name};
use crate::ui::context::{read, read_or_missing};
use crate::ui::error::PageError;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::state::Counts;
use crate::ui::pages::namespaces::model::{NamespaceRow, NamespaceView, NamespacesView, TokenRow};
use crate::ui::present::{all_queues, queue_row, without_forgotten};

/// All namespaces.
#[server]
pub async fn namespaces() -> Result<NamespacesView, PageError> {
    read(Role::Admin, async |context| {
        load_namespaces(&context.engine, context.no_auth).await
    })
    .await
}

/// The namespace with this name.
#[server]
pub async fn namespace(name: String) -> Result<NamespaceView, PageError> {
    read_or_missing(
        Role::Admin,
        async |context| load_namespace(&context.engine, &name, context.no_auth).await,
        || format!("“{name}” is not a valid namespace name."),
    )
    .await
}

/// All namespaces that have a queue or a token, by name.
pub async fn load_namespaces(engine: &Engine, open: bool) -> Result<NamespacesView> {
    let (queues, tokens) = futures::try_join!(all_queues(engine), engine.token_counts())?;
    let mut rows = Rows::new();
    for queue in of_lmstfy(&queues, None) {
        let row = row(&mut rows, &queue.queue_ref.namespace);
        row.queues += 1;
        row.counts = row.counts.plus(queue.counts);
    }
    for (namespace, count) in &tokens {
        row(&mut rows, namespace).tokens = *count;
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
        counts: Counts::default(),
        tokens: 0,
    })
}

/// One namespace, which need not have queues or tokens.
pub async fn load_namespace(
    engine: &Engine,
    name: &str,
    open: bool,
) -> Result<Option<NamespaceView>> {
    if !is_plain_name(name) {
        return Ok(None);
    }
    let (queues, tokens) = futures::try_join!(all_queues(engine), engine.tokens_of(name))?;
    Ok(Some(NamespaceView {
        name: name.to_owned(),
        queues: of_lmstfy(&queues, Some(name)),
        tokens: tokens.into_iter().map(token_row).collect(),
        open,
    }))
}

fn of_lmstfy(queues: &[QueueCounts], namespace: Option<&str>) -> Vec<QueueRow> {
    let wanted = |queue: &&QueueCounts| {
        let key = &queue.queue.key;
        key.protocol == Protocol::Lmstfy && namespace.is_none_or(|name| name == key.namespace)
    };
    without_forgotten(queues.iter().filter(wanted).map(queue_row))
}

fn token_row(token: Token) -> TokenRow {
    TokenRow {
        name: token.token_id,
        description: token.description,
        created: token.created_at.0,
        expires: token.expires_at.map(|at| at.0),
        expired: token.is_expired,
        last_used: token.last_used_at.map(|at| at.0),
    }
}
