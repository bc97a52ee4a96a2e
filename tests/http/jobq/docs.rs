//! Runs the queries in `docs/protocols/jobq.md` as printed.

use serde_json::{Value, json};

use super::start_with_queue;

/// The queries of the table: the number in each line, and the code in its second column.
fn queries() -> Vec<(usize, Value)> {
    let page = include_str!("../../../docs/protocols/jobq.md");
    let (_, table) = page.split_once("### Twenty queries").expect("the table");
    let mut queries = Vec::new();
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        // In a table cell, a vertical bar is escaped.
        let line = line.replace("\\|", "\u{1}");
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Ok(number) = cells[1].parse() else {
            continue;
        };
        for code in cells[2].split('`').skip(1).step_by(2) {
            let text = format!("[{}]", code.replace('\u{1}', "|"));
            queries.push((number, serde_json::from_str(&text).expect("JSON")));
        }
    }
    queries
}

#[tokio::test]
async fn the_queries_of_the_documentation_have_the_documented_results() {
    let (_server, jobq) = start_with_queue().await;
    for (payload, state) in [
        (json!({"msg": "Hello, world", "p": 1}), json!(["CREATED"])),
        (
            json!({"host": "db", "port": 5432}),
            json!(["ASSIGNED", {"node": 1}]),
        ),
        (json!({"attempt": 4, "queue": "slow"}), Value::Null),
        (json!({"user": {"name": "O'Neil"}}), json!(["FINISHED"])),
    ] {
        jobq.put_in("q", &payload, &state).await;
    }
    let expected: &[(usize, &[i64])] = &[
        (1, &[1]),
        (2, &[1]),
        (3, &[2]),
        (4, &[3]),
        (5, &[1, 2, 4]),
        (6, &[1]),
        (7, &[2]),
        (8, &[2]),
        (9, &[1, 2]),
        (10, &[3]),
        (11, &[1]),
        (12, &[3]),
        (13, &[2]),
        (14, &[]),
        (15, &[]),
        (16, &[1]),
        (17, &[1]),
        (18, &[]),
        (18, &[]),
        (19, &[1, 2, 4]),
        (20, &[4]),
    ];
    let queries = queries();
    let numbers: Vec<usize> = queries.iter().map(|(number, _)| *number).collect();
    let wanted: Vec<usize> = expected.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, wanted);
    for ((number, query), (_, ids)) in queries.iter().zip(expected) {
        let found = jobq.matching("q", query).await;
        assert_eq!(found, *ids, "{number}: {query}");
    }
}
