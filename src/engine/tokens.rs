//! Tokens of lmstfy: access to namespaces. Every lmstfy request needs one, so `cache.rs` caches the table `tokens`. Only hashes are
//! stored, so neither the database nor the memory reveals a secret.

pub mod cache;
pub mod expiry;
pub mod last_use;

use std::fmt;
use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::tokens::expiry::LIFETIME_DAYS_MAX;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::secret::Hash;
use crate::store::Statement;
pub use cache::Tokens;

/// The shortest secret that a caller may choose, in bytes. Generated ones have 43 characters.
pub const SECRET_BYTES_MIN: usize = 20;

/// The longest secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 255;

/// The longest description, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 1_024;

/// The longest namespace name, in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 255;

/// Tokens in one namespace. Each request is compared with all of them.
pub const TOKENS_MAX: usize = 1_000;

/// The prefix of a token's token ID. Secrets contain no colon.
const TOKEN_ID_PREFIX: &str = "sha256:";

/// Hex digits of the hash in the token ID.
const TOKEN_ID_HEX_DIGITS: usize = 16;

/// The reserved namespace name.
pub const RESERVED_NAMESPACE: &str = "v0";

/// Why a token cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error(
        "a namespace name must have 1 to {NAMESPACE_BYTES_MAX} letters, digits, hyphens or underscores (A-Z, a-z, 0-9, - and _)"
    )]
    Namespace,
    #[error(
        "the namespace name {RESERVED_NAMESPACE} is reserved: paths under /api/{RESERVED_NAMESPACE} belong to another protocol"
    )]
    Reserved,
    #[error("a description must not exceed {DESCRIPTION_BYTES_MAX} bytes or contain NUL")]
    Description,
    #[error("the token must have at least {SECRET_BYTES_MIN} characters")]
    TooShort,
    #[error("the token must have at most {SECRET_BYTES_MAX} characters")]
    TooLong,
    #[error("the token must contain only visible ASCII characters and no colon")]
    Characters,
    #[error("the namespace already has this token")]
    Exists,
    #[error(
        "an expiry must be a duration in s, m, h, d or w (30d) or an RFC 3339 date-time (2030-01-31T00:00:00Z)"
    )]
    Expiry,
    #[error("a token must expire between 1 s and {LIFETIME_DAYS_MAX} days from now")]
    Life,
}

/// A token without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub namespace: String,
    /// Its token ID, which can be used to revoke it: `sha256:` and the first 16 digits of the hash.
    pub token_id: String,
    pub description: String,
    pub created_at: Time,
    pub expires_at: Option<Time>,
    pub is_expired: bool,
    /// The hour in which it was last used; `None` if never.
    pub last_used_at: Option<Time>,
}

/// Proof that a request had a valid token of a namespace. The token may have expired or been revoked since; see
/// [`UnitOfWork::is_valid_grant`].
#[derive(Clone, PartialEq, Eq)]
pub struct Grant {
    namespace: String,
    hash: Hash,
    pub expires_at: Option<Time>,
}

impl Grant {
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grant({}, {})", self.namespace, token_id(&self.hash))
    }
}

/// Attributes of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenDetails {
    pub description: String,
    pub created_at: Time,
    /// The token is rejected from this time on.
    pub expires_at: Option<Time>,
}

impl TokenDetails {
    fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

/// A token that a transaction creates, or revokes (`created` is `None`).
#[derive(Clone, Debug)]
pub struct TokenChange {
    pub namespace: String,
    pub hash: Hash,
    pub created: Option<TokenDetails>,
    /// Whether maintenance deletes it because it expired long ago.
    pub is_expired: bool,
}

impl TokenChange {
    pub fn token_id(&self) -> String {
        token_id(&self.hash)
    }
}

/// The tokens including the changes of a transaction.
#[derive(Debug)]
pub struct TokenChanges {
    pub known: Arc<Tokens>,
    pub changes: Vec<TokenChange>,
    /// Tokens that expired at or before this time may be deleted by maintenance.
    expired_until: Time,
}

impl TokenChanges {
    pub fn new(known: &Arc<Tokens>) -> TokenChanges {
        TokenChanges {
            known: Arc::clone(known),
            changes: Vec::new(),
            expired_until: Time::default(),
        }
    }

    pub(in crate::engine) fn has(&self, namespace: &str, hash: &Hash) -> bool {
        match self.change(namespace, hash) {
            Some(change) => change.created.is_some(),
            None => self.known.has(namespace, hash),
        }
    }

    fn is_valid(&self, namespace: &str, hash: &Hash, now: Time) -> bool {
        match self.change(namespace, hash) {
            Some(change) => change
                .created
                .as_ref()
                .is_some_and(|details| !details.is_expired(now)),
            None => self.known.is_valid(namespace, hash, now),
        }
    }

    fn change(&self, namespace: &str, hash: &Hash) -> Option<&TokenChange> {
        let affected =
            |change: &&TokenChange| change.namespace == namespace && change.hash == *hash;
        self.changes.iter().rev().find(affected)
    }

    /// The number of tokens in the namespace; an upper bound, because tokens revoked in this transaction are not
    /// subtracted.
    pub(in crate::engine) fn count(&self, namespace: &str) -> usize {
        let of_it =
            |change: &&TokenChange| change.namespace == namespace && change.created.is_some();
        self.known.count(namespace) + self.changes.iter().filter(of_it).count()
    }

    pub fn writes(&self) -> Vec<Statement> {
        let is_expired = |change: &&TokenChange| change.is_expired;
        let others = self.changes.iter().filter(|change| !is_expired(change));
        let mut writes: Vec<_> = others.map(TokenChange::write).collect();
        let expired = self.changes.iter().filter(is_expired);
        let expired = expired.map(|change| (change.namespace.as_str(), change.hash.hex()));
        let expired: Vec<_> = expired.collect();
        if !expired.is_empty() {
            writes.push(Statement::of_rows(DELETE_EXPIRED, &expired).with(self.expired_until.0));
        }
        writes
    }
}

impl TokenChange {
    fn write(&self) -> Statement {
        let (namespace, hash) = (self.namespace.as_str(), self.hash.hex());
        let Some(details) = &self.created else {
            return Statement::new(REMOVE, [namespace.into(), hash.into()]);
        };
        let rows = [(
            namespace,
            hash,
            details.description.as_str(),
            details.created_at.0,
            details.expires_at.map(|at| at.0),
        )];
        // Fails if another server has created the same token meanwhile.
        Statement::of_rows(ADD, &rows).exactly(1)
    }
}

impl UnitOfWork {
    /// Whether the token of a request is still valid. A request that waited checks again here, in the transaction that
    /// would serve it.
    pub fn is_valid_grant(&self, grant: &Grant) -> bool {
        self.tokens
            .is_valid(&grant.namespace, &grant.hash, self.now)
    }

    /// Deletes a bounded batch of tokens that expired more than [`EXPIRED_KEPT_S`] ago.
    pub fn delete_expired_tokens(&mut self) {
        let until = self.now.plus_seconds(-EXPIRED_KEPT_S);
        let expired = self.tokens.known.expired(until, EXPIRED_BATCH);
        self.affected_rows += expired.len();
        self.tokens.expired_until = until;
        let deletions = expired.into_iter().map(|(namespace, hash)| TokenChange {
            namespace,
            hash,
            created: None,
            is_expired: true,
        });
        self.tokens.changes.extend(deletions);
    }
}

impl Engine {
    /// All tokens, by namespace and creation time. Expired ones are included until maintenance deletes them.
    pub async fn tokens(&self) -> Result<Vec<Token>> {
        self.refresh_cache().await?;
        self.read_token_uses().await?;
        Ok(self.known_tokens().all(self.now(None)))
    }

    /// The tokens of a namespace, by creation time. Expired ones are included until maintenance deletes them.
    pub async fn tokens_of(&self, namespace: &str) -> Result<Vec<Token>> {
        self.refresh_cache().await?;
        self.read_token_uses_of(namespace).await?;
        Ok(self.known_tokens().of(namespace, self.now(None)))
    }

    /// The namespaces that have tokens, by name, and how many each has. Expired ones are included until maintenance
    /// deletes them.
    pub async fn token_counts(&self) -> Result<Vec<(String, usize)>> {
        self.refresh_cache().await?;
        Ok(self.known_tokens().counts())
    }

    /// The grant for a namespace if the secret is a valid token of it. Servers that share a database read its revision
    /// first, so a revoked token is rejected everywhere at once.
    pub async fn authenticate_token(&self, namespace: &str, secret: &str) -> Result<Option<Grant>> {
        self.refresh_cache().await?;
        let hash = Hash::of(secret);
        let admitted = self
            .known_tokens()
            .authenticate(namespace, &hash, self.now(None));
        Ok(admitted.map(|expires_at| Grant {
            namespace: namespace.to_owned(),
            hash,
            expires_at,
        }))
    }

    /// Whether the token is still valid, checked by the writer: revocations committed before this call count.
    pub async fn is_valid_grant(&self, grant: &Grant) -> Result<bool> {
        let grant = grant.clone();
        self.write(Needs::default(), None, 1, move |work| {
            Ok(work.is_valid_grant(&grant))
        })
        .await
    }
}

fn token_id(hash: &Hash) -> String {
    let mut digits = hash.hex();
    digits.truncate(TOKEN_ID_HEX_DIGITS);
    format!("{TOKEN_ID_PREFIX}{digits}")
}

/// Seconds that an expired token stays listed.
const EXPIRED_KEPT_S: f64 = 30.0 * 86_400.0;

/// Expired tokens deleted in one transaction.
pub const EXPIRED_BATCH: usize = 500;

pub const ALL: &str =
    "SELECT namespace, hash, description, created_at, expires_at, used_at FROM tokens";

const ADD: &str = "
INSERT INTO tokens (namespace, hash, description, created_at, expires_at)
SELECT text(0), text(1), text(2), int(3), int(4) FROM rows($1) WHERE true ON CONFLICT DO NOTHING";

const REMOVE: &str = "DELETE FROM tokens WHERE namespace = $1 AND hash = $2";

// Another server may have created a token with the same secret meanwhile, so the expiry is checked again.
const DELETE_EXPIRED: &str = "
DELETE FROM tokens
WHERE expires_at <= $2 AND (namespace, hash) IN (SELECT text(0), text(1) FROM rows($1))";

#[cfg(test)]
mod tests;
