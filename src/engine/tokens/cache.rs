//! The cache of the table `tokens`.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::engine::clock::Time;
use crate::engine::tokens::{Token, TokenChange, TokenDetails, token_id};
use crate::secret::{Hash, last_match};
use crate::store::{Row, StoreError};

const HOUR: i64 = 3_600 * 1_000_000;

/// A token as cached.
#[derive(Debug)]
struct CachedToken {
    hash: Hash,
    details: TokenDetails,
    last_use: LastUse,
}

impl PartialEq for CachedToken {
    /// Compares only what determines access, not the last use.
    fn eq(&self, other: &CachedToken) -> bool {
        self.hash == other.hash && self.details == other.details
    }
}

/// The hour of the last use of a token, in microseconds since 1970; 0 if never used.
#[derive(Debug, Default)]
struct LastUse {
    at: AtomicI64,
    /// The same, as stored in the database.
    stored: AtomicI64,
}

impl LastUse {
    fn stored(at: i64) -> LastUse {
        LastUse {
            at: AtomicI64::new(at),
            stored: AtomicI64::new(at),
        }
    }

    /// Records a use. Writes only once per hour, which avoids contention between cores.
    fn note(&self, now: Time) {
        let hour = now.0 - now.0.rem_euclid(HOUR);
        if self.at.load(Ordering::Relaxed) != hour {
            self.at.store(hour, Ordering::Relaxed);
        }
    }

    /// Takes over a value that is stored in the database, if it is later.
    fn merge_stored(&self, at: i64) {
        self.at.fetch_max(at, Ordering::Relaxed);
        self.stored.fetch_max(at, Ordering::Relaxed);
    }

    fn get(&self) -> Option<Time> {
        let at = self.at.load(Ordering::Relaxed);
        (at > 0).then_some(Time(at))
    }

    fn unstored(&self) -> Option<i64> {
        let at = self.at.load(Ordering::Relaxed);
        (at > self.stored.load(Ordering::Relaxed)).then_some(at)
    }
}

/// The last use of a token, to be stored.
#[derive(Clone, Debug)]
pub struct TokenUse {
    pub namespace: String,
    pub hash: Hash,
    /// Distinguishes the token from a later one with the same secret.
    pub created_at: Time,
    pub at: i64,
}

type ByNamespace = BTreeMap<String, Vec<CachedToken>>;

/// The tokens of all namespaces.
#[derive(Debug, Default)]
pub struct Tokens(RwLock<ByNamespace>);

impl Tokens {
    /// Replaces the tokens with the result of [`crate::engine::tokens::ALL`]. Returns whether they differ.
    pub fn reload(&self, rows: &[Row]) -> Result<bool, StoreError> {
        let mut tokens = ByNamespace::new();
        for row in rows {
            let token = CachedToken {
                hash: hash(row, 1)?,
                details: TokenDetails {
                    description: row.text(2)?,
                    created_at: Time(row.int(3)?),
                    expires_at: row.int_or_null(4)?.map(Time),
                },
                last_use: LastUse::stored(row.int(5)?),
            };
            tokens.entry(row.text(0)?).or_default().push(token);
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let differs = *known != tokens;
        let noted: HashMap<_, _> = last_uses(&known).collect();
        for (key, last_use) in last_uses(&tokens) {
            // Uses that have not been stored yet.
            if let Some(at) = noted.get(&key).and_then(|noted| noted.unstored()) {
                last_use.at.fetch_max(at, Ordering::Relaxed);
            }
        }
        drop(noted);
        *known = tokens;
        Ok(differs)
    }

    /// Applies the result of [`crate::engine::tokens::last_use::STORED`], which other servers may have stored.
    pub fn reload_uses(&self, rows: &[Row]) -> Result<(), StoreError> {
        let mut stored: HashMap<String, HashMap<[u8; 32], i64>> = HashMap::new();
        for row in rows {
            let uses = stored.entry(row.text(0)?).or_default();
            uses.insert(hash(row, 1)?.bytes(), row.int(2)?);
        }
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for (namespace, uses) in stored {
            for token in known.get(&namespace).into_iter().flatten() {
                if let Some(at) = uses.get(&token.hash.bytes()) {
                    token.last_use.merge_stored(*at);
                }
            }
        }
        Ok(())
    }

    /// Reads the token of the namespace with this hash. Compares with all tokens, each in constant time.
    fn with<T>(
        &self,
        namespace: &str,
        hash: &Hash,
        read: impl FnOnce(&CachedToken) -> T,
    ) -> Option<T> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let tokens = tokens.get(namespace)?;
        let found = last_match(tokens.iter().map(|token| token.hash.matches(hash)))?;
        tokens.get(found).map(read)
    }

    /// Whether the namespace has a token with this hash, expired or not.
    pub fn has(&self, namespace: &str, hash: &Hash) -> bool {
        self.with(namespace, hash, |_| ()).is_some()
    }

    /// Whether the namespace has a token with this hash that has not expired.
    pub fn is_valid(&self, namespace: &str, hash: &Hash, now: Time) -> bool {
        let holds = self.with(namespace, hash, |token| !token.details.is_expired(now));
        holds.unwrap_or_default()
    }

    /// Records a use of the token with this hash and returns its expiry; `None` if there is no such token or it has
    /// expired.
    pub fn authenticate(&self, namespace: &str, hash: &Hash, now: Time) -> Option<Option<Time>> {
        let admitted = self.with(namespace, hash, |token| {
            if token.details.is_expired(now) {
                return None;
            }
            token.last_use.note(now);
            Some(token.details.expires_at)
        });
        admitted.flatten()
    }

    /// The number of tokens in the namespace, including expired ones.
    pub fn count(&self, namespace: &str) -> usize {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tokens.get(namespace).map_or(0, Vec::len)
    }

    /// The hashes of the namespace's tokens with this token ID.
    pub fn find(&self, namespace: &str, which: &str) -> Vec<Hash> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let tokens = tokens.get(namespace).into_iter().flatten();
        let called = |hash: &Hash| token_id(hash) == which;
        tokens.map(|token| token.hash).filter(called).collect()
    }

    /// All tokens, by namespace and creation time.
    pub fn all(&self, now: Time) -> Vec<Token> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let listed = |(namespace, tokens): (&String, &Vec<_>)| listed(namespace, tokens, now);
        tokens.iter().flat_map(listed).collect()
    }

    /// The tokens of the namespace, by creation time.
    pub fn of(&self, namespace: &str, now: Time) -> Vec<Token> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let tokens = tokens.get(namespace);
        tokens.map_or_else(Vec::new, |tokens| listed(namespace, tokens, now))
    }

    /// The namespaces that have tokens, by name, and how many each has, including expired ones.
    pub fn counts(&self) -> Vec<(String, usize)> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let count = |(namespace, tokens): (&String, &Vec<_>)| (namespace.clone(), tokens.len());
        tokens.iter().map(count).collect()
    }

    /// Up to `count` tokens that expired at or before `by`.
    pub fn expired(&self, by: Time, count: usize) -> Vec<(String, Hash)> {
        self.first(count, |namespace, token| {
            let is_expired = token.details.is_expired(by);
            is_expired.then(|| (namespace.to_owned(), token.hash))
        })
    }

    /// Up to `count` last uses that have not been stored.
    pub fn unstored(&self, count: usize) -> Vec<TokenUse> {
        self.first(count, |namespace, token| {
            let at = token.last_use.unstored()?;
            Some(TokenUse {
                namespace: namespace.to_owned(),
                hash: token.hash,
                created_at: token.details.created_at,
                at,
            })
        })
    }

    fn first<T>(&self, count: usize, find: impl Fn(&str, &CachedToken) -> Option<T>) -> Vec<T> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let all = tokens.iter();
        let all = all.flat_map(|(namespace, tokens)| tokens.iter().map(move |it| (namespace, it)));
        let found = all.filter_map(|(namespace, token)| find(namespace, token));
        found.take(count).collect()
    }

    /// Marks these uses as stored.
    pub fn saved(&self, uses: &[TokenUse]) {
        for it in uses {
            self.with(&it.namespace, &it.hash, |token| {
                if token.details.created_at == it.created_at {
                    token.last_use.stored.fetch_max(it.at, Ordering::Relaxed);
                }
            });
        }
    }

    /// Applies a committed change.
    pub fn apply(&self, change: TokenChange) {
        let TokenChange {
            namespace,
            hash,
            created,
            ..
        } = change;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let tokens = known.entry(namespace.clone()).or_default();
        tokens.retain(|token| token.hash != hash);
        tokens.extend(created.map(|details| CachedToken {
            hash,
            details,
            last_use: LastUse::default(),
        }));
        if tokens.is_empty() {
            known.remove(&namespace);
        }
    }
}

/// The tokens of a namespace, by creation time.
fn listed(namespace: &str, tokens: &[CachedToken], now: Time) -> Vec<Token> {
    let listed = tokens.iter().map(|token| Token {
        namespace: namespace.to_owned(),
        token_id: token_id(&token.hash),
        description: token.details.description.clone(),
        created_at: token.details.created_at,
        expires_at: token.details.expires_at,
        is_expired: token.details.is_expired(now),
        last_used_at: token.last_use.get(),
    });
    let mut listed: Vec<Token> = listed.collect();
    listed.sort_by(|a, b| (a.created_at, &a.token_id).cmp(&(b.created_at, &b.token_id)));
    listed
}

fn hash(row: &Row, column: usize) -> Result<Hash, StoreError> {
    let hash = Hash::from_hex(&row.text(column)?);
    hash.ok_or(StoreError::Corrupt(
        "the hash of a token is not a valid hash",
    ))
}

/// The last use of each token, by namespace and hash.
fn last_uses(tokens: &ByNamespace) -> impl Iterator<Item = ((&str, [u8; 32]), &LastUse)> {
    tokens.iter().flat_map(|(namespace, tokens)| {
        let pair = |it: &'_ CachedToken| it.hash.bytes();
        tokens
            .iter()
            .map(move |it| ((namespace.as_str(), pair(it)), &it.last_use))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(expires_at: Option<i64>) -> TokenChange {
        TokenChange {
            namespace: "ns".to_owned(),
            hash: Hash::of("secret"),
            created: Some(TokenDetails {
                description: String::new(),
                created_at: Time(1),
                expires_at: expires_at.map(Time),
            }),
            is_expired: false,
        }
    }

    #[test]
    fn a_token_is_valid_until_it_expires() {
        let (tokens, hash) = (Tokens::default(), Hash::of("secret"));
        tokens.apply(created(Some(1_000)));
        for (now, holds) in [(0, true), (999, true), (1_000, false), (1_001, false)] {
            assert_eq!(tokens.is_valid("ns", &hash, Time(now)), holds, "{now}");
            let admitted = tokens.authenticate("ns", &hash, Time(now));
            assert_eq!(admitted, holds.then_some(Some(Time(1_000))), "{now}");
            assert!(tokens.has("ns", &hash), "{now}");
        }
        assert_eq!(tokens.expired(Time(999), 10).len(), 0);
        assert_eq!(tokens.expired(Time(1_000), 10).len(), 1);
        assert_eq!(tokens.expired(Time(1_000), 0).len(), 0);
        tokens.apply(created(None));
        assert_eq!(tokens.authenticate("ns", &hash, Time(i64::MAX)), Some(None));
        assert_eq!(tokens.expired(Time(i64::MAX), 10).len(), 0);
    }

    #[test]
    fn a_use_is_stored_once_an_hour() {
        let (tokens, hash) = (Tokens::default(), Hash::of("secret"));
        tokens.apply(created(None));
        let used = || tokens.all(Time(0)).remove(0).last_used_at;
        assert_eq!((used(), tokens.unstored(10).len()), (None, 0));
        for (now, unstored, hour) in [
            (5 * HOUR, true, 5),
            (5 * HOUR + 1, false, 5),
            (6 * HOUR - 1, false, 5),
            (6 * HOUR, true, 6),
            (6 * HOUR + 1, false, 6),
        ] {
            tokens.authenticate("ns", &hash, Time(now)).unwrap();
            let uses = tokens.unstored(10);
            assert_eq!(uses.len(), usize::from(unstored), "{now}");
            assert_eq!(used(), Some(Time(hour * HOUR)), "{now}");
            tokens.saved(&uses);
        }
        assert!(
            tokens
                .authenticate("ns", &Hash::of("wrong"), Time(HOUR))
                .is_none()
        );
        assert!(tokens.authenticate("other", &hash, Time(HOUR)).is_none());
    }
}
