//! The query language of Jobq, tested through its public interface.

#![cfg(test)]

mod budget;
mod expressions;
mod hostile;
mod json;
mod limits;
mod oracle;
mod queries;
mod robust;

use switchyard::budget::Budget;
use switchyard::query::{Query, QueryError, Record};

/// The current time for all queries.
pub const NOW: i64 = 1_700_000_000;

pub const RECORD: Record<'static> = Record {
    id: 42,
    payload: r#"{"msg":"Hello, world","attempt":4,"host":"db","port":5432,"p":1,"user":{"name":"O'Neil"}}"#,
    state: Some(r#"["ASSIGNED",{"node":1}]"#),
    events: r#"[["job_created",{"timestamp":"1699999000"}]]"#,
    modified: NOW - 61,
};

#[track_caller]
pub fn parse(query: &str) -> Query {
    match Query::parse(query) {
        Ok(query) => query,
        Err(refused) => panic!("{query}: {refused}"),
    }
}

/// A query with one term.
pub fn term(operator: &str, left: &str, right: &str) -> Result<Query, QueryError> {
    Query::parse(&serde_json::json!([[operator, left, right]]).to_string())
}

#[track_caller]
pub fn matches(query: &str, record: &Record<'_>) -> bool {
    let mut work = Budget::new(10_000_000);
    parse(query).matches(record, NOW, &mut work).unwrap()
}

/// Whether the term `left IS right` matches the record.
#[track_caller]
pub fn is(left: &str, right: &str, record: &Record<'_>) -> bool {
    let query = term("IS", left, right);
    let query = query.unwrap_or_else(|refused| panic!("{left} IS {right}: {refused}"));
    let mut work = Budget::new(10_000_000);
    query.matches(record, NOW, &mut work).unwrap()
}
