//! Statements that change rows which other servers may change at the same time.

use super::{Source, assert_none, sources};

/// When a statement has waited for a row that another transaction changed, Postgres rechecks only the condition outside
/// the subselect. The version ensures that the row is still the one that was selected.
#[test]
fn statements_that_change_jobs_check_their_version() {
    /// It deletes all jobs.
    const ALL: &str = "DELETE FROM jobs";
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for source in sources(&["src/engine"]) {
        for text in source.text.split("\";").chain(source.text.split("\",")) {
            let Some(at) = text
                .rfind("UPDATE jobs ")
                .or_else(|| text.rfind("DELETE FROM jobs"))
            else {
                continue;
            };
            let (_, statement) = text.split_at(at);
            if statement.contains("\"") || statement == ALL {
                continue;
            }
            seen += 1;
            let outside = statement.split_once("WHERE").map_or("", |(_, rest)| rest);
            let outside = outside.split("(\n").next().unwrap_or_default();
            if !(outside.contains("version) IN") || outside.contains("jobs.version = ")) {
                wrong.push(format!("{}: {statement}", source.path));
            }
        }
    }
    assert!(seen > 10, "the statements are found: {seen}");
    assert_none(&wrong, "another server may have changed the row meanwhile");
}

/// The statements that change rows, from the name of the table to the end.
fn changing_statements(source: &Source) -> impl Iterator<Item = &str> {
    let starts = ["DELETE FROM ", "UPDATE "].into_iter();
    let starts = starts.flat_map(|start| source.text.match_indices(start));
    starts.map(|(at, start)| {
        let (_, rest) = source.text.split_at(at + start.len());
        let mut before = ' ';
        let end = rest.find(|c| {
            let is_end = c == '"' && before != '\\';
            before = c;
            is_end
        });
        rest.split_at(end.unwrap_or(rest.len())).0
    })
}

/// The condition before the first `IN (SELECT …)` of a statement, and the subselect.
fn before_subselect(statement: &str) -> Option<(&str, &str)> {
    const IN: &str = " IN (";
    let (_, condition) = statement.split_once("WHERE")?;
    let mut places = condition.match_indices(IN).map(|(at, _)| {
        let (before, rest) = condition.split_at(at);
        (before, rest.split_at(IN.len()).1)
    });
    let (before, rest) = places.find(|(_, rest)| rest.trim_start().starts_with("SELECT"))?;
    let mut depth = 1;
    let end = rest.find(|c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    });
    Some((before, rest.split_at(end?).0))
}

/// As for jobs: Postgres does not recheck the conditions of a subselect.
#[test]
fn statements_repeat_conditions_outside_their_subselects() {
    /// The transaction also writes, or has locked, a row that any conflicting transaction must write.
    const LOCKED: [&str; 5] = [
        // The dependent, with its version.
        "dependencies WHERE (job, needs) IN (\n    SELECT k.int(0), j.seq",
        // The jobs (`LOCK_JOBS` of `consistency.rs`).
        "dependencies WHERE (job, needs) IN (\n    SELECT k.int(0), k.int(1)",
        "long_bodies WHERE job IN (\n    SELECT k.int(0)",
        "tags WHERE (job, tag) IN (\n    SELECT k.int(0), k.text(1)",
        // An undo begins some time before (`UNDO_GRACE_S`).
        "removed WHERE (operation, n) IN (\n    SELECT r.operation",
    ];
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for source in sources(&["src/engine"]) {
        let is_test = source.path.ends_with("tests.rs");
        for statement in changing_statements(&source).filter(|_| !is_test) {
            let Some((outside, subselect)) = before_subselect(statement) else {
                continue;
            };
            if !subselect.contains("WHERE") {
                continue;
            }
            seen += 1;
            let repeats = [" AND ", "version)", " n)"];
            let is_locked = LOCKED.iter().any(|it| statement.starts_with(it));
            if !is_locked && !repeats.iter().any(|it| outside.contains(it)) {
                wrong.push(format!("{}: {statement}", source.path));
            }
        }
    }
    assert!(seen > 10, "the statements are found: {seen}");
    assert_none(&wrong, "another server may have changed the row meanwhile");
}
