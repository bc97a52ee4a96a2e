//! Tokens: who may use a namespace. A copy of the table `tokens` in memory, for every request asks for it. Only
//! hashes are kept, so whoever reads the database or the memory learns no secret.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use subtle::Choice;

use super::Engine;
use super::clock::Time;
use super::error::{Error, Result};
use super::work::{Needs, Work};
use crate::secret::{self, Hash};
use crate::store::{Row, Statement, StoreError};

/// A secret that is given must be as long as this. One that is made up has 43 characters.
pub const SECRET_BYTES_MIN: usize = 20;

/// The longest secret.
pub const SECRET_BYTES_MAX: usize = 255;

/// The longest description.
pub const DESCRIPTION_BYTES_MAX: usize = 1_024;

/// The longest name of a namespace.
pub const NAMESPACE_BYTES_MAX: usize = 255;

/// How many tokens a namespace may have: each request is compared with all of them.
pub const TOKENS_MAX: usize = 1_000;

/// What a token's public name begins with; no secret has a colon.
const NAMED: &str = "sha256:";

/// How many digits of the hash are in the public name.
const NAME_DIGITS: usize = 16;

/// The namespace that cannot be used.
const TAKEN: &str = "v0";

/// What is wrong with a token that somebody wants to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error(
        "a namespace has 1 to {NAMESPACE_BYTES_MAX} letters, digits, hyphens and underscores (A-Z, a-z, 0-9, - and _)"
    )]
    Namespace,
    #[error(
        "the namespace {TAKEN} cannot be used, for the paths under /api/{TAKEN} belong to another protocol"
    )]
    Taken,
    #[error("a description has {DESCRIPTION_BYTES_MAX} bytes at most, and no NUL character")]
    Description,
    #[error("a token that is given has {SECRET_BYTES_MIN} characters at least")]
    TooShort,
    #[error("a token that is given has {SECRET_BYTES_MAX} characters at most")]
    TooLong,
    #[error("a token that is given has visible ASCII characters only, and no colon")]
    Characters,
    #[error("the namespace has this token already")]
    Exists,
}

/// A token, as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub namespace: String,
    /// Its public name, by which it can be revoked: `sha256:` and the first digits of the hash.
    pub name: String,
    pub description: String,
    pub created_at: Time,
}

/// That somebody has shown a token of a namespace. It may have been revoked since; see [`Work::holds`].
#[derive(Clone, PartialEq, Eq)]
pub struct Grant {
    namespace: String,
    hash: Hash,
}

impl Grant {
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grant({}, {})", self.namespace, name(&self.hash))
    }
}

/// What is kept of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    hash: Hash,
    description: String,
    created_at: Time,
}

type ByNamespace = BTreeMap<String, Vec<Kept>>;

/// The tokens that there are.
#[derive(Debug, Default)]
pub struct Tokens(RwLock<ByNamespace>);

impl Tokens {
    /// Takes over what [`ALL`] has read, instead of what is there. Whether that differs.
    pub fn take_over(&self, rows: &[Row]) -> Result<bool, StoreError> {
        let mut tokens = ByNamespace::new();
        for row in rows {
            let hash = Hash::from_hex(&row.text(1)?);
            let kept = Kept {
                hash: hash.ok_or(StoreError::Corrupt("a token's hash is none"))?,
                description: row.text(2)?,
                created_at: Time(row.int(3)?),
            };
            tokens.entry(row.text(0)?).or_default().push(kept);
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let differs = *known != tokens;
        *known = tokens;
        Ok(differs)
    }

    /// Whether the namespace has a token with this hash. Compares with all of them, each in constant time.
    fn has(&self, namespace: &str, hash: &Hash) -> bool {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let tokens = tokens.get(namespace).into_iter().flatten();
        let found = tokens.fold(Choice::from(0), |found, token| {
            found | token.hash.matches(hash)
        });
        found.into()
    }

    fn count(&self, namespace: &str) -> usize {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tokens.get(namespace).map_or(0, Vec::len)
    }

    /// The hashes of the namespace's tokens that are called so.
    fn named(&self, namespace: &str, which: &str) -> Vec<Hash> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let tokens = tokens.get(namespace).into_iter().flatten();
        let called = |hash: &Hash| name(hash) == which;
        tokens.map(|token| token.hash).filter(called).collect()
    }

    /// All tokens, by namespace, then by when they were made.
    fn all(&self) -> Vec<Token> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for (namespace, tokens) in tokens.iter() {
            let mut tokens: Vec<_> = tokens.iter().collect();
            tokens.sort_by_key(|token| (token.created_at, name(&token.hash)));
            all.extend(tokens.into_iter().map(|token| Token {
                namespace: namespace.clone(),
                name: name(&token.hash),
                description: token.description.clone(),
                created_at: token.created_at,
            }));
        }
        all
    }

    /// Takes over what has been committed.
    pub fn apply(&self, change: Change) {
        let Change {
            namespace,
            hash,
            made,
        } = change;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let tokens = known.entry(namespace.clone()).or_default();
        tokens.retain(|token| token.hash != hash);
        tokens.extend(made.map(|(description, created_at)| Kept {
            hash,
            description,
            created_at,
        }));
        if tokens.is_empty() {
            known.remove(&namespace);
        }
    }
}

/// A token that a group makes, or (without a description) takes away.
#[derive(Clone, Debug)]
pub struct Change {
    pub namespace: String,
    hash: Hash,
    pub made: Option<(String, Time)>,
}

impl Change {
    /// The token's public name.
    pub fn name(&self) -> String {
        name(&self.hash)
    }
}

/// The tokens as a group leaves them.
#[derive(Debug)]
pub struct Changing {
    known: Arc<Tokens>,
    pub changes: Vec<Change>,
}

impl Changing {
    pub fn new(known: &Arc<Tokens>) -> Changing {
        Changing {
            known: Arc::clone(known),
            changes: Vec::new(),
        }
    }

    fn has(&self, namespace: &str, hash: &Hash) -> bool {
        let concerned = |change: &&Change| change.namespace == namespace && change.hash == *hash;
        match self.changes.iter().rev().find(concerned) {
            Some(change) => change.made.is_some(),
            None => self.known.has(namespace, hash),
        }
    }

    /// How many tokens the namespace has, about: those of this group are added, whatever it takes away.
    fn count(&self, namespace: &str) -> usize {
        let of_it = |change: &&Change| change.namespace == namespace && change.made.is_some();
        self.known.count(namespace) + self.changes.iter().filter(of_it).count()
    }

    /// The statements that store the changes.
    pub fn writes(&self) -> impl Iterator<Item = Statement> {
        self.changes.iter().map(|change| {
            let namespace = change.namespace.as_str().into();
            let hash = change.hash.hex().into();
            match &change.made {
                Some((description, at)) => {
                    let made = [namespace, hash, description.as_str().into(), at.0.into()];
                    // Another server may have made the same one meanwhile.
                    Statement::new(ADD, made).exactly(1)
                }
                None => Statement::new(REMOVE, [namespace, hash]),
            }
        })
    }
}

impl Work {
    /// Whether the token that somebody has shown is still one of its namespace. Whoever waited long asks again
    /// here, in the group that would serve it.
    pub fn holds(&self, grant: &Grant) -> bool {
        self.tokens.has(&grant.namespace, &grant.hash)
    }
}

/// Makes a token of the namespace.
///
/// # Errors
/// [`Flaw::Exists`], [`Error::TooMany`].
fn create(work: &mut Work, namespace: &str, description: &str, hash: Hash) -> Result<()> {
    if work.tokens.has(namespace, &hash) {
        return Err(Flaw::Exists.into());
    }
    if work.tokens.count(namespace) >= TOKENS_MAX {
        return Err(Error::TooMany {
            what: "tokens of a namespace",
            max: TOKENS_MAX,
        });
    }
    work.tokens.changes.push(Change {
        namespace: namespace.to_owned(),
        hash,
        made: Some((description.to_owned(), work.now)),
    });
    Ok(())
}

/// Takes the token away. Whether it was there.
fn revoke(work: &mut Work, namespace: &str, which: &str) -> bool {
    let mut hashes = work.tokens.known.named(namespace, which);
    if hashes.is_empty() {
        hashes.push(Hash::of(which));
    }
    hashes.retain(|hash| work.tokens.has(namespace, hash));
    let gone = hashes.iter().map(|hash| Change {
        namespace: namespace.to_owned(),
        hash: *hash,
        made: None,
    });
    work.tokens.changes.extend(gone);
    !hashes.is_empty()
}

impl Engine {
    /// Makes a token of a namespace, with a secret that is made up or given. Gives the secret, which is kept
    /// nowhere.
    ///
    /// # Errors
    /// [`Error::BadToken`], [`Error::TooMany`].
    pub async fn create_token(
        &self,
        namespace: &str,
        description: &str,
        secret: Option<String>,
    ) -> Result<String> {
        check(namespace, description, secret.as_deref())?;
        let secret = match secret {
            Some(secret) => secret,
            None => secret::made_up()
                .map_err(|error| Error::Store(format!("no random numbers: {error}")))?,
        };
        let (namespace, description) = (namespace.to_owned(), description.to_owned());
        let hash = Hash::of(&secret);
        self.write(Needs::default(), None, 1, move |work| {
            create(work, &namespace, &description, hash)
        })
        .await?;
        Ok(secret)
    }

    /// Takes a token away: that with this secret, or with this public name. Whether there was one. Whoever waits
    /// with it gets nothing.
    pub async fn revoke_token(&self, namespace: &str, which: &str) -> Result<bool> {
        let (namespace, which) = (namespace.to_owned(), which.to_owned());
        self.write(Needs::default(), None, 1, move |work| {
            Ok(revoke(work, &namespace, &which))
        })
        .await
    }

    /// All tokens, by namespace, then by when they were made.
    pub async fn tokens(&self) -> Result<Vec<Token>> {
        self.freshen().await?;
        Ok(self.known_tokens().all())
    }

    /// What somebody with this secret may do in the namespace: anything, or nothing (`None`). Where servers share
    /// a database it is asked first, so that what is revoked is so everywhere at once.
    pub async fn admit(&self, namespace: &str, secret: &str) -> Result<Option<Grant>> {
        self.freshen().await?;
        let hash = Hash::of(secret);
        let admitted = self.known_tokens().has(namespace, &hash);
        Ok(admitted.then(|| Grant {
            namespace: namespace.to_owned(),
            hash,
        }))
    }

    /// Whether the token is one still, as the writer sees it: what was revoked before this was asked is revoked.
    pub async fn holds(&self, grant: &Grant) -> Result<bool> {
        let grant = grant.clone();
        self.write(
            Needs::default(),
            None,
            1,
            move |work| Ok(work.holds(&grant)),
        )
        .await
    }
}

/// Whether a token may be made so.
fn check(namespace: &str, description: &str, secret: Option<&str>) -> Result<(), Flaw> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !(1..=NAMESPACE_BYTES_MAX).contains(&namespace.len()) || !namespace.bytes().all(is_plain) {
        return Err(Flaw::Namespace);
    }
    if namespace == TAKEN {
        return Err(Flaw::Taken);
    }
    // Postgres can hold no NUL.
    if description.len() > DESCRIPTION_BYTES_MAX || description.contains('\0') {
        return Err(Flaw::Description);
    }
    let secret = secret.map(str::as_bytes);
    let is_visible = |byte: &u8| byte.is_ascii_graphic() && *byte != b':';
    match secret {
        Some(secret) if secret.len() < SECRET_BYTES_MIN => Err(Flaw::TooShort),
        Some(secret) if secret.len() > SECRET_BYTES_MAX => Err(Flaw::TooLong),
        Some(secret) if !secret.iter().all(is_visible) => Err(Flaw::Characters),
        _ => Ok(()),
    }
}

/// The public name of the token with this hash.
fn name(hash: &Hash) -> String {
    let mut name = hash.hex();
    name.truncate(NAME_DIGITS);
    format!("{NAMED}{name}")
}

/// The statement that reads all tokens.
pub const ALL: &str = "SELECT namespace, hash, description, created_at FROM tokens";

const ADD: &str = "
INSERT INTO tokens (namespace, hash, description, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";

const REMOVE: &str = "DELETE FROM tokens WHERE namespace = $1 AND hash = $2";
