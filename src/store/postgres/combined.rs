//! Two statements in one round trip: the second one in a `WITH` clause of the first.

use crate::store::constant_cache::{ConstantCache, TextKey, text_key};
use crate::store::dialect::split_number;

static COMBINED: ConstantCache<[TextKey; 2], str> = ConstantCache::new();

/// One statement that runs both: `first` has the first `first_args` arguments, and `second` the others. Postgres reports
/// the rows that `first` changes. CockroachDB requires each `WITH` clause to return something.
pub fn in_one_statement(
    first: &'static str,
    first_args: usize,
    second: &'static str,
) -> &'static str {
    COMBINED.get_or_insert([first, second].map(text_key), || {
        let second = renumbered(second, first_args);
        format!("WITH also AS ({second} RETURNING 1) {first}").leak()
    })
}

/// The statement with `$1` as `$(by + 1)`, and so on.
fn renumbered(sql: &str, by: usize) -> String {
    let mut parts = sql.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = split_number(part);
        text.push_str(&format!("${}{rest}", number + by));
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
        let text = in_one_statement(first, 2, second);
        assert_eq!(
            text,
            "WITH also AS (INSERT INTO d SELECT $4, e FROM rows($3) RETURNING 1) UPDATE a SET b = $2 WHERE c = $1"
        );
        assert!(std::ptr::eq(text, in_one_statement(first, 2, second)));
    }
}
