//! A map that only grows and takes no lock: every request looks up the counters of its route.

use std::hash::{BuildHasher, Hash};
use std::sync::OnceLock;

use foldhash::fast::FixedState;

/// A map of fixed capacity whose entries are never removed. Keys that find no free slot share the last entry.
#[derive(Debug)]
pub struct Table<K, V> {
    slots: Box<[OnceLock<(K, V)>]>,
    rest: (K, V),
}

impl<K, V> Table<K, V> {
    /// An empty map for `capacity` entries. Keys beyond that share the entry of `rest`.
    pub fn new(capacity: usize, rest: K) -> Table<K, V>
    where
        V: Default,
    {
        Table {
            // Half of the slots stay empty, which keeps lookups short.
            slots: (0..capacity * 2).map(|_| OnceLock::new()).collect(),
            rest: (rest, V::default()),
        }
    }

    /// The entry of a key. `key` is its borrowed form, which alone is hashed; `is` compares it with a stored key, and
    /// `owned` creates the key to store.
    pub fn entry<Q: Hash>(&self, key: &Q, is: impl Fn(&K) -> bool, owned: impl Fn() -> K) -> &(K, V)
    where
        V: Default,
    {
        let capacity = self.slots.len() / 2;
        #[expect(clippy::cast_possible_truncation, reason = "any part of a hash is one")]
        let first = FixedState::default().hash_one(key) as usize % self.slots.len().max(1);
        let (head, tail) = self.slots.split_at(first.min(self.slots.len()));
        for slot in tail.iter().chain(head).take(capacity) {
            // Another thread may use the free slot first, for another key.
            let entry = slot.get_or_init(|| (owned(), V::default()));
            if is(&entry.0) {
                return entry;
            }
        }
        &self.rest
    }

    /// All entries, unordered. The last one is shared by the keys beyond the capacity.
    pub fn entries(&self) -> impl Iterator<Item = &(K, V)> {
        self.slots
            .iter()
            .filter_map(OnceLock::get)
            .chain([&self.rest])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Counter;

    fn count(table: &Table<String, Counter>, key: &str) {
        let entry = table.entry(&key, |it| it == key, || key.to_owned());
        entry.1.increment();
    }

    #[test]
    fn each_key_has_an_entry_and_keys_beyond_the_capacity_share_one() {
        let table = Table::new(4, "rest".to_owned());
        for n in 0..1_000 {
            count(&table, &format!("key {}", n % 100));
        }
        let sum: u64 = table.entries().map(|(_, it)| it.get()).sum();
        assert_eq!(sum, 1_000);
        let all: Vec<_> = table.entries().collect();
        assert!(all.len() <= 9, "{all:?}");
        assert!(all.iter().take(all.len() - 1).all(|it| it.1.get() == 10));
        assert!(
            all.last()
                .is_some_and(|it| it.0 == "rest" && it.1.get() > 900)
        );
    }

    #[test]
    fn threads_that_add_the_same_keys_agree_on_the_entries() {
        let table = Table::new(64, String::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..6_400 {
                        count(&table, &(n % 64).to_string());
                    }
                });
            }
        });
        let mut counts: Vec<_> = table.entries().map(|(_, it)| it.get()).collect();
        assert_eq!(counts.pop(), Some(0));
        assert_eq!(counts, [400; 64]);
    }
}
