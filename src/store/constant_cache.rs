//! Values that are computed once for each SQL text.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{OnceLock, PoisonError, RwLock};

use foldhash::fast::RandomState;

/// A text in the program. Statements are constants, so the address identifies the text.
pub type TextKey = (usize, usize);

pub fn text_key(sql: &'static str) -> TextKey {
    (sql.as_ptr().addr(), sql.len())
}

/// Values that are never dropped, because statements are few.
pub struct ConstantCache<K, V: ?Sized + 'static>(
    OnceLock<RwLock<HashMap<K, &'static V, RandomState>>>,
);

impl<K: Eq + Hash, V: ?Sized> ConstantCache<K, V> {
    pub const fn new() -> ConstantCache<K, V> {
        ConstantCache(OnceLock::new())
    }

    /// The value of this key. Two threads may compute it, and the first value stays.
    pub fn get_or_insert(&self, key: K, value: impl FnOnce() -> &'static V) -> &'static V {
        let all = self.0.get_or_init(RwLock::default);
        let known = all.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&key) {
            return known;
        }
        drop(known);
        // Not while the lock is held: the value may need one of another key.
        let value = value();
        let mut all = all.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(key).or_insert(value)
    }
}
