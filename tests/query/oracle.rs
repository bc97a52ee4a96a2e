//! Compares queries with SQLite: both evaluate random expressions over random jobs.
//!
//! `QUERY_CASES=100000 cargo nextest run --features ssr sqlite` sets the number of cases.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};
use switchyard::budget::Budget;
use switchyard::query::{Query, Record, first_text_of};
use tokio::runtime::Runtime;

use super::expressions::{OPERATORS, expression, job};
use super::{NOW, is, term};

/// A database that contains one job.
struct Oracle {
    runtime: Runtime,
    connection: SqliteConnection,
}

/// SQLite's result for an expression: its type, its text, and whether a term with it is true.
struct Answer {
    kind: String,
    text: Option<String>,
    holds: Option<bool>,
}

impl Oracle {
    fn open() -> Oracle {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let connection = runtime
            .block_on(SqliteConnection::connect("sqlite::memory:"))
            .unwrap();
        let mut oracle = Oracle {
            runtime,
            connection,
        };
        let columns = "id INTEGER, payload TEXT, state TEXT, events TEXT, modified INTEGER";
        oracle.run(&format!("CREATE TABLE job ({columns})"));
        oracle.run("INSERT INTO job VALUES (1, '', '', '', 1)");
        oracle
    }

    fn run(&mut self, sql: &str) {
        let statement = sqlx::query(AssertSqlSafe(sql)).persistent(false);
        self.runtime
            .block_on(statement.execute(&mut self.connection))
            .unwrap();
    }

    fn put(&mut self, record: &Record<'_>) {
        let sql = "UPDATE job SET id = ?1, payload = ?2, state = ?3, events = ?4, modified = ?5";
        let statement = sqlx::query(sql)
            .bind(record.id)
            .bind(record.payload)
            .bind(record.state)
            .bind(record.events)
            .bind(record.modified);
        self.runtime
            .block_on(statement.execute(&mut self.connection))
            .unwrap();
    }

    /// Checks that SQLite cannot parse the term either.
    fn is_refused(&mut self, operator: &str, left: &str, right: &str) -> bool {
        let sql = format!("SELECT ({left}) {operator} ({right}) FROM job j");
        let statement = sqlx::query(AssertSqlSafe(sql)).persistent(false);
        let result = self
            .runtime
            .block_on(statement.fetch_one(&mut self.connection));
        matches!(result, Err(sqlx::Error::Database(error)) if error.message().contains("syntax error"))
    }

    /// SQLite's result for a term; `None` if SQLite reports a runtime error.
    fn ask(&mut self, operator: &str, left: &str, right: &str) -> Option<Answer> {
        let timed = |text: &str| {
            let text = text.replace("strftime('%s','now')", &format!("'{NOW}'"));
            text.replace("unixepoch()", &NOW.to_string())
                .replace("JOB.", "j.")
        };
        let (left, right) = (timed(left), timed(right));
        let sql = format!(
            "SELECT typeof({left}), CAST(({left}) AS TEXT), ({left}) {operator} ({right}) FROM job j"
        );
        let statement = sqlx::query(AssertSqlSafe(sql)).persistent(false);
        match self
            .runtime
            .block_on(statement.fetch_one(&mut self.connection))
        {
            Ok(row) => Some(Answer {
                kind: row.get(0),
                text: row.get(1),
                holds: row.get::<Option<i64>, _>(2).map(|holds| holds != 0),
            }),
            Err(sqlx::Error::Database(error)) => {
                let error = error.message();
                let is_known = [
                    "malformed JSON",
                    "bad JSON path",
                    "integer overflow",
                    "JSON path error",
                ]
                .iter()
                .any(|known| error.contains(known));
                assert!(is_known, "{error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Counts of cases.
#[derive(Debug, Default)]
struct Tally {
    compared: u64,
    unread: u64,
    errors: u64,
}

/// Evaluates one term over one job with both, and compares the results.
fn compare(
    oracle: &mut Oracle,
    tally: &mut Tally,
    record: &Record<'_>,
    (operator, left, right): (&str, &str, &str),
) -> Result<(), TestCaseError> {
    let query = match term(operator, left, right) {
        Ok(query) => query,
        // Without parentheses, some generated texts are not valid expressions.
        Err(refused) => {
            tally.unread += 1;
            prop_assert!(oracle.is_refused(operator, left, right), "{}", refused);
            return Ok(());
        }
    };
    let holds = query.matches(record, NOW, &mut Budget::new(100_000_000));
    oracle.put(record);
    let Some(response) = oracle.ask(operator, left, right) else {
        tally.errors += 1;
        return Ok(());
    };
    tally.compared += 1;
    let kind = format!("'{}'", response.kind);
    prop_assert!(is(&format!("typeof({left})"), &kind, record), "is {}", kind);
    match response.text {
        Some(text) if text.contains('\0') => {}
        Some(text) => {
            let literal = format!("'{}'", text.replace('\'', "''"));
            let cast = format!("CAST(({left}) AS TEXT)");
            prop_assert!(is(&cast, &literal, record), "is {}", text);
        }
        None => prop_assert!(is(left, "NULL", record), "is NULL"),
    }
    prop_assert_eq!(holds, Ok(response.holds == Some(true)));
    let unknown = is(&format!("({left}) {operator} ({right})"), "NULL", record);
    prop_assert_eq!(unknown, response.holds.is_none());
    if holds == Ok(true) {
        check_hint(&query, record)?;
    }
    Ok(())
}

fn record(
    (id, payload, state, events, modified): &(i64, String, Option<String>, String, i64),
) -> Record<'_> {
    Record {
        id: *id,
        payload,
        state: state.as_deref(),
        events,
        modified: *modified,
    }
}

/// Checks that the index hint of a query is true for every matching job.
fn check_hint(query: &Query, record: &Record<'_>) -> Result<(), TestCaseError> {
    let hint = query.hint();
    prop_assert!(hint.ids.contains(&record.id));
    prop_assert!(hint.modified.contains(&record.modified));
    prop_assert!(!(hint.no_state && record.state.is_some()));
    prop_assert!(!(hint.has_state && record.state.is_none()));
    prop_assert!(hint.first_text.is_none() || hint.first_text == first_text_of(record.state));
    Ok(())
}

#[test]
fn queries_have_the_same_results_as_in_sqlite() {
    let cases = std::env::var("QUERY_CASES").ok();
    let config = Config {
        cases: cases.and_then(|cases| cases.parse().ok()).unwrap_or(2_000),
        failure_persistence: None,
        ..Config::default()
    };
    let state = RefCell::new((Oracle::open(), Tally::default()));
    let operators = prop::sample::select(&OPERATORS[..]);
    let inputs = (job(), operators, expression(), expression());
    let mut runner = TestRunner::new(config);
    let result = runner.run(&inputs, |(job, operator, left, right)| {
        let record = record(&job);
        let (oracle, tally) = &mut *state.borrow_mut();
        compare(oracle, tally, &record, (operator, &left, &right))
    });
    println!("{:?}", state.borrow().1);
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Generates terms of the shapes that an index supports, so that hints are tested.
#[test]
fn index_hints_are_true_for_matching_jobs() {
    let left = prop::sample::select(vec![
        "id",
        "modified",
        "state",
        "state ->> 0",
        "json_extract(state, '$[0]')",
        "id > 1 AND state ->> 0 = 'CREATED'",
        "+id",
        "state IS NULL",
        "state NOTNULL AND modified < 5",
        "id IN (42)",
    ]);
    let right = prop::sample::select(vec![
        "0",
        "1",
        "2",
        "42",
        "0.5",
        "41.5",
        "-1",
        "'CREATED'",
        "'5'",
        "NULL",
        "TRUE",
        "1e19",
        "-1e19",
        "9223372036854775807",
        "-9223372036854775808",
        "9.3e18",
        "'42'",
    ]);
    let operators = prop::sample::select(&OPERATORS[..]);
    let state = RefCell::new((Oracle::open(), Tally::default()));
    let config = Config {
        cases: 2_000,
        failure_persistence: None,
        ..Config::default()
    };
    let inputs = (job(), operators, left, right, any::<bool>());
    let mut runner = TestRunner::new(config);
    let result = runner.run(&inputs, |(job, operator, left, right, turned)| {
        let record = record(&job);
        let (oracle, tally) = &mut *state.borrow_mut();
        let (left, right) = if turned { (right, left) } else { (left, right) };
        compare(oracle, tally, &record, (operator, left, right))
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
