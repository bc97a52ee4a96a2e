//! Selecting records in the dashboard, and exporting or deleting them.

use serde_json::{Value, json};

use super::start_with_queue;
use crate::support::{Server, escape};

async fn page(server: &Server, path: &str) -> String {
    let response = server.try_send(reqwest::Method::GET, path, None).await;
    let response = response.unwrap();
    assert_eq!(response.status, 200, "{path}: {}", response.text);
    response.text
}

/// The values of the checkboxes of a list.
fn checkboxes(page: &str) -> Vec<&str> {
    let boxes = page
        .split("type=\"checkbox\" name=\"job\" value=\"")
        .skip(1);
    boxes.filter_map(|rest| rest.split('"').next()).collect()
}

#[tokio::test]
async fn selected_records_are_exported_and_deleted() {
    let (server, jobq) = start_with_queue().await;
    for number in 1..=3 {
        jobq.put("q", &json!({"number": number})).await;
    }
    let listed = page(&server, "/ui/jobq/q").await;
    let boxes = checkboxes(&listed);
    assert_eq!(boxes.len(), 3, "{listed}");
    assert!(listed.contains("all 3 matching"));
    let selected = format!("of=selected&job={}&job={}", boxes[0], boxes[2]);
    let lines = page(&server, &format!("/ui/jobs.jsonl?{selected}")).await;
    let exported: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(exported.len(), 2, "{lines}");
    let confirm = page(&server, &format!("/ui/confirm?do=cancel&{selected}")).await;
    assert!(confirm.contains("Cancel or delete 2 jobs?"), "{confirm}");
    // No search finds the results of a query, so only selected ones can be changed.
    let query = escape(r#"[["=", "id", 2]]"#);
    for filter in [format!("q={query}"), "state=null".to_owned()] {
        let listed = page(&server, &format!("/ui/jobq/q?{filter}")).await;
        let values = checkboxes(&listed);
        assert!(values.contains(&boxes[1]), "{filter}: {listed}");
        assert!(!listed.contains("value=\"all\""), "{filter}: {listed}");
    }
}

#[tokio::test]
async fn the_events_of_long_logs_are_not_counted_in_lists() {
    let (server, jobq) = start_with_queue().await;
    let id = jobq.put("q", &json!(1)).await.id;
    jobq.event("q", id, &json!("x".repeat(100))).await;
    let query = format!("/ui/jobq/q?q={}", escape("[]"));
    for path in ["/ui/jobq/q", &query] {
        assert!(!page(&server, path).await.contains(">many<"), "{path}");
    }
    for _ in 0..160 {
        jobq.event("q", id, &json!("x".repeat(100))).await;
    }
    for path in ["/ui/jobq/q", &query] {
        assert!(page(&server, path).await.contains(">many<"), "{path}");
    }
}
