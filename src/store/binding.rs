//! Binds the arguments of SQLite statements by position: each argument is bound once for every place that uses it.
//!
//! Numbered placeholders would have to be renumbered when several statements are joined into one text, and SQLite looks
//! up their numbers one by one.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::constant_cache::{ConstantCache, TextKey, text_key};
use super::dialect::{Dialect, RowBinding, split_number};
use super::rows::{Arg, Rows, Statement};

/// Sets with up to this many rows are bound value by value. Larger ones are passed as JSON, because their statements
/// are not worth caching in prepared form.
pub const ROWS_BOUND_MAX: usize = 64;

/// Capacities, in rows, of the `VALUES` tables. All tables of a text have the same capacity, so that a few prepared
/// texts serve batches of all sizes. Unused rows are null.
const CAPACITIES: [usize; 6] = [2, 4, 8, 16, 32, ROWS_BOUND_MAX];

/// The capacity that the largest table of a batch needs.
pub fn capacity<'a>(batch: impl IntoIterator<Item = &'a Statement>) -> usize {
    let sets = batch
        .into_iter()
        .filter_map(|statement| rows(&statement.args).map(Rows::len));
    let largest = sets.filter(|rows| *rows <= ROWS_BOUND_MAX).max();
    let capacity = CAPACITIES
        .into_iter()
        .find(|capacity| Some(*capacity) >= largest);
    capacity.unwrap_or(ROWS_BOUND_MAX)
}

/// The set among the arguments, if there is one.
fn rows(args: &[Arg]) -> Option<&Rows> {
    args.iter().find_map(|arg| match arg {
        Arg::Rows(rows) => Some(rows),
        _ => None,
    })
}

/// A statement, split at its placeholders.
struct Template {
    /// The text with a `?` for each placeholder.
    text: String,
    /// The text before the first placeholder.
    head: &'static str,
    parts: Vec<Part>,
    /// The texts with a table of each capacity, and the number of its columns.
    with_table: [OnceLock<(usize, String)>; CAPACITIES.len()],
}

impl Template {
    /// The text with a table of `capacity` rows of the set `rows` in place of its placeholder.
    fn with_table(&'static self, args: &[Arg], rows: &Rows, capacity: usize) -> Cow<'static, str> {
        let written = || self.write_with_table(args, rows.width, capacity);
        let index = CAPACITIES.iter().position(|known| *known == capacity);
        let Some(cached) = index.and_then(|index| self.with_table.get(index)) else {
            return Cow::Owned(written());
        };
        let (width, text) = cached.get_or_init(|| (rows.width, written()));
        match *width == rows.width {
            true => Cow::Borrowed(text),
            false => Cow::Owned(written()),
        }
    }

    fn write_with_table(&self, args: &[Arg], width: usize, capacity: usize) -> String {
        let mut text = self.head.to_owned();
        for part in &self.parts {
            match args.get(part.arg) {
                Some(Arg::Rows(_)) => write_values(width, capacity, &mut text),
                _ => text.push('?'),
            }
            text.push_str(part.rest);
        }
        text
    }
}

struct Part {
    /// The index of the argument.
    arg: usize,
    /// The index of the column, if the argument is a set of one row.
    column: Option<usize>,
    /// The text up to the next placeholder.
    rest: &'static str,
}

static TEMPLATES: ConstantCache<(RowBinding, TextKey), Template> = ConstantCache::new();

fn template(set: RowBinding, sql: &'static str) -> &'static Template {
    TEMPLATES.get_or_insert((set, text_key(sql)), || {
        Box::leak(Box::new(split(Dialect::Sqlite(set).expand(sql))))
    })
}

fn split(sql: &'static str) -> Template {
    let mut texts = sql.split('$');
    let head = texts.next().unwrap_or_default();
    let parts: Vec<Part> = texts.map(part).collect();
    let mut text = head.to_owned();
    for part in &parts {
        text.push('?');
        text.push_str(part.rest);
    }
    Template {
        text,
        head,
        parts,
        with_table: Default::default(),
    }
}

/// Parses the text after a `$`: an argument number, or `1:0` for a column of a set of one row, and the rest.
fn part(text: &'static str) -> Part {
    let (arg, rest) = split_number(text);
    let (column, rest) = match rest.strip_prefix(':').map(split_number) {
        Some((column, rest)) => (Some(column), rest),
        None => (None, rest),
    };
    Part {
        arg: arg.wrapping_sub(1),
        column,
        rest,
    }
}

/// A statement with a `?` for each use of an argument, and the arguments in that order.
pub struct Bound<'a> {
    pub text: Cow<'static, str>,
    pub args: Vec<Cow<'a, Arg>>,
}

/// Binds the arguments of a statement. `capacity` is the number of rows of the `VALUES` tables ([`capacity`]).
pub fn bind<'a>(sql: &'static str, args: &'a [Arg], capacity: usize) -> Bound<'a> {
    let rows = rows(args);
    let set = match rows.map_or(0, Rows::len) {
        1 => RowBinding::Single,
        2..=ROWS_BOUND_MAX => RowBinding::Values,
        // The number of columns of a set without rows is not known.
        _ => RowBinding::Json,
    };
    let template = template(set, sql);
    let table = rows.filter(|_| set == RowBinding::Values);
    let values = table.map_or(0, |rows| capacity * rows.width);
    let mut bound = Vec::with_capacity(template.parts.len() + values);
    let Some(table) = table else {
        let bind = |part: &Part| match (args.get(part.arg), part.column) {
            (Some(Arg::Rows(rows)), Some(column)) => rows.values.get(column).map(Cow::Borrowed),
            (Some(Arg::Rows(rows)), None) => Some(Cow::Owned(Arg::Text(rows.json()))),
            (arg, _) => arg.map(Cow::Borrowed),
        };
        let values = template.parts.iter().map(bind);
        bound.extend(values.map(|value| value.unwrap_or(Cow::Owned(Arg::Null))));
        return Bound {
            text: Cow::Borrowed(&template.text),
            args: bound,
        };
    };
    for part in &template.parts {
        match args.get(part.arg) {
            Some(Arg::Rows(rows)) => {
                let left_over = capacity.saturating_sub(rows.len()) * rows.width;
                bound.extend(rows.values.iter().map(Cow::Borrowed));
                bound.extend((0..left_over).map(|_| Cow::Owned(Arg::Null)));
            }
            arg => bound.push(arg.map_or(Cow::Owned(Arg::Null), Cow::Borrowed)),
        }
    }
    Bound {
        text: template.with_table(args, table, capacity),
        args: bound,
    }
}

/// Appends a table of `capacity` rows.
fn write_values(width: usize, capacity: usize, text: &mut String) {
    let mut row = String::with_capacity(2 * width + 3);
    row.push('(');
    for column in 0..width {
        row.push_str(if column == 0 { "?" } else { ",?" });
    }
    row.push(')');
    text.push_str("(SELECT * FROM (VALUES ");
    for number in 0..capacity {
        if number > 0 {
            text.push(',');
        }
        text.push_str(&row);
    }
    // The first column of a row is never null.
    text.push_str(") WHERE column1 IS NOT NULL)");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bound_where_they_are_used_and_unused_rows_are_null() {
        let written = |sql, args: Vec<Arg>| {
            let capacity = capacity(&[Statement::new(sql, args.clone())]);
            let bound = bind(sql, &args, capacity);
            let args = serde_json::to_string(&bound.args).unwrap();
            (bound.text.into_owned(), args)
        };
        let sql = "SELECT int(0), $2 FROM rows($1) WHERE x = $2";
        let rows = |count: i64| {
            let rows: Vec<_> = (0..count).map(|n| (n, "a", None::<i64>)).collect();
            let mut args = Statement::of_rows(sql, &rows).args;
            args.push(Arg::Int(7));
            args
        };
        let (text, bound) = written(sql, rows(1));
        assert_eq!(text, "SELECT ?, ?  WHERE x = ?");
        assert_eq!(bound, "[0,7,7]");
        let (text, bound) = written(sql, rows(3));
        assert_eq!(
            text,
            "SELECT column1, ? FROM (SELECT * FROM (VALUES (?,?,?),(?,?,?),(?,?,?),(?,?,?)) \
             WHERE column1 IS NOT NULL) WHERE x = ?"
        );
        assert_eq!(
            bound,
            r#"[7,0,"a",null,1,"a",null,2,"a",null,null,null,null,7]"#
        );
        let (text, bound) = written(sql, rows(65));
        assert_eq!(text, "SELECT (value->>0), ? FROM jsonb_each(?) WHERE x = ?");
        assert!(bound.starts_with(r#"[7,"[[0,\"a\",null],[1,"#), "{bound}");
    }

    #[test]
    fn tables_of_a_batch_have_the_same_capacity() {
        let of =
            |count: usize| Statement::of_rows("SELECT int(0) FROM rows($1)", &vec![(1,); count]);
        for (counts, expected) in [
            (vec![], 2),
            (vec![1], 2),
            (vec![3, 20, 1], 32),
            (vec![64], 64),
            (vec![65, 5], 8),
        ] {
            let batch: Vec<_> = counts.iter().map(|count| of(*count)).collect();
            assert_eq!(capacity(&batch), expected, "{counts:?}");
        }
    }

    #[test]
    fn plain_values_are_rows_of_one_column() {
        let sql = "SELECT item() FROM rows($1)";
        let statement = Statement::of_rows(sql, &["a", "b"]);
        let Some(Arg::Rows(rows)) = statement.args.first() else {
            panic!("no rows");
        };
        assert_eq!((rows.len(), rows.json().as_str()), (2, r#"["a","b"]"#));
    }
}
