//! Rejected requests: their errors, and that they have no effect.

use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_consistent, client, start};
use crate::support::relay::{Job, Relay, new, with};
use crate::support::{database, raw};

/// A running job, to check that rejected requests have no effect on it.
async fn running(relay: &Relay) -> Job {
    relay.put_ids("flight", &["f"]).await;
    relay.take("flight").await
}

/// Sends this body to both endpoints that accept jobs. Both must reject it.
async fn both_refuse(relay: &Relay, job: &Job, body: impl AsRef<[u8]>, status: u16) {
    let body = body.as_ref();
    let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    for (method, path) in [
        (Method::POST, "/queues/jobs".to_owned()),
        (Method::PUT, job.run_path()),
    ] {
        for mode in ["", "?mode=ignore", "?mode=replace"] {
            let path = format!("{path}{mode}");
            let reply = relay.send_json(method.clone(), &path, body.to_vec()).await;
            assert_eq!(reply.status, status, "{shown}: {reply:?}");
            assert!(!reply.text.is_empty(), "{shown}: {reply:?}");
        }
    }
}

/// Checks that nothing was enqueued and the run is still valid.
async fn assert_nothing_changed(relay: &Relay, job: &Job) {
    assert_eq!(relay.next_ids("q", 100).await, [""; 0]);
    assert_eq!(relay.existing_job("flight", "f").await, *job);
    relay.heartbeat(job).await.only(202);
}

#[tokio::test]
async fn invalid_json_is_400() {
    let server = start();
    let relay = client(&server);
    let job = running(&relay).await;
    let good = new("q", "a").to_string();
    let bodies = [
        String::new(),
        " ".to_owned(),
        "[".to_owned(),
        "nonsense".to_owned(),
        format!("[{good}"),
        format!("[{good},]"),
        format!("[{good}] x"),
        format!("[{good}][]"),
        format!("[{good} {good}]"),
        good.replace("null", "nul"),
        format!("[{}]", good.replace("null", "'x'")),
        format!("[{}]", good.replace("null", "\"a\nb\"")),
        format!("[{}]", good.replace("null", "\"a\0b\"")),
        format!("[{}]", good.replace("null", "01")),
        format!("[{}]", good.replace("null", "{\"a\":}")),
    ];
    for body in bodies {
        // If the body is valid JSON, an object instead of an array has the wrong shape.
        let body = if body.starts_with('{') {
            format!("[{body}]")
        } else {
            body
        };
        both_refuse(&relay, &job, body, 400).await;
    }
    let latin = good.replace("null", "\"?\"").replace('?', "\u{1}");
    let bytes: Vec<u8> = latin
        .bytes()
        .map(|b| if b == 1 { 0xe9 } else { b })
        .collect();
    both_refuse(&relay, &job, [b"[", &*bytes, b"]"].concat(), 400).await;
    assert_nothing_changed(&relay, &job).await;
    assert_consistent(&server).await;
}

#[tokio::test]
async fn json_of_another_shape_is_422() {
    let server = start();
    let relay = client(&server);
    let job = running(&relay).await;
    for body in [
        "{}", "null", "1", "\"x\"", "true", "[1]", "[null]", "[\"x\"]", "[{}]",
    ] {
        both_refuse(&relay, &job, body, 422).await;
    }
    both_refuse(&relay, &job, new("q", "a").to_string(), 422).await;
    for field in ["queue", "id", "timeout", "payload"] {
        let mut without = new("q", "a");
        without.as_object_mut().expect("a job").remove(field);
        both_refuse(&relay, &job, json!([without]).to_string(), 422).await;
    }
    let mut fields: Vec<Value> = Vec::new();
    for text in [json!(null), json!(1), json!(true), json!(["a"]), json!({})] {
        fields.extend([json!({"queue": text}), json!({"id": text})]);
    }
    for number in [
        json!("1"),
        json!(1.5),
        json!(true),
        json!([1]),
        json!({}),
        json!(-1),
        json!(1e300),
    ] {
        fields.extend([json!({"timeout": number}), json!({"max_retries": number})]);
    }
    fields.push(json!({"timeout": null}));
    fields.push(json!({"timeout": 2_147_483_648_i64}));
    fields.push(json!({"timeout": u64::MAX}));
    fields.push(json!({"max_retries": 32_768}));
    fields.push(json!({"max_retries": i64::MAX}));
    for time in [
        json!("tomorrow"),
        json!(""),
        json!(1_662_352_643),
        json!("2022-09-05"),
        json!("2022-09-05T04:37:23"),
        json!("2022-13-05T04:37:23Z"),
        json!("2022-09-31T04:37:23Z"),
        json!("2022-09-05T25:37:23Z"),
        json!(true),
        json!({}),
    ] {
        fields.push(json!({"run_at": time}));
    }
    for field in fields {
        // One invalid job rejects all.
        let jobs = json!([new("q", "good"), with("q", "a", field), new("q", "too")]);
        both_refuse(&relay, &job, jobs.to_string(), 422).await;
    }
    assert_nothing_changed(&relay, &job).await;
    assert_consistent(&server).await;
}

#[tokio::test]
async fn nul_is_rejected_everywhere() {
    let server = start();
    let relay = client(&server);
    let job = running(&relay).await;
    for value in [
        json!("\0"),
        json!("a\0b"),
        json!(["\0"]),
        json!({"a": {"b": ["x\0"]}}),
        json!({"\0": 1}),
    ] {
        for field in ["payload", "state"] {
            let jobs = json!([new("q", "good"), with("q", "a", json!({field: value}))]);
            both_refuse(&relay, &job, jobs.to_string(), 422).await;
        }
        let reply = relay.heartbeat_with(&job, value.to_string()).await;
        reply.assert_rejected(422, &[]);
    }
    for job_with_nul in [new("q\0", "a"), new("q", "\0a")] {
        both_refuse(&relay, &job, json!([job_with_nul]).to_string(), 422).await;
    }
    assert_nothing_changed(&relay, &job).await;
    // After a backslash, `\u0000` is six ordinary characters.
    relay
        .put_with("q", "a", json!({"payload": "\\u0000", "state": "\\u0000"}))
        .await;
    let job = relay.take("q").await;
    assert_eq!(
        (&*job.payload, job.state.as_deref()),
        (r#""\\u0000""#, Some(r#""\\u0000""#))
    );
    assert_consistent(&server).await;
}

/// The documentation counts characters, not bytes.
#[tokio::test]
async fn names_have_at_most_1024_characters() {
    let server = start();
    let relay = client(&server);
    let job = running(&relay).await;
    // Postgres does not index longer texts.
    let bytes_max = if database::postgres().is_some() {
        2600
    } else {
        usize::MAX
    };
    for letter in ["a", "é", "日", "🦀"] {
        let max = 1024.min(bytes_max / letter.len());
        let [less, fits, long] = [max - 1, max, max + 1].map(|length| letter.repeat(length));
        relay.put(&json!([new(&less, &less)])).await;
        assert!(relay.exists(&less, &less).await);
        for too_long in [new(&long, "a"), new("q", &long)] {
            let jobs = json!([new("q", "good"), too_long]).to_string();
            both_refuse(&relay, &job, jobs, 422).await;
        }
        relay.put(&json!([new(&fits, &fits)])).await;
        assert!(relay.exists(&fits, &fits).await);
        let taken = relay.take(&fits).await;
        assert_eq!(taken.id, fits);
        relay.heartbeat(&taken).await.only(202);
        relay.complete(&taken).await;
        assert_eq!(relay.job(&fits, &fits).await, None);
        let long = letter.repeat(1025);
        for path in [
            format!("/queues/{long}/jobs"),
            format!("/queues/q/jobs/{long}"),
        ] {
            relay
                .send(Method::GET, &path)
                .await
                .assert_rejected(422, &[]);
        }
    }
    assert_nothing_changed(&relay, &job).await;
    assert_consistent(&server).await;
}

#[tokio::test]
async fn the_largest_numbers_are_accepted() {
    let server = start();
    let relay = client(&server);
    for (field, greatest) in [("timeout", 2_147_483_647_i64), ("max_retries", 32_767)] {
        for number in [greatest - 1, greatest] {
            let id = format!("{field}-{number}");
            let mut job = new("q", &id);
            job[field] = number.into();
            relay.put(&json!([job])).await;
            let kept = relay.existing_job("q", &id).await;
            assert!(kept.timeout == number || kept.max_retries == Some(number));
        }
        let mut job = new("q", "beyond");
        job[field] = (greatest + 1).into();
        let refused = relay.enqueue("unique", &json!([job])).await;
        refused.assert_rejected(422, &[field]);
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn jobs_require_a_json_content_type() {
    let server = start();
    let relay = client(&server);
    let job = running(&relay).await;
    let post = async |method: Method, path: &str, kind: Option<&str>, id: &str| {
        let mut request = relay
            .request(method, path)
            .body(json!([new("q", id)]).to_string());
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        relay.ask(&format!("{path} as {kind:?}"), request).await
    };
    for kind in [
        None,
        Some(""),
        Some("text/plain"),
        Some("text/json"),
        Some("application/x-www-form-urlencoded"),
        Some("application/octet-stream"),
        Some("application/jsonx"),
        Some("json"),
    ] {
        post(Method::POST, "/queues/jobs", kind, "a")
            .await
            .assert_rejected(415, &[]);
        post(Method::PUT, &job.run_path(), kind, "a")
            .await
            .assert_rejected(415, &[]);
    }
    assert_nothing_changed(&relay, &job).await;
    for (id, kind) in [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "APPLICATION/JSON",
        "application/vnd.api+json",
    ]
    .into_iter()
    .enumerate()
    {
        let id = id.to_string();
        post(Method::POST, "/queues/jobs", Some(kind), &id)
            .await
            .only(202);
        assert!(relay.exists("q", &id).await, "{kind}");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_body_has_at_most_2_mib() {
    const MAX: usize = 2 << 20;
    let server = start();
    let relay = client(&server);
    let job = running(&relay).await;
    // A payload for which the whole body has `size` bytes.
    let of_size = |id: &str, size: usize| {
        let empty = json!([with("q", id, json!({"payload": ""}))]).to_string();
        let payload = "x".repeat(size - empty.len());
        json!([with("q", id, json!({"payload": payload}))]).to_string()
    };
    let run = format!("/v2{}", job.run_path());
    for (method, path) in [
        ("POST", "/v2/queues/jobs"),
        ("PUT", &*run),
        ("PATCH", &*run),
    ] {
        for size in [MAX + 1, MAX * 3] {
            let body = of_size("a", size);
            let (status, text) = raw::request(&server, method, path, body.as_bytes()).await;
            assert_eq!(status, 413, "{method} {path}: {text}");
            assert!(!text.is_empty());
        }
    }
    assert_nothing_changed(&relay, &job).await;
    for size in [MAX - 1, MAX] {
        relay.enqueue_text("", of_size("a", size)).await.only(202);
        let taken = relay.take("q").await;
        assert!(taken.payload.len() > MAX - 100);
        relay.complete(&taken).await;
    }
    let state = format!("\"{}\"", "y".repeat(MAX - 2));
    relay.heartbeat_with(&job, state.clone()).await.only(202);
    assert_eq!(relay.existing_job("flight", "f").await.state, Some(state));
    assert_consistent(&server).await;
}

/// Unknown fields, and fields that only the server sets, are ignored, so that a job can be enqueued as it was returned.
#[tokio::test]
async fn other_fields_are_ignored() {
    let server = start();
    let relay = client(&server);
    let odd = json!({"retries_remaining": "x", "run_id": 7, "created_at": "never", "updated_at": [],
        "priority": 1, "": {}, "Queue": "other"});
    relay.put_with("q", "a", odd).await;
    let given = json!({"max_retries": 3, "payload": {"n": 1}, "state": [1], "run_at": "2022-09-05T04:37:23.123456Z"});
    relay.put_with("q", "b", given).await;
    relay.take("q").await;
    for method in ["fetched", "taken"] {
        let path = match method {
            "fetched" => "/queues/q/jobs/b",
            _ => "/queues/q/jobs?num_jobs=1",
        };
        let reply = relay.send(Method::GET, path).await;
        let text = match method {
            "fetched" => format!("[{}]", reply.text),
            _ => reply.text.clone(),
        };
        let before = relay.existing_job("q", "b").await;
        relay
            .enqueue_text("unique", text.clone())
            .await
            .assert_rejected(409, &["\"b\"", "\"q\""]);
        relay.enqueue_text("replace", text).await.only(202);
        let after = relay.existing_job("q", "b").await;
        let expected = Job {
            run_id: None,
            updated_at: after.updated_at,
            ..before
        };
        assert_eq!(after, expected, "{method}");
    }
    assert_consistent(&server).await;
}
