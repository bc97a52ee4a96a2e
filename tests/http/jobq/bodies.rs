//! Bodies: content types, JSON texts, and sizes.

use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_consistent, client, start_with_queue};
use crate::support::Server;
use crate::support::jobq::{Jobq, What, canonical};
use crate::support::lmstfy::send_whole_body;

/// Every endpoint that requires a body: path, and a valid body.
const TAKERS: [(&str, &str); 6] = [
    ("/queue", r#"{"name":"new"}"#),
    ("/queue/q/job", r#"{"payload":1}"#),
    ("/queue/q/query_jobs", r#"{"query":[]}"#),
    ("/queue/q/poll_job", r#"{"query":[],"state":1}"#),
    ("/queue/q/job/1/state", r#"{"old":1,"new":2}"#),
    ("/queue/q/job/1/event", "1"),
];

/// The default maximum size of a request body.
const BODY_BYTES_MAX: usize = 2 << 20;

#[tokio::test]
async fn the_content_type_of_json_is_ignored() {
    for kind in [
        None,
        Some("application/json"),
        Some("application/json; charset=utf-8"),
        Some("application/x-www-form-urlencoded"),
        Some("text/plain"),
        Some("multipart/form-data; boundary=x"),
        Some("application/octet-stream"),
        Some("nonsense"),
        Some(""),
    ] {
        let (_server, jobq) = start_with_queue().await;
        jobq.put("q", &json!(0)).await;
        for (path, body) in TAKERS {
            let mut request = jobq.request(Method::POST, path).body(body);
            if let Some(kind) = kind {
                request = request.header("content-type", kind);
            }
            let reply = jobq.ask(&format!("{path} as {kind:?}"), request).await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    }
}

#[tokio::test]
async fn invalid_json_is_rejected_by_every_endpoint() {
    let (server, jobq) = start_with_queue().await;
    let job = jobq.put("q", &json!(0)).await;
    let bodies: [&[u8]; 20] = [
        b"",
        b" ",
        b"{",
        b"[",
        b"]",
        b"nul",
        b"{'a':1}",
        b"{\"payload\":1,}",
        b"{\"payload\":1}{\"payload\":2}",
        b"{\"payload\":1} x",
        b"{\"payload\":01}",
        b"{\"payload\":+1}",
        b"{\"payload\":NaN}",
        b"{\"payload\":.5}",
        b"{\"payload\":\"a\nb\"}",
        b"{\"payload\":\"\\x\"}",
        b"{\"payload\":\"\xff\"}",
        b"{\"payload\":\"\xed\xa0\x80\"}",
        b"\xef\xbb\xbf[",
        b"payload=1&state=2",
    ];
    for (path, _) in TAKERS {
        for body in bodies {
            let reply = jobq.post_text(path, body.to_vec()).await;
            let text = String::from_utf8_lossy(body);
            assert_eq!(reply.status, 400, "{text:?}: {reply:?}");
        }
    }
    assert_eq!(jobq.all("q").await, [job]);
    assert_eq!(jobq.queues().await.len(), 1);
    assert_consistent(&server).await;
}

/// Various JSON texts, in various notations.
const TEXTS: [&str; 36] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-0.0",
    "1.50",
    "0.1000",
    "-1.0e-7",
    "1E+2",
    "1e400",
    "-1e400",
    "1e-400",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551616",
    "12345678901234567890123",
    "0.1234567890123456789012345678901234567890",
    "1.7976931348623157e308",
    "\"\"",
    "{}",
    "[]",
    "[ ]",
    "[[],{},[{}],null]",
    "{\"b\" : 1,\t\"a\":\n[1 , 2.00,  3 ],\r\n \"\" : null }",
    r#"{"12345678901234567890123":1e400,"x":{"y":[0.10,1e2]}}"#,
    r#""\u00e9\/\ud83e\udd80\"\\\n\u0001""#,
    r#""é/🦀日本""#,
    r#""\\u0000""#,
    r#"{"\u0061\"":"\u007f"}"#,
    "\"\u{7f}\u{2028}\u{feff}\u{fffd}\"",
    r#""'; DROP TABLE jobs; --""#,
    r#""<script>$1 ? :a {} %s \r\n</script>""#,
    r#"{"$serde_json::private::Number":"1"}"#,
    r#"{"$serde_json::private::RawValue":"1"}"#,
    r#"["user_event",{"timestamp":"0","event":1}]"#,
];

#[tokio::test]
async fn stored_json_is_returned_with_every_digit() {
    let (server, jobq) = start_with_queue().await;
    for (number, text) in TEXTS.into_iter().enumerate() {
        let body = format!("\n{{ \"state\":{text} ,\r\n\"payload\" :\t{text}\n}} ");
        let created = jobq.post_text("/queue/q/job", body).await.job();
        let plain = canonical(text);
        assert_eq!((&created.payload, &created.state), (&plain, &plain));
        assert_eq!(jobq.existing_job("q", created.id).await, created);
        let path = format!("/queue/q/job/{}/event", created.id);
        let logged = jobq.post_text(&path, format!(" {text}\n")).await.job();
        assert_eq!(logged.log()[1..], [What::User(plain.clone())]);
        let next = TEXTS[(number + 1) % TEXTS.len()];
        let reply = jobq.advance_text("q", created.id, text, next).await;
        let moved = What::Advanced(plain.clone(), canonical(next));
        assert_eq!(reply.job().log()[2..], [moved]);
        let body = format!(
            "{{\"query\":[[\"=\",\"id\",{}]],\"state\":{text}}}",
            created.id
        );
        let polled = jobq.post_text("/queue/q/poll_job", body).await.job();
        let moved = What::Advanced(canonical(next), plain.clone());
        assert_eq!((&polled.state, &polled.log()[3..]), (&plain, &[moved][..]));
        assert_eq!(jobq.existing_job("q", created.id).await, polled);
        let query = json!([["=", "id", created.id]]);
        assert_eq!(jobq.send_query("q", &query).await.jobs(), [polled]);
    }
    assert_eq!(jobq.all("q").await.len(), TEXTS.len());
    assert_consistent(&server).await;
}

/// Stores the text in every way. Returns it as stored; `None` if every way rejects it.
async fn kept(jobq: &Jobq, text: &str) -> Option<String> {
    let body = format!("{{\"payload\":{text}}}");
    let reply = jobq.post_text("/queue/q/job", body).await;
    let is_kept = reply.status == 200;
    assert!(is_kept || reply.status == 400, "{reply:?}");
    let job = jobq.put("q", &json!(null)).await;
    let state = jobq.advance_text("q", job.id, "null", text).await;
    let path = format!("/queue/q/job/{}/event", job.id);
    let event = jobq.post_text(&path, text.to_owned()).await;
    let query = format!("{{\"query\":[[\"=\",\"id\",{}]],\"state\":{text}}}", job.id);
    let polled = jobq.post_text("/queue/q/poll_job", query).await;
    let created = jobq.post_text(
        "/queue/q/job",
        format!("{{\"payload\":1,\"state\":{text}}}"),
    );
    let expected = if is_kept { 200 } else { 400 };
    for other in [state, event, polled, created.await] {
        assert_eq!(other.status, expected, "{other:?}");
    }
    if !is_kept {
        assert_eq!(jobq.existing_job("q", job.id).await, job);
        return None;
    }
    let id = reply.job().id;
    let again = jobq.existing_job("q", id).await.payload;
    assert_eq!(again, canonical(text));
    Some(again)
}

/// A character that some databases do not accept.
#[tokio::test]
async fn the_character_nul_is_stored() {
    let (server, jobq) = start_with_queue().await;
    for text in [
        r#""\u0000""#,
        r#""a\u0000b""#,
        r#"{"\u0000":1}"#,
        r#"["\u0000",{"x":"\u0000\u0000"}]"#,
    ] {
        assert_eq!(kept(&jobq, text).await, Some(canonical(text)));
    }
    // Queries can read it.
    for query in [
        json!([["=", "length(payload)", 1]]),
        json!([["LIKE", "payload", "'%b%'"]]),
        json!([["IS", "json_extract(payload, '$[0]')", "'x'"]]),
        json!([["IS", "json_extract(state, '$.x')", null]]),
    ] {
        jobq.send_query("q", &query).await.jobs();
    }
    assert_consistent(&server).await;
}

/// Unpaired surrogates can be written as escapes, and are stored as written.
#[tokio::test]
async fn unpaired_surrogates_are_stored() {
    let (server, jobq) = start_with_queue().await;
    for (id, half) in (1..).zip(["\\ud800", "a\\udc00b"]) {
        let body = format!("{{\"payload\":\"{half}\",\"state\":\"{half}\"}}");
        let created = jobq.post_text("/queue/q/job", body).await;
        assert_eq!(created.status, 200, "{created:?}");
        let shown = jobq.get(&format!("/queue/q/job/{id}")).await;
        assert_eq!(shown.text, created.text);
        assert_eq!(shown.text.matches(half).count(), 2, "{shown:?}");
        let text = format!("\"{half}\"");
        let wrong = jobq.advance_text("q", id, "\"\\ud801\"", "1").await;
        assert_eq!(wrong.status, 409, "{wrong:?}");
        let right = jobq.advance_text("q", id, &text, "1").await;
        assert_eq!(right.status, 200, "{right:?}");
        let query = json!([["LIKE", "payload", "'%a%'"]]);
        assert_eq!(jobq.send_query("q", &query).await.status, 200);
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn deeply_nested_json_is_stored_or_rejected() {
    let (server, jobq) = start_with_queue().await;
    for depth in [50, 100] {
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(kept(&jobq, &text).await.is_some(), "{depth}");
    }
    for depth in [126, 127, 128, 129, 1_000, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let body = format!("{{\"payload\":{text},\"state\":{text}}}");
            let reply = jobq.post_text("/queue/q/job", body).await;
            assert!(
                [200, 400].contains(&reply.status),
                "{depth}: {}",
                reply.status
            );
            let query = json!([["=", "json_extract(state,'$[0][0]')", "1"]]);
            let reply = jobq.send_query("q", &query).await;
            assert_eq!(reply.status, 200, "{depth}: {}", reply.status);
        }
    }
    assert_consistent(&server).await;
}

/// A client that sends its whole body before it reads can read the response.
#[tokio::test]
async fn a_body_is_read_completely_before_it_is_rejected() {
    let (server, jobq) = start_with_queue().await;
    let large = format!("{{\"payload\":\"{}\"}}", "x".repeat(900_000));
    for (method, path, status) in [
        ("POST", "/api/v0/queue/nope/job", 404),
        ("POST", "/api/v0/queue/q/job/1/event", 404),
        ("POST", "/api/v0/queue", 400),
        ("POST", "/api/v0/nope", 404),
        ("PUT", "/api/v0/queue/q/job", 405),
        ("POST", "/api/v0/queue/q/job", 200),
    ] {
        let reply = send_whole_body(&server, method, path, large.as_bytes()).await;
        assert_eq!(reply.status, status, "{method} {path}");
    }
    let too_large = vec![b'7'; BODY_BYTES_MAX + 1];
    for (path, _) in TAKERS {
        let path = format!("/api/v0{path}");
        let reply = send_whole_body(&server, "POST", &path, &too_large).await;
        assert_eq!(reply.status, 413, "{path}");
    }
    assert_eq!(jobq.all("q").await.len(), 1);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn too_large_bodies_are_413_with_json() {
    let (server, jobq) = start_with_queue().await;
    let large = json!({"payload": "é".repeat(500_000)});
    let job = jobq.post("/queue/q/job", &large).await.job();
    assert_eq!(job.payload, large["payload"].to_string());
    for (path, _) in TAKERS {
        let too_large = format!("\"{}\"", "x".repeat(BODY_BYTES_MAX));
        jobq.post_text(path, too_large)
            .await
            .assert_rejected(413, &[]);
    }
    assert_eq!(jobq.all("q").await, [job]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_body_has_at_most_2_mib() {
    let (server, jobq) = start_with_queue().await;
    for (size, fits) in [
        (BODY_BYTES_MAX - 1, true),
        (BODY_BYTES_MAX, true),
        (BODY_BYTES_MAX + 1, false),
    ] {
        let around = r#"{"payload":""}"#.len();
        let body = format!(r#"{{"payload":"{}"}}"#, "x".repeat(size - around));
        let reply = jobq.post_text("/queue/q/job", body).await;
        if fits {
            assert_eq!(reply.job().payload.len(), size - around + 2);
        } else {
            reply.assert_rejected(413, &[]);
        }
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn the_maximum_body_size_can_be_set() {
    let server = Server::with(&["--jobq-body-max", "200"]);
    let jobq = client(&server);
    jobq.create("q").await;
    let body = |size: usize| format!("{{\"payload\":1}}{}", " ".repeat(size - 13));
    let put = async |jobq: &Jobq, size: usize| jobq.post_text("/queue/q/job", body(size)).await;
    put(&jobq, 200).await.job();
    put(&jobq, 201).await.assert_rejected(413, &[]);
    let server = Server::with(&["--jobq-body-max", "20000000"]);
    let jobq = client(&server);
    jobq.create("q").await;
    put(&jobq, 9_000_000).await.job();
}

/// Of a duplicate key, all endpoints use the same value.
#[tokio::test]
async fn duplicate_keys_are_handled_consistently() {
    let (server, jobq) = start_with_queue().await;
    let reply = jobq
        .post_text("/queue/q/job", r#"{"payload":1,"payload":2}"#)
        .await;
    assert!([200, 400].contains(&reply.status), "{reply:?}");
    let reply = jobq
        .post_text("/queue/q/job", r#"{"payload":{"a":1,"a":2}}"#)
        .await;
    assert!([200, 400].contains(&reply.status), "{reply:?}");
    let shown: Vec<Value> = jobq.get("/queue/q/job").await.ok::<Value>()["jobs"]
        .as_array()
        .cloned()
        .unwrap();
    for job in shown {
        let path = format!("/queue/q/job/{}", job["id"]);
        assert_eq!(jobq.get(&path).await.ok::<Value>(), job);
    }
    assert_consistent(&server).await;
}
