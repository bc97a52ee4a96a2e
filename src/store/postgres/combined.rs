//! Two statements in one round trip: the second one in a `WITH` clause of the first.

use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use foldhash::fast::RandomState;

/// The addresses and lengths of the texts: statements are constants.
type Key = [(usize, usize); 2];

/// Combined statements. They are never dropped, because there are few.
static COMBINED: OnceLock<RwLock<HashMap<Key, &'static str, RandomState>>> = OnceLock::new();

/// The statement that runs `first`, and `second` with the arguments after the `first_args` of `first`. Postgres reports
/// the rows that `first` changes. CockroachDB requires each `WITH` clause to return something.
pub fn combined(first: &'static str, first_args: usize, second: &'static str) -> &'static str {
    let texts = COMBINED.get_or_init(RwLock::default);
    let key = [first, second].map(|text| (text.as_ptr().addr(), text.len()));
    let known = texts.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = known.get(&key) {
        return text;
    }
    drop(known);
    let second = renumbered(second, first_args);
    let text = format!("WITH also AS ({second} RETURNING 1) {first}").leak();
    let mut texts = texts.write().unwrap_or_else(PoisonError::into_inner);
    texts.entry(key).or_insert(text)
}

/// The statement with `$1` as `$(by + 1)`, and so on.
fn renumbered(sql: &str, by: usize) -> String {
    let mut parts = sql.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(digits);
        let number = number.parse::<usize>().unwrap_or_default() + by;
        text.push_str(&format!("${number}{rest}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_statement_has_the_later_arguments() {
        let first = "UPDATE a SET b = $2 WHERE c = $1";
        let second = "INSERT INTO d SELECT $2, e FROM rows($1)";
        let text = combined(first, 2, second);
        assert_eq!(
            text,
            "WITH also AS (INSERT INTO d SELECT $4, e FROM rows($3) RETURNING 1) UPDATE a SET b = $2 WHERE c = $1"
        );
        assert!(std::ptr::eq(text, combined(first, 2, second)));
    }
}
