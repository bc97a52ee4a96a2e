//! SQL dialects. Each statement is written once; where SQLite and Postgres differ, it contains a macro:
//!
//! | macro | expands to |
//! |---|---|
//! | `rows($1)` | the rows of a set: bound one by one, or as a JSON array |
//! | `int(0)`, `text(1)`, `real(2)` | the columns of such a row; `k.int(0)` for a set with the alias `k` |
//! | `item()` | such a row, if it is a plain text |
//! | `elements(x)` | the elements of a JSON array of texts, in the column `value` |
//! | `list(a, b)` | a JSON array, as text |
//! | `{skip_locked}` | ends a `SELECT`: lock its rows and skip rows that are locked |
//! | `{skip_locked:j}` | the same, but lock only the rows of table `j` of a join |
//! | `{locked}` | ends a `SELECT`: lock its rows, waiting for locked ones |
//! | `{locked:j}` | the same, but lock only the rows of table `j` of a join |
//! | `{indexed_by:i}` | follows a table: SQLite must use the index `i` |
//! | `{running}` | the number with this name in [`Settings::constants`](super::Settings::constants) |

use std::borrow::Cow;
use std::sync::OnceLock;

use super::constant_cache::{ConstantCache, TextKey, text_key};

/// The target of macro expansion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    Sqlite(RowBinding),
    Postgres {
        /// Whether `{skip_locked}` skips locked rows: not if the database does not support `SKIP LOCKED`, or for a read
        /// outside of a transaction.
        skip_locked: bool,
    },
}

/// How a set of rows is passed to SQLite, for which parsing JSON takes several times as long as reading bound values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowBinding {
    /// The values of one row, each bound at every place that uses it.
    Single,
    /// The values of a few rows, in a table of bound values.
    Values,
    /// A JSON array.
    Json,
}

static EXPANDED: ConstantCache<(Dialect, TextKey), str> = ConstantCache::new();

/// Numbers that statements name; the same for all databases of a process.
static CONSTANTS: OnceLock<&[(&str, i64)]> = OnceLock::new();

/// Names numbers for all statements. Only the first call has an effect.
pub fn define(constants: &'static [(&'static str, i64)]) {
    if !constants.is_empty() {
        CONSTANTS.get_or_init(|| constants);
    }
}

/// Splits a text after its first digits, which are the number of an argument or a column.
pub fn split_number(text: &str) -> (usize, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    (number.parse().unwrap_or_default(), rest)
}

/// Splits the text after an opening parenthesis at the parenthesis that closes it.
fn split_arguments(text: &str) -> (&str, &str) {
    let mut depth = 1;
    let end = text.find(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let (arguments, rest) = text.split_at(end.unwrap_or(text.len()));
    (arguments, rest.get(1..).unwrap_or_default())
}

/// The statement without its `rows` table, for a set of one row.
fn without_set(sql: &str) -> String {
    let sql = with_values(sql).unwrap_or_else(|| sql.to_owned());
    with_equality(sql)
        .replace("FROM rows($1) AS k CROSS JOIN", "FROM")
        .replace("FROM rows($1) AS k", "")
        .replace("FROM rows($1)", "")
}

/// An `INSERT` whose rows are those of the set, as one of `VALUES`. While SQLite inserts the result of a `SELECT`, it
/// prepares to undo only this statement, and copies each page before it changes it.
fn with_values(sql: &str) -> Option<String> {
    let (head, rest) = sql.split_once("SELECT ")?;
    let (values, tail) = rest.split_once("FROM rows($1)")?;
    let tail = tail.trim_start();
    let tail = tail.strip_prefix("WHERE true").unwrap_or(tail).trim_start();
    let is_plain = head.trim_start().starts_with("INSERT INTO ")
        && !values.contains("SELECT")
        && (tail.is_empty() || tail.starts_with("ON CONFLICT"));
    is_plain.then(|| format!("{head}VALUES ({}) {tail}", values.trim_end()))
}

/// The statement with `a = (…)` instead of `a IN (SELECT … FROM rows($1))`, for which SQLite fills a table.
fn with_equality(mut sql: String) -> String {
    const START: &str = " IN (SELECT ";
    const END: &str = " FROM rows($1))";
    while let Some(end) = sql.find(END) {
        let before = sql.get(..end).unwrap_or_default();
        let Some((head, columns)) = before.rsplit_once(START) else {
            break;
        };
        let rest = sql.get(end + END.len()..).unwrap_or_default();
        sql = format!("{head} = ({columns}){rest}");
    }
    sql
}

impl Dialect {
    /// Expands the macros of the statement.
    pub fn expand(self, sql: &'static str) -> &'static str {
        EXPANDED.get_or_insert((self, text_key(sql)), || {
            let expanded = match self {
                Dialect::Sqlite(RowBinding::Single) => {
                    self.expand_macros(&rolling_back(&without_set(sql)))
                }
                Dialect::Sqlite(_) => self.expand_macros(&rolling_back(sql)),
                Dialect::Postgres { .. } => self.expand_macros(sql),
            };
            Box::leak(expanded.into_boxed_str())
        })
    }

    fn expand_macros(self, sql: &str) -> String {
        let mut out = String::with_capacity(sql.len() * 2);
        let mut rest = sql;
        while let Some(at) = rest.find(['(', '{']) {
            let (before, macro_text) = rest.split_at(at);
            out.push_str(before);
            rest = if let Some((macro_text, after)) = macro_text
                .strip_prefix('{')
                .and_then(|it| it.split_once('}'))
            {
                match macro_text.split(':').next() {
                    Some("skip_locked" | "locked") => self.lock(&mut out, macro_text),
                    Some("indexed_by") => self.choose_index(&mut out, macro_text),
                    _ => out.push_str(&constant(macro_text)),
                }
                after
            } else {
                self.call(&mut out, macro_text)
            };
        }
        out.push_str(rest);
        out
    }

    /// Expands the call whose name is at the end of `out`, if it is a macro. `macro_text` starts with its opening
    /// parenthesis. Returns the rest of the statement.
    fn call<'s>(self, out: &mut String, macro_text: &'s str) -> &'s str {
        let word = last_word(out);
        let (name, inner) = (out.split_off(word), macro_text.get(1..).unwrap_or_default());
        let (argument, after) = split_arguments(inner);
        let sqlite = matches!(self, Dialect::Sqlite(_));
        let expansion = match name.as_str() {
            "rows" if self == Dialect::Sqlite(RowBinding::Values) => argument.to_owned(),
            "rows" if sqlite => format!("jsonb_each({argument})"),
            "rows" => format!("jsonb_array_elements({argument}::jsonb)"),
            "elements" if sqlite => format!("json_each({argument})"),
            "elements" => format!("jsonb_array_elements_text({argument}::jsonb)"),
            "list" if sqlite => format!("json_array({argument})"),
            "list" => format!("jsonb_build_array({argument})::text"),
            "int" | "text" | "real" | "item" => {
                let alias = out.split_off(alias_start(out));
                self.column(&alias, &name, argument)
            }
            // Not a macro. Consumes only the parenthesis, because the arguments can contain macros.
            _ => {
                let (parenthesis, rest) = macro_text.split_at(1);
                out.push_str(&name);
                out.push_str(parenthesis);
                return rest;
            }
        };
        out.push_str(&expansion);
        after
    }

    fn column(self, alias: &str, kind: &str, number: &str) -> String {
        let kind = match (self, kind) {
            (Dialect::Sqlite(RowBinding::Json), "item") => return format!("{alias}value"),
            (Dialect::Sqlite(RowBinding::Json), _) => return format!("({alias}value->>{number})"),
            (Dialect::Sqlite(set), _) => {
                let number = number.parse::<usize>().unwrap_or_default();
                return match set {
                    RowBinding::Single => format!("$1:{number}"),
                    RowBinding::Values | RowBinding::Json => format!("{alias}column{}", number + 1),
                };
            }
            (_, "item") => return format!("({alias}value #>> '{{}}')"),
            (_, "int") => "bigint",
            (_, "real") => "double precision",
            _ => "text",
        };
        format!("({alias}value->>{number})::{kind}")
    }

    /// Names the index that SQLite must use.
    fn choose_index(self, out: &mut String, macro_text: &str) {
        if let (Dialect::Sqlite(_), Some((_, index))) = (self, macro_text.split_once(':')) {
            out.push_str("INDEXED BY ");
            out.push_str(index);
        }
    }

    /// Writes the locking clause of a `SELECT`. SQLite has a single writer and needs none.
    fn lock(self, out: &mut String, macro_text: &str) {
        let (lock_mode, table) = macro_text.split_once(':').unwrap_or((macro_text, ""));
        let locks = match self {
            Dialect::Sqlite(_) => false,
            Dialect::Postgres { skip_locked } => skip_locked || lock_mode == "locked",
        };
        if !locks {
            return;
        }
        out.push_str("FOR UPDATE");
        if !table.is_empty() {
            out.push_str(" OF ");
            out.push_str(table);
        }
        if lock_mode == "skip_locked" {
            out.push_str(" SKIP LOCKED");
        }
    }
}

/// A statement that rolls the transaction back if it violates a constraint. The writer does so after any error. By
/// default, SQLite rolls only the statement back, and therefore copies each page before a statement changes it.
fn rolling_back(sql: &str) -> Cow<'_, str> {
    let start = sql.trim_start();
    if let Some(rest) = start.strip_prefix("INSERT INTO ") {
        Cow::Owned(format!("INSERT OR ROLLBACK INTO {rest}"))
    } else if let Some(rest) = start.strip_prefix("UPDATE ") {
        Cow::Owned(format!("UPDATE OR ROLLBACK {rest}"))
    } else {
        Cow::Borrowed(sql)
    }
}

/// The number with this name. An unknown name stays, so that the database rejects the statement.
fn constant(name: &str) -> String {
    let mut known = CONSTANTS.get().copied().unwrap_or_default().iter();
    let known = known.find(|(known, _)| *known == name);
    known.map_or_else(|| format!("{{{name}}}"), |(_, number)| number.to_string())
}

/// The start of the last word of the text.
fn last_word(text: &str) -> usize {
    text.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_')
        .len()
}

/// The start of the alias with its dot at the end of the text; the end of the text if there is none.
fn alias_start(text: &str) -> usize {
    text.strip_suffix('.').map_or(text.len(), last_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PG: Dialect = Dialect::Postgres { skip_locked: true };
    const SQLITE: Dialect = Dialect::Sqlite(RowBinding::Json);
    const VALUES: Dialect = Dialect::Sqlite(RowBinding::Values);

    #[test]
    fn macros_are_expanded_for_each_database() {
        let sql = "INSERT INTO t (a, b) SELECT int(0), k.text(12), coalesce(real(2), count(*)) FROM rows($1) AS k";
        assert_eq!(
            SQLITE.expand(sql),
            "INSERT OR ROLLBACK INTO t (a, b) SELECT (value->>0), (k.value->>12), coalesce((value->>2), count(*)) FROM jsonb_each($1) AS k"
        );
        assert_eq!(
            VALUES.expand(sql),
            "INSERT OR ROLLBACK INTO t (a, b) SELECT column1, k.column13, coalesce(column3, count(*)) FROM $1 AS k"
        );
        assert_eq!(
            PG.expand(sql),
            "INSERT INTO t (a, b) SELECT (value->>0)::bigint, (k.value->>12)::text, \
             coalesce((value->>2)::double precision, count(*)) FROM jsonb_array_elements($1::jsonb) AS k"
        );
        let nested = "SELECT list(a, sum(b) - sum(c)) FROM t";
        assert_eq!(
            PG.expand_macros(nested),
            "SELECT jsonb_build_array(a, sum(b) - sum(c))::text FROM t"
        );
        let sql = "SELECT list(j.a, t.value) FROM elements(j.tags) AS t WHERE x = k.item()";
        assert_eq!(
            PG.expand(sql),
            "SELECT jsonb_build_array(j.a, t.value)::text FROM jsonb_array_elements_text(j.tags::jsonb) AS t \
             WHERE x = (k.value #>> '{}')"
        );
    }

    #[test]
    fn a_set_of_one_row_is_bound_as_values() {
        for (sql, expected) in [
            (
                "\nINSERT INTO t (a, b) SELECT int(0), $2\nFROM rows($1) WHERE true\nON CONFLICT (a) DO NOTHING",
                "INSERT OR ROLLBACK INTO t (a, b) VALUES ($1:0, $2) ON CONFLICT (a) DO NOTHING",
            ),
            (
                "INSERT INTO t (a) SELECT j.a FROM rows($1) AS k CROSS JOIN j WHERE j.a = k.int(0)",
                "INSERT OR ROLLBACK INTO t (a) SELECT j.a FROM j WHERE j.a = $1:0",
            ),
            (
                "DELETE FROM t WHERE (a, b) IN (SELECT int(0), text(1) FROM rows($1)) RETURNING a",
                "DELETE FROM t WHERE (a, b) = ($1:0, $1:1) RETURNING a",
            ),
            (
                "DELETE FROM t WHERE b IN (1, 2) AND a IN (SELECT item() FROM rows($1))",
                "DELETE FROM t WHERE b IN (1, 2) AND a = ($1:0)",
            ),
            (
                "SELECT a FROM t WHERE a IN (SELECT k.int(0) FROM rows($1) AS k) ORDER BY a",
                "SELECT a FROM t WHERE a IN (SELECT $1:0 ) ORDER BY a",
            ),
        ] {
            assert_eq!(Dialect::Sqlite(RowBinding::Single).expand(sql), expected);
        }
    }

    #[test]
    fn locking_clauses_are_written_only_where_supported() {
        let sql = "(SELECT seq FROM jobs LIMIT 1 {skip_locked}) AS a";
        assert_eq!(
            PG.expand(sql),
            "(SELECT seq FROM jobs LIMIT 1 FOR UPDATE SKIP LOCKED) AS a"
        );
        let plain = "(SELECT seq FROM jobs LIMIT 1 ) AS a";
        assert_eq!(SQLITE.expand(sql), plain);
        let without = Dialect::Postgres { skip_locked: false };
        assert_eq!(without.expand(sql), plain);
        let joined = "(SELECT j.seq FROM q CROSS JOIN j LIMIT 1 {skip_locked:j}) AS a";
        let expected =
            "(SELECT j.seq FROM q CROSS JOIN j LIMIT 1 FOR UPDATE OF j SKIP LOCKED) AS a";
        assert_eq!(PG.expand(joined), expected);
        let waits = "SELECT n FROM t {locked}";
        assert_eq!(without.expand(waits), "SELECT n FROM t FOR UPDATE");
        assert_eq!(SQLITE.expand(waits), "SELECT n FROM t ");
    }

    #[test]
    fn sqlite_uses_the_named_index() {
        let sql = "SELECT seq FROM jobs {indexed_by:jobs_due} WHERE true";
        let expected = "SELECT seq FROM jobs INDEXED BY jobs_due WHERE true";
        assert_eq!(SQLITE.expand(sql), expected);
        assert_eq!(PG.expand(sql), "SELECT seq FROM jobs  WHERE true");
    }

    #[test]
    fn the_same_statement_is_expanded_once() {
        let sql = "SELECT int(0) FROM rows($1)";
        assert!(std::ptr::eq(PG.expand(sql), PG.expand(sql)));
    }
}
