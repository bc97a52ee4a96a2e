//! Payload, state and times are returned as they were sent.

use chrono::{DateTime, Duration, Utc};
use reqwest::Method;
use serde_json::json;

use super::{assert_consistent, client, start};

/// Various JSON texts, in various notations.
fn texts() -> Vec<String> {
    let plain = [
        "null",
        "true",
        "0",
        "-0",
        "1.50",
        "-1.0e-7",
        "1E+2",
        "1e400",
        "\"\"",
        "{}",
        "[]",
        "[ ]",
        "{ }",
        "123456789012345678901234567890",
        "0.1234567890123456789012345678901234567890",
        "{\"b\" : 1,\t\"a\":\n[1 , 2.00,  3 ],\r\n \"\" : null }",
        "{\"a\":1,\"a\":2}",
        r#""\u00e9\/\ud83e\udd80\"\\\n\u0001""#,
        r#""é/🦀日本""#,
        r#""\\u0000""#,
        r#""\u007f""#,
        "\"\u{7f}\u{2028}\u{feff}\u{fffd}\"",
        r#""'; DROP TABLE jobs; --""#,
        r#""<script>$1 ? :a {} %s \r\n</script>""#,
    ];
    let mut texts: Vec<String> = plain.map(str::to_owned).into();
    texts.push(format!("{}{}", "[".repeat(1_000), "]".repeat(1_000)));
    texts.push(format!("\"{}\"", "é".repeat(300_000)));
    texts
}

#[tokio::test]
async fn payload_and_state_are_kept_byte_for_byte() {
    let server = start();
    let relay = client(&server);
    let texts = texts();
    for (number, text) in texts.iter().enumerate() {
        let id = format!("{number:02}");
        let body = format!(
            "[ {{\"payload\":\n {text} , \"queue\":\"q\",\"id\":\"{id}\", \"timeout\":60,\n\"state\" :{text}\t}} ]\n"
        );
        relay.enqueue_text("", body).await.only(202);
    }
    let taken = relay.next("q", 100).await;
    assert_eq!(taken.len(), texts.len());
    // The expected state of each; null means that there is no state.
    let state = |text: &String| Some(text.clone()).filter(|text| text != "null");
    for (number, (job, text)) in taken.iter().zip(&texts).enumerate() {
        for job in [job, &relay.existing_job("q", &job.id).await] {
            assert!(job.payload == *text, "payload {text:?}: {:?}", job.payload);
            assert!(job.state == state(text), "state {text:?}: {:?}", job.state);
        }
        let other = &texts[(number + 1) % texts.len()];
        relay.heartbeat_with(job, other.clone()).await.only(202);
        let after = relay.existing_job("q", &job.id).await;
        assert!(
            after.state == state(other),
            "after the heartbeat {other:?}: {:?}",
            after.state
        );
        assert!(after.payload == *text, "{text:?}: {:?}", after.payload);
    }
    assert_consistent(&server).await;
}

/// Whitespace around the value of a heartbeat is not part of it.
#[tokio::test]
async fn whitespace_around_a_state_is_removed() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a"]).await;
    let job = relay.take("q").await;
    relay
        .heartbeat_with(&job, " \r\n\t{ \"a\" : 1 } \n")
        .await
        .only(202);
    assert_eq!(
        relay.existing_job("q", "a").await.state.as_deref(),
        Some("{ \"a\" : 1 }")
    );
    assert_consistent(&server).await;
}

#[tokio::test]
async fn times_are_kept_to_the_microsecond() {
    let server = start();
    let relay = client(&server);
    for (number, time) in [
        "2022-09-05T04:37:23Z",
        "2022-09-05T04:37:23.1Z",
        "2022-09-05T04:37:23.123Z",
        "2022-09-05T04:37:23.123456Z",
        "2022-09-05T04:37:23.000001Z",
        "2022-09-05T04:37:23.999999Z",
        "2022-09-05T06:37:23.123456+02:00",
        "2022-09-04T23:07:23.654321-05:30",
        "1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "1900-01-01T00:00:00.000001Z",
        "2100-01-01T00:00:00.123456Z",
        "9999-12-31T23:59:59.999999Z",
        "2024-02-29T00:00:00Z",
    ]
    .into_iter()
    .enumerate()
    {
        let id = number.to_string();
        relay.put_with("q", &id, json!({"run_at": time})).await;
        let job = relay.existing_job("q", &id).await;
        let meant: DateTime<Utc> = time.parse().unwrap();
        assert_eq!(job.run_at, meant, "{time}");
    }
    // Nanoseconds are truncated, never rounded to another microsecond.
    let fine = json!({"run_at": "2022-09-05T04:37:23.123456789Z"});
    relay.put_with("q", "fine", fine).await;
    let meant: DateTime<Utc> = "2022-09-05T04:37:23.123456789Z".parse().unwrap();
    let got = relay.existing_job("q", "fine").await.run_at;
    assert!((meant - got).abs() < Duration::microseconds(1), "{got}");
    let reply = relay.send(Method::GET, "/queues/q/jobs/3").await;
    let text = &reply.text;
    let expected = r#""run_at":"2022-09-05T04:37:23.123456Z""#;
    assert!(text.contains(expected), "in UTC: {text}");
    assert_consistent(&server).await;
}
