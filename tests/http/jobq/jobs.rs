//! Creating, reading and deleting jobs, and their numbers.

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

use super::{assert_consistent, client, start_with_queue};
use crate::support::Server;
use crate::support::jobq::{What, ids, path};

#[tokio::test]
async fn a_job_can_be_created_with_and_without_a_state() {
    let (server, jobq) = start_with_queue().await;
    for (number, (body, payload, state)) in [
        (r#"{"payload":{"a":1}}"#, r#"{"a":1}"#, "null"),
        (r#"{"payload":null}"#, "null", "null"),
        (r#"{"payload":1,"state":null}"#, "1", "null"),
        (
            r#"{"payload":"x","state":["CREATED"]}"#,
            "\"x\"",
            "[\"CREATED\"]",
        ),
        (r#"{"state":"s","payload":[]}"#, "[]", "\"s\""),
        (r#"{"payload":true,"state":false}"#, "true", "false"),
        // Unknown fields are ignored.
        (
            r#"{"payload":0,"id":77,"events":[],"modified":1,"Payload":3,"x":{"y":[]}}"#,
            "0",
            "null",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let created = jobq.post_text("/queue/q/job", body).await.job();
        assert_eq!(created.id, i64::try_from(number).unwrap() + 1, "{body}");
        assert_eq!((&*created.payload, &*created.state), (payload, state));
        assert_eq!(created.log(), [What::Created]);
        assert_eq!(jobq.existing_job("q", created.id).await, created);
    }
    assert_eq!(jobq.all("q").await.len(), 7);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_job_requires_a_payload() {
    let (server, jobq) = start_with_queue().await;
    for body in [
        "{}",
        r#"{"state":1}"#,
        r#"{"Payload":1}"#,
        "[]",
        "null",
        "1",
        r#""payload""#,
        r#"["payload"]"#,
    ] {
        jobq.post_text("/queue/q/job", body)
            .await
            .assert_rejected(400, &[]);
    }
    assert_eq!(jobq.all("q").await, []);
    // The rejected requests used no number.
    assert_eq!(jobq.put("q", &json!(1)).await.id, 1);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn times_are_the_current_time() {
    let (_server, jobq) = start_with_queue().await;
    let before = chrono::Utc::now().timestamp();
    let created = jobq.put("q", &json!(1)).await;
    let after = chrono::Utc::now().timestamp();
    assert!((before..=after).contains(&created.modified), "{created:?}");
}

#[tokio::test]
async fn an_unknown_job_is_404() {
    let (server, jobq) = start_with_queue().await;
    jobq.create("other").await;
    let job = jobq.put("q", &json!(1)).await;
    jobq.put("other", &json!(1)).await;
    jobq.put("other", &json!(2)).await;
    for id in [
        "0",
        "2",
        "-1",
        "1.0",
        "1e0",
        "0x1",
        "x",
        "one",
        "1x",
        "%201",
        "1%20",
        "1%00",
        "1;",
        "1%27",
        "null",
        "99999999999999999999",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551617",
        "4294967297",
        "%EF%BC%91",
    ] {
        let path = format!("/queue/q/job/{id}");
        jobq.get(&path).await.assert_rejected(404, &[]);
        let state = format!("{path}/state");
        let body = r#"{"old":null,"new":1}"#;
        jobq.post_text(&state, body).await.assert_rejected(404, &[]);
        let event = format!("{path}/event");
        jobq.post_text(&event, "1").await.assert_rejected(404, &[]);
        // Deleting an unknown job succeeds.
        jobq.send(Method::DELETE, &path).await.done();
    }
    assert_eq!(jobq.all("q").await, [job]);
    assert_eq!(jobq.all("other").await.len(), 2);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_repeated_delete_succeeds() {
    let (server, jobq) = start_with_queue().await;
    for number in 0..4 {
        jobq.put_in("q", &json!(number), &json!(number % 2)).await;
    }
    for _ in 0..3 {
        jobq.delete("q", 2).await;
        assert_eq!(jobq.job("q", 2).await, None);
        assert_eq!(ids(&jobq.all("q").await), [1, 3, 4]);
        assert_eq!(jobq.matching("q", &json!([])).await, [1, 3, 4]);
        let query = json!([["=", "id", 2]]);
        assert_eq!(jobq.matching("q", &query).await, [0; 0]);
        assert_eq!(jobq.poll("q", &query, &json!(1)).await, None);
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn each_queue_numbers_its_jobs_and_reuses_no_number() {
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("jobs.db");
    let mut server = Server::on(&database, &[]);
    client(&server).create("q").await;
    client(&server).create("other").await;
    let mut last = 0;
    for round in 0..3 {
        let jobq = client(&server);
        for _ in 0..3 {
            last += 1;
            assert_eq!(jobq.put("q", &json!(last)).await.id, last);
        }
        assert_eq!(jobq.put("other", &json!(1)).await.id, round + 1);
        // First the newest jobs, then all.
        for id in [last, last - 1, last - 2] {
            jobq.delete("q", id).await;
        }
        last += 1;
        assert_eq!(jobq.put("q", &json!(last)).await.id, last);
        jobq.delete("q", last).await;
        assert_eq!(jobq.all("q").await, []);
        if round == 0 {
            server.stop().await;
        } else {
            server.kill();
        }
        server = Server::on(&database, &[]);
    }
    let jobq = client(&server);
    assert_eq!(jobq.put("q", &json!(0)).await.id, last + 1);
    assert_eq!(jobq.put("other", &json!(0)).await.id, 4);
    assert_eq!(ids(&jobq.all("other").await), [1, 2, 3, 4]);
    assert_consistent(&server).await;
}

/// Compares all data of the jobs.
#[tokio::test]
async fn everything_survives_a_stop_and_a_crash() {
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("jobs.db");
    let mut server = Server::on(&database, &[]);
    let jobq = client(&server);
    let queue = jobq.create("q").await;
    let big = r#"{"payload":{"n":12345678901234567890123, "x":[1e400,0.1000]},"state":["é\n"]}"#;
    jobq.post_text("/queue/q/job", big).await.job();
    jobq.put("q", &json!(2)).await;
    jobq.event("q", 1, &json!({"a": [1, null]})).await.job();
    let advanced = jobq.advance("q", 2, &json!(null), &json!(["S"])).await;
    advanced.job();
    let (before, order) = (jobq.all("q").await, jobq.matching("q", &json!([])).await);
    server.kill();
    let server = Server::on(&database, &[]);
    assert_eq!(client(&server).all("q").await, before);
    server.stop().await;
    let server = Server::on(&database, &[]);
    let jobq = client(&server);
    assert_eq!(jobq.all("q").await, before);
    assert_eq!(jobq.matching("q", &json!([])).await, order);
    assert_eq!(jobq.queues().await, [queue]);
    assert_eq!(jobq.get(&path("q", 1)).await.job(), before[0]);
    assert_consistent(&server).await;
}
