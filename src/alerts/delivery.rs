//! An attempt to deliver an alert: the body, its signature, and when the next attempt is.

use serde::Serialize;
use serde_json::value::RawValue;

use super::Settings;
use crate::client::Webhooks;
use crate::engine::{AlertDelivery, AttemptResult, Time};
use crate::time::iso;

/// Seconds after which another server may repeat an attempt whose server has stopped. More than the time limit of an
/// attempt.
pub const LEASE_S: i64 = 30;

/// Seconds between attempts. After the last one, the delivery is given up.
pub const RETRY_S: [i64; 7] = [5, 15, 60, 300, 900, 3_600, 10_800];

/// What is posted.
#[derive(Serialize)]
struct Body<'a> {
    /// The same in each attempt.
    id: &'a str,
    event: &'a str,
    /// When the problem was reported, or its end.
    at: String,
    /// When this attempt was made.
    sent_at: String,
    attempt: i64,
    rule: &'a str,
    environment: &'a str,
    /// The same in the reports of a problem and of its end.
    problem_id: Option<&'a str>,
    problem: Option<&'a RawValue>,
}

/// Sends a delivery once.
pub async fn attempt(
    delivery: &AlertDelivery,
    url: &str,
    now: Time,
    settings: &Settings,
    webhooks: &Webhooks,
) -> AttemptResult {
    let body = body(delivery, now, &settings.environment);
    let signature = format!("sha256={}", settings.key.sign(&body));
    let answer = webhooks.post(url, &signature, body).await;
    result(answer, delivery.attempts)
}

fn body(delivery: &AlertDelivery, now: Time, environment: &str) -> Vec<u8> {
    let problem: Option<&RawValue> = serde_json::from_str(&delivery.content).ok();
    let problem = problem.filter(|problem| problem.get() != "null");
    let body = Body {
        id: &delivery.id,
        event: &delivery.event,
        at: iso(delivery.created_at.0),
        sent_at: iso(now.0),
        attempt: delivery.attempts + 1,
        rule: &delivery.rule_name,
        environment,
        problem_id: problem.map(|_| delivery.id.trim_end_matches("-end")),
        problem,
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

/// The result of an attempt after `before` others.
fn result(answer: Result<u16, &'static str>, before: i64) -> AttemptResult {
    let is_delivered = answer.is_ok_and(|status| (200..300).contains(&status));
    let outcome = match answer {
        Ok(status) if (300..400).contains(&status) => {
            format!("HTTP {status}: redirects are not followed")
        }
        Ok(status) => format!("HTTP {status}"),
        Err(why) => why.to_owned(),
    };
    let delay = usize::try_from(before).ok().and_then(|n| RETRY_S.get(n));
    AttemptResult {
        is_delivered,
        outcome,
        retry_s: delay.copied().filter(|_| !is_delivered),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn delivery(event: &str, id: &str, content: &str) -> AlertDelivery {
        AlertDelivery {
            id: id.to_owned(),
            rule: "r".to_owned(),
            rule_name: "Night".to_owned(),
            event: event.to_owned(),
            content: content.to_owned(),
            created_at: Time(0),
            attempts: 1,
            next_at: Time(0),
            done_at: None,
            is_delivered: false,
            outcome: String::new(),
        }
    }

    #[test]
    fn the_body_says_what_happened_and_when_it_was_sent() {
        let delivery = delivery("ended", "a1-end", r#"{"kind":"paused"}"#);
        let body: Value =
            serde_json::from_slice(&body(&delivery, Time(1_000_000), "prod")).unwrap();
        let expected = json!({
            "id": "a1-end",
            "event": "ended",
            "at": "1970-01-01T00:00:00.000Z",
            "sent_at": "1970-01-01T00:00:01.000Z",
            "attempt": 2,
            "rule": "Night",
            "environment": "prod",
            "problem_id": "a1",
            "problem": {"kind": "paused"},
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_test_has_no_problem() {
        let body = body(&delivery("test", "a1", "null"), Time(0), "");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&body["problem"], &body["problem_id"]),
            (&json!(null), &json!(null))
        );
    }

    #[test]
    fn an_attempt_is_repeated_seven_times_at_growing_intervals() {
        let delays: Vec<_> = (0..9)
            .map(|before| result(Ok(500), before).retry_s)
            .collect();
        let expected = [5, 15, 60, 300, 900, 3_600, 10_800].map(Some);
        assert_eq!(delays, [&expected[..], &[None, None]].concat());
        for (answer, is_delivered, outcome) in [
            (Ok(200), true, "HTTP 200"),
            (Ok(204), true, "HTTP 204"),
            (Ok(302), false, "HTTP 302: redirects are not followed"),
            (Ok(404), false, "HTTP 404"),
            (Err("cannot connect"), false, "cannot connect"),
        ] {
            let result = result(answer, 0);
            assert_eq!(
                (result.is_delivered, &*result.outcome),
                (is_delivered, outcome)
            );
            assert_eq!(result.retry_s.is_none(), is_delivered);
        }
    }
}
