//! The log of a job.

use serde_json::{Value, json};

use super::{assert_consistent, start_with_queue};
use crate::support::eventually;
use crate::support::jobq::{Job, Jobq, What, path, plain};

#[tokio::test]
async fn events_are_appended_to_the_log_in_order() {
    let (server, jobq) = start_with_queue().await;
    jobq.put_in("q", &json!("p"), &json!(["S"])).await;
    let mut log = vec![What::Created];
    for event in [
        json!(null),
        json!(false),
        json!(0),
        json!(""),
        json!([]),
        json!({}),
        json!("text"),
        json!({"timestamp": "1", "event": 2}),
        json!(["job_created", {"timestamp": "0"}]),
        json!({"query": [], "state": 9, "old": null, "new": 9, "payload": 9}),
        json!(null),
    ] {
        let job = jobq.event("q", 1, &event).await.job();
        log.push(What::User(plain(&event)));
        assert_eq!(job.log(), log);
        assert_eq!((&*job.payload, &*job.state), ("\"p\"", "[\"S\"]"));
        assert_eq!(jobq.existing_job("q", 1).await, job);
    }
    assert_consistent(&server).await;
}

/// In every event, the time is a string of seconds.
#[tokio::test]
async fn events_have_the_documented_format() {
    let (_server, jobq) = start_with_queue().await;
    let before = chrono::Utc::now().timestamp();
    jobq.put("q", &json!(1)).await;
    jobq.advance("q", 1, &json!(null), &json!(["A"]))
        .await
        .job();
    let reply = jobq.event("q", 1, &json!({"x": 1})).await;
    let job: Value = reply.ok();
    let after = chrono::Utc::now().timestamp();
    let events = job["events"].as_array().unwrap();
    let time = |number: usize| {
        let time = events[number][1]["timestamp"].as_str().expect("a string");
        let seconds: i64 = time.parse().unwrap();
        assert!((before..=after).contains(&seconds), "{job}");
        time
    };
    let expected = json!([
        ["job_created", {"timestamp": time(0)}],
        ["job_state_advanced", {"old": null, "new": ["A"], "timestamp": time(1)}],
        ["user_event", {"event": {"x": 1}, "timestamp": time(2)}],
    ]);
    assert_eq!(job["events"], expected);
    assert_eq!(job["modified"].to_string(), time(2));
    let mut keys: Vec<&String> = job.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["events", "id", "modified", "payload", "state"]);
}

#[tokio::test]
async fn changes_update_the_modification_time_and_reads_do_not() {
    let (server, jobq) = start_with_queue().await;
    jobq.put("q", &json!(1)).await;
    let mut last = jobq.existing_job("q", 1).await;
    for step in 0..3 {
        // Reads do not change the modification time.
        let later = async || chrono::Utc::now().timestamp() > last.modified;
        eventually("the next second", later).await;
        assert_eq!(jobq.existing_job("q", 1).await, last);
        assert_eq!(jobq.all("q").await, std::slice::from_ref(&last));
        jobq.send_query("q", &json!([])).await.jobs();
        jobq.poll("q", &json!([["=", "id", 2]]), &json!(1)).await;
        jobq.advance("q", 1, &json!("no"), &json!(1))
            .await
            .conflict();
        assert_eq!(jobq.existing_job("q", 1).await, last);
        let state: Value = serde_json::from_str(&last.state).unwrap();
        let now = match step {
            0 => jobq.event("q", 1, &json!(1)).await.job(),
            1 => jobq.advance("q", 1, &state, &json!(["A"])).await.job(),
            _ => jobq.poll("q", &json!([]), &json!(["B"])).await.unwrap(),
        };
        assert!(now.modified > last.modified, "{now:?} after {last:?}");
        assert_eq!(now.events.len(), last.events.len() + 1);
        assert_eq!(now.events[..last.events.len()], last.events);
        last = now;
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn invalid_json_is_not_an_event() {
    let (server, jobq) = start_with_queue().await;
    let job = jobq.put("q", &json!(1)).await;
    let at = format!("{}/event", path("q", 1));
    for body in ["", " ", "x", "{", "1 2", "[1,]", "{\"a\"}"] {
        jobq.post_text(&at, body).await.assert_rejected(400, &[]);
    }
    assert_eq!(jobq.existing_job("q", 1).await, job);
    assert_consistent(&server).await;
}

/// A job whose log has less than 1 KB of space left for events.
async fn without_room_for_events(jobq: &Jobq) -> Job {
    let job = jobq.put("q", &json!("full")).await;
    let mut size = 500_000;
    let mut last = job;
    while size > 100 {
        let event = json!("x".repeat(size));
        let reply = jobq.event("q", last.id, &event).await;
        if reply.status == 200 {
            last = reply.job();
        } else {
            reply.assert_rejected(422, &[]);
            size /= 2;
        }
    }
    last
}

/// A job whose log has less than 1 KB of space left.
async fn nearly_full(jobq: &Jobq) -> Job {
    let mut last = without_room_for_events(jobq).await;
    let (mut size, mut state) = (20_000, json!(null));
    while size > 100 {
        // The log contains both states of a change.
        let next = match state.is_null() {
            true => json!("z".repeat(size)),
            false => json!(null),
        };
        let reply = jobq.advance("q", last.id, &state, &next).await;
        if reply.status == 200 {
            (last, state) = (reply.job(), next);
        } else {
            reply.assert_rejected(422, &[]);
            size /= 2;
        }
    }
    last
}

#[tokio::test]
async fn events_leave_room_for_changes_of_the_state() {
    let (server, jobq) = start_with_queue().await;
    let full = without_room_for_events(&jobq).await;
    let size = log_bytes(&full);
    assert!((975_000..=960 << 10).contains(&size), "{size} bytes");
    let query = json!([["IS", "j.state", null]]);
    let state = json!("x".repeat(1_000));
    assert_eq!(jobq.poll("q", &query, &state).await.unwrap().id, full.id);
    jobq.advance("q", full.id, &state, &json!("done"))
        .await
        .job();
    let event = json!("y".repeat(1_000));
    let reply = jobq.event("q", full.id, &event).await;
    reply.assert_rejected(422, &[]);
    assert_consistent(&server).await;
}

/// The bytes of the texts in a log.
fn log_bytes(job: &Job) -> usize {
    let texts = job.log().into_iter().map(|what| match what {
        What::User(text) => text.len(),
        What::Advanced(old, new) => old.len() + new.len(),
        What::Created => 0,
    });
    texts.sum()
}

#[tokio::test]
async fn a_log_has_at_most_1_mib() {
    let (server, jobq) = start_with_queue().await;
    let full = nearly_full(&jobq).await;
    // The fields that the server adds to an event are small.
    let size = log_bytes(&full);
    assert!((1_040_000..=1 << 20).contains(&size), "{size} bytes");
    let large = json!("y".repeat(2_000));
    let order = jobq.matching("q", &json!([])).await;
    for _ in 0..2 {
        jobq.event("q", full.id, &large)
            .await
            .assert_rejected(422, &[]);
        let state: Value = serde_json::from_str(&full.state).unwrap();
        let reply = jobq.advance("q", full.id, &state, &large).await;
        reply.assert_rejected(422, &[]);
        let query = json!([["=", "id", full.id]]);
        let reply = jobq.send_poll("q", &query, &large).await;
        reply.assert_rejected(422, &[]);
        assert_eq!(jobq.existing_job("q", full.id).await, full);
    }
    assert_eq!(jobq.matching("q", &json!([])).await, order);
    // A state change with a wrong old state gets either error, and has no effect.
    let reply = jobq.advance("q", full.id, &json!(1), &large).await;
    assert!([409, 422].contains(&reply.status), "{reply:?}");
    assert_eq!(jobq.existing_job("q", full.id).await, full);
    // Other jobs are not affected, and the job can be deleted.
    let other = jobq.put("q", &json!("other")).await;
    jobq.event("q", other.id, &large).await.job();
    jobq.delete("q", full.id).await;
    assert_eq!(jobq.job("q", full.id).await, None);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn an_event_has_at_most_960_kib() {
    let (server, jobq) = start_with_queue().await;
    let job = jobq.put("q", &json!(1)).await;
    for (size, fits) in [(975_000, true), (960 << 10, false), (3 << 19, false)] {
        jobq.delete("q", 1).await;
        let id = jobq.put("q", &json!(1)).await.id;
        let event = json!("x".repeat(size));
        let reply = jobq.event("q", id, &event).await;
        if fits {
            assert_eq!(reply.job().log()[1], What::User(event.to_string()));
        } else {
            reply.assert_rejected(422, &[]);
            assert_eq!(jobq.existing_job("q", id).await.log(), job.log());
        }
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_poll_passes_over_jobs_whose_logs_are_full() {
    let (server, jobq) = start_with_queue().await;
    // More than the 4 MiB of candidates that a search finds.
    let mut full = Vec::new();
    for _ in 0..5 {
        full.push(nearly_full(&jobq).await);
    }
    let large = json!("y".repeat(2_000));
    let recent = json!(["<", "modified", "strftime('%s','now') + 60"]);
    for query in [json!([]), json!([recent])] {
        let other = jobq.put("q", &json!("other")).await;
        let polled = jobq.poll("q", &query, &large).await;
        assert_eq!(polled.unwrap().id, other.id);
        jobq.delete("q", other.id).await;
        let reply = jobq.send_poll("q", &query, &large).await;
        reply.assert_rejected(422, &[]);
    }
    for full in full {
        assert_eq!(jobq.existing_job("q", full.id).await, full);
    }
    assert_consistent(&server).await;
}
