//! Several statements in one, and so in one round trip.

use super::DATABASE_TIME;
use crate::store::constant_cache::{ConstantCache, TextKey, text_key};
use crate::store::dialect::{Dialect, split_number};
use crate::store::rows::Statement;

static COMBINED: ConstantCache<[TextKey; 2], str> = ConstantCache::new();

static AT_ONCE: ConstantCache<(Dialect, Vec<(TextKey, bool)>), str> = ConstantCache::new();

/// Appears in the log of Postgres in place of a number.
const CHANGED: &str = "changed by another server";

/// One statement that runs all of them, and returns the state. After their arguments, it has the revision, a time
/// that must not have passed, and the number of rows of each statement that has an expected one. Unless all of these are
/// right, it fails with the text [`CHANGED`], so that nothing is changed.
pub fn at_once(batch: &[Statement], dialect: Dialect) -> &'static str {
    let key = |it: &Statement| (text_key(it.sql), it.expected.is_some());
    let keys = batch.iter().map(key).collect();
    AT_ONCE.get_or_insert((dialect, keys), || {
        let (mut with, mut compared) = (String::new(), String::new());
        let mut args = 0;
        for (number, statement) in batch.iter().enumerate() {
            let start = if number == 0 { "WITH" } else { "," };
            let text = renumbered(dialect.expand(statement.sql), args);
            with.push_str(&format!("{start} part_{number} AS ({text} RETURNING 1)"));
            args += statement.args.len();
        }
        let mut expected = args + 2;
        for (number, _) in (batch.iter().enumerate()).filter(|(_, it)| it.expected.is_some()) {
            expected += 1;
            compared.push_str(&format!(" AND (SELECT count(*) FROM part_{number}) = ${expected}"));
        }
        let (revision, until) = (args + 1, args + 2);
        format!(
            "{with} SELECT revision, now, last_event, \
             CAST(CASE WHEN revision = ${revision} AND now < ${until}{compared} THEN '1' ELSE '{CHANGED}' END AS INTEGER) \
             FROM (SELECT revision, last_event, {DATABASE_TIME} AS now FROM state WHERE id = 1) AS found"
        )
        .leak()
    })
}

/// Joins adjacent statements with the same text, of which each has a part of the rows of one kind. SQLite binds each row,
/// so its statements have fewer rows.
pub fn merged(batch: Vec<Statement>) -> Vec<Statement> {
    let mut merged: Vec<Statement> = Vec::with_capacity(batch.len());
    for statement in batch {
        let rest = match merged.last_mut() {
            Some(last) => last.merge(statement),
            None => Some(statement),
        };
        merged.extend(rest);
    }
    merged
}

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
    use crate::store::Arg;

    #[test]
    fn parts_of_the_same_rows_are_one_statement() {
        const ADD: &str = "INSERT INTO a SELECT int(0) FROM rows($1)";
        let part = |rows: &[(i64,)]| {
            let part = Statement::of_rows(ADD, rows).exactly(rows.len());
            part.combinable()
        };
        let counts = || Statement::of_rows("UPDATE b", &[(1,)]).with(2).combinable();
        let all = merged(vec![part(&[(1,), (2,)]), part(&[(3,)]), counts(), counts()]);
        let shown: Vec<_> = all.iter().map(|it| (it.sql, it.expected)).collect();
        let expected = [(ADD, Some(3)), ("UPDATE b", None), ("UPDATE b", None)];
        assert_eq!(shown, expected, "with other arguments, they are not merged");
        let rows = all.first().and_then(|it| match it.args.as_slice() {
            [Arg::Rows(rows)] => Some(rows.json()),
            _ => None,
        });
        assert_eq!(rows.as_deref(), Some("[[1],[2],[3]]"));
    }

    #[test]
    fn statements_at_once_compare_the_revision_and_their_rows() {
        let batch = [
            Statement::new("UPDATE a SET b = $2 WHERE c = $1", [1.into(), 2.into()]).exactly(1),
            Statement::new("DELETE FROM d WHERE e = $1", [3.into()]),
            Statement::new("DELETE FROM f WHERE g = $1", [3.into()]).exactly(7),
        ];
        let text = at_once(&batch, Dialect::Postgres { skip_locked: true });
        assert_eq!(
            text,
            "WITH part_0 AS (UPDATE a SET b = $2 WHERE c = $1 RETURNING 1), \
             part_1 AS (DELETE FROM d WHERE e = $3 RETURNING 1), \
             part_2 AS (DELETE FROM f WHERE g = $4 RETURNING 1) \
             SELECT revision, now, last_event, CAST(CASE WHEN revision = $5 AND now < $6 \
             AND (SELECT count(*) FROM part_0) = $7 AND (SELECT count(*) FROM part_2) = $8 \
             THEN '1' ELSE 'changed by another server' END AS INTEGER) \
             FROM (SELECT revision, last_event, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS now \
             FROM state WHERE id = 1) AS found"
        );
    }

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
