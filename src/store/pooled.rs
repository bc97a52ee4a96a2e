//! Postgres behind a pooler that gives a connection to somebody else after each transaction (PgBouncer with
//! `pool_mode = transaction`). Neither prepared statements nor settings stay there: so every statement is
//! sent without a name and inside a transaction, and the settings come with its beginning.
//!
//! `statement-cache-capacity=0` in the address asks for it.

use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::dialect::Dialect;

/// How we speak with a Postgres database.
#[derive(Clone)]
pub struct Manner {
    pub dialect: Dialect,
    /// Behind a pooler, the statements that set what a transaction needs.
    settings: Option<Arc<str>>,
}

impl Manner {
    pub fn new(address: &str, options: &PgConnectOptions, dialect: Dialect) -> Manner {
        let pooled = is_pooled(address);
        let settings = pooled.then(|| settings(options.get_options().unwrap_or_default()).into());
        Manner { dialect, settings }
    }

    /// Whether no statement may stand outside of a transaction, or have a name.
    pub fn is_pooled(&self) -> bool {
        self.settings.is_some()
    }

    /// The text, which begins a transaction and goes on with something, with what the transaction needs.
    pub fn begin(&self, begin: &'static str, rest: &'static str) -> SqlStr {
        match &self.settings {
            None if rest.is_empty() => begin.into_sql_str(),
            settings => {
                let settings = settings.as_deref().unwrap_or_default();
                // Safe: literals, and settings that are quoted.
                let text: Arc<str> = format!("{begin};{settings}{rest}").into();
                AssertSqlSafe(text).into_sql_str()
            }
        }
    }
}

fn is_pooled(address: &str) -> bool {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    query
        .split('&')
        .any(|part| part == "statement-cache-capacity=0")
}

/// Options as they are given at the start of a connection (`-c a=b -c d=e`), set for a transaction.
fn settings(options: &str) -> String {
    let mut text = String::new();
    let parts = options.split_whitespace();
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if !name.is_empty() && name.chars().all(plain) && value.chars().all(plain) {
            text.push_str(&format!("SET LOCAL {name} = '{value}';"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_settings_and_nothing_else() {
        assert_eq!(
            settings("-c synchronous_commit=off -c jit=off"),
            "SET LOCAL synchronous_commit = 'off';SET LOCAL jit = 'off';"
        );
        assert_eq!(settings("-c a='; -c b;c=1 -c"), "");
    }

    #[test]
    fn a_pooler_is_told_by_the_address() {
        assert!(is_pooled("postgres://h/d?x=1&statement-cache-capacity=0"));
        assert!(!is_pooled("postgres://h/d?statement-cache-capacity=10"));
        assert!(!is_pooled("postgres://h/statement-cache-capacity=0"));
    }
}
