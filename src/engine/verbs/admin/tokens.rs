//! Tokens: create and revoke.

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::is_plain_name;
use crate::engine::tokens::expiry::Expiry;
use crate::engine::tokens::{
    DESCRIPTION_BYTES_MAX, NAMESPACE_BYTES_MAX, RESERVED_NAMESPACE, SECRET_BYTES_MAX,
    SECRET_BYTES_MIN, TOKENS_MAX, TokenChange, TokenDetails, TokenError,
};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::secret;
use crate::secret::Hash;

impl Engine {
    /// Creates a token that does not expire; see [`Engine::create_token_until`].
    ///
    /// # Errors
    /// [`Error::BadToken`], [`Error::TooMany`].
    pub async fn create_token(
        &self,
        namespace: &str,
        description: &str,
        secret: Option<String>,
    ) -> Result<String> {
        self.create_token_until(namespace, description, secret, None)
            .await
    }

    /// Creates a token with a random or a given secret. Returns the secret, which is not stored.
    ///
    /// # Errors
    /// [`Error::BadToken`], [`Error::TooMany`].
    pub async fn create_token_until(
        &self,
        namespace: &str,
        description: &str,
        secret: Option<String>,
        expires: Option<Expiry>,
    ) -> Result<String> {
        check(namespace, description, secret.as_deref())?;
        let secret = match secret {
            Some(secret) => secret,
            None => secret::generate()
                .map_err(|error| Error::Store(format!("no random numbers available: {error}")))?,
        };
        let (namespace, description) = (namespace.to_owned(), description.to_owned());
        let hash = Hash::of(&secret);
        self.write(Needs::default(), None, 1, move |work| {
            create(work, &namespace, &description, hash, expires)
        })
        .await?;
        Ok(secret)
    }

    /// Revokes the token with this secret or token ID, and returns whether it existed. Long polls that use it get no
    /// jobs.
    pub async fn revoke_token(&self, namespace: &str, which: &str) -> Result<bool> {
        let (namespace, which) = (namespace.to_owned(), which.to_owned());
        self.write(Needs::default(), None, 1, move |work| {
            Ok(revoke(work, &namespace, &which))
        })
        .await
    }
}

/// Validates the parameters of a new token.
fn check(namespace: &str, description: &str, secret: Option<&str>) -> Result<(), TokenError> {
    if namespace.len() > NAMESPACE_BYTES_MAX || !is_plain_name(namespace) {
        return Err(TokenError::Namespace);
    }
    if namespace == RESERVED_NAMESPACE {
        return Err(TokenError::Reserved);
    }
    // Postgres cannot store NUL.
    if description.len() > DESCRIPTION_BYTES_MAX || description.contains('\0') {
        return Err(TokenError::Description);
    }
    let secret = secret.map(str::as_bytes);
    let is_visible = |byte: &u8| byte.is_ascii_graphic() && *byte != b':';
    match secret {
        Some(secret) if secret.len() < SECRET_BYTES_MIN => Err(TokenError::TooShort),
        Some(secret) if secret.len() > SECRET_BYTES_MAX => Err(TokenError::TooLong),
        Some(secret) if !secret.iter().all(is_visible) => Err(TokenError::Characters),
        _ => Ok(()),
    }
}

/// Creates a token of the namespace.
///
/// # Errors
/// [`TokenError::Exists`], [`TokenError::Life`], [`Error::TooMany`].
pub fn create(
    work: &mut UnitOfWork,
    namespace: &str,
    description: &str,
    hash: Hash,
    expires: Option<Expiry>,
) -> Result<()> {
    let expires_at = expires.map(|it| it.resolve(work.now)).transpose()?;
    if work.tokens.has(namespace, &hash) {
        return Err(TokenError::Exists.into());
    }
    if work.tokens.count(namespace) >= TOKENS_MAX {
        return Err(Error::TooMany {
            what: "tokens in one namespace",
            max: TOKENS_MAX,
        });
    }
    work.tokens.changes.push(TokenChange {
        namespace: namespace.to_owned(),
        hash,
        created: Some(TokenDetails {
            description: description.to_owned(),
            created_at: work.now,
            expires_at,
        }),
        is_expired: false,
    });
    Ok(())
}

/// Revokes the token, and returns whether it existed.
fn revoke(work: &mut UnitOfWork, namespace: &str, which: &str) -> bool {
    let mut hashes = work.tokens.known.find(namespace, which);
    if hashes.is_empty() {
        hashes.push(Hash::of(which));
    }
    hashes.retain(|hash| work.tokens.has(namespace, hash));
    let revocations = hashes.iter().map(|hash| TokenChange {
        namespace: namespace.to_owned(),
        hash: *hash,
        created: None,
        is_expired: false,
    });
    work.tokens.changes.extend(revocations);
    !hashes.is_empty()
}
