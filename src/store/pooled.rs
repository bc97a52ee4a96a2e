//! Postgres behind a pooler that reassigns connections after each transaction (PgBouncer with `pool_mode =
//! transaction`). Such connections keep neither prepared statements nor settings, so every statement is unnamed and
//! runs in a transaction that begins with the settings.
//!
//! `statement-cache-capacity=0` in the address enables this mode.

use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::dialect::Dialect;

/// How statements are sent to a Postgres database.
#[derive(Clone)]
pub struct SendMode {
    pub dialect: Dialect,
    /// Behind a pooler, the `SET LOCAL` statements of every transaction.
    settings: Option<Arc<str>>,
}

impl SendMode {
    pub fn new(address: &str, options: &PgConnectOptions, dialect: Dialect) -> SendMode {
        let pooled = is_pooled(address);
        let settings = pooled.then(|| settings(options.get_options().unwrap_or_default()).into());
        SendMode { dialect, settings }
    }

    /// Whether statements must be unnamed and run inside a transaction.
    pub fn is_pooled(&self) -> bool {
        self.settings.is_some()
    }

    /// The text that begins a transaction, applies the settings and runs `rest`.
    pub fn begin(&self, begin: &'static str, rest: &'static str) -> SqlStr {
        match &self.settings {
            None if rest.is_empty() => begin.into_sql_str(),
            settings => {
                let settings = settings.as_deref().unwrap_or_default();
                // Safe: the text consists of literals and quoted settings.
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

/// The `SET LOCAL` statements for connection options (`-c a=b -c d=e`).
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
    fn the_address_enables_pooler_mode() {
        assert!(is_pooled("postgres://h/d?x=1&statement-cache-capacity=0"));
        assert!(!is_pooled("postgres://h/d?statement-cache-capacity=10"));
        assert!(!is_pooled("postgres://h/statement-cache-capacity=0"));
    }
}
