//! Responses of lmstfy.

use reqwest::RequestBuilder;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::api_client::{Received, exchange, reply};

reply!();

/// A job as the API returns it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub queue: String,
    pub id: String,
    pub data: Vec<u8>,
    pub ttl: i64,
    pub elapsed_ms: i64,
    pub remain_tries: i64,
    pub attributes: Value,
}

impl Reply {
    pub async fn of(asked: String, request: RequestBuilder) -> Reply {
        let received = exchange(&asked, request).await;
        Reply::from(received.unwrap_or_else(|error| panic!("{asked}: {error}")))
    }

    /// Parses a raw HTTP response.
    pub fn parse(asked: String, response: &str) -> Reply {
        let parts = response.split_once("\r\n\r\n");
        let (head, text) = parts.unwrap_or_else(|| panic!("{asked}: no answer but {response:?}"));
        let mut lines = head.lines();
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            let name = HeaderName::try_from(name).ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        });
        Reply::from(Received {
            status: status.expect("a status"),
            headers: headers.collect(),
            text: text.to_owned(),
            asked,
        })
    }

    /// Checks what all responses have in common.
    fn checked(self) -> Reply {
        assert!(!self.request_id().is_empty(), "no X-Request-ID: {self:?}");
        assert!(self.status < 500 || self.status == 507, "{self:?}");
        if !self.text.is_empty() {
            let kind = self.header("content-type");
            assert!(kind.starts_with("application/json"), "{self:?}");
        }
        self
    }

    pub fn request_id(&self) -> &str {
        self.header("x-request-id")
    }

    /// The body of a response with this status.
    #[track_caller]
    pub fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        let json = serde_json::from_str(&self.text);
        json.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that the request failed with exactly this error.
    #[track_caller]
    pub fn assert_rejected(&self, status: u16, error: &str) {
        assert_eq!(self.json(status), json!({ "error": error }), "{self:?}");
    }

    /// Checks that the response is 400 with any error.
    #[track_caller]
    pub fn bad(&self) {
        let whole = self.json(400);
        let error = whole["error"].as_str();
        assert!(error.is_some_and(|error| !error.is_empty()), "{self:?}");
    }

    /// Checks that the request succeeded without a body.
    #[track_caller]
    pub fn nothing(&self) {
        assert_eq!((self.status, self.text.as_str()), (204, ""), "{self:?}");
    }

    /// Checks that there was no job to consume.
    #[track_caller]
    pub fn no_job(&self) {
        assert_eq!(
            self.json(404),
            json!({"msg": "no job available"}),
            "{self:?}"
        );
    }

    /// The ID of the published job.
    #[track_caller]
    pub fn published(&self) -> String {
        let whole = self.json(201);
        let id = whole["job_id"].as_str().expect("an id");
        let expected = json!({"msg": "published", "job_id": id});
        assert_eq!(whole, expected, "{}", self.asked);
        id.to_owned()
    }

    /// The consumed job; `None` if there was none.
    #[track_caller]
    pub fn consumed(&self, namespace: &str) -> Option<Job> {
        if self.status == 404 {
            self.no_job();
            return None;
        }
        Some(Job::new(&self.json(200), namespace, true))
    }

    /// The consumed jobs. The response is an array even for one job.
    #[track_caller]
    pub fn consumed_many(&self, namespace: &str) -> Vec<Job> {
        if self.status == 404 {
            self.no_job();
            return Vec::new();
        }
        let whole = self.json(200);
        let jobs = whole.as_array();
        let jobs = jobs.unwrap_or_else(|| panic!("no array: {self:?}"));
        assert!(!jobs.is_empty(), "{self:?}");
        let jobs = jobs.iter().map(|job| Job::new(job, namespace, true));
        jobs.collect()
    }

    /// The job; `None` if it was not found.
    #[track_caller]
    pub fn peeked(&self, namespace: &str) -> Option<Job> {
        if self.status == 404 {
            self.assert_rejected(404, "job not found");
            return None;
        }
        Some(Job::new(&self.json(200), namespace, false))
    }
}

impl Job {
    #[track_caller]
    fn new(job: &Value, namespace: &str, consumed: bool) -> Job {
        let message = job.get("msg").and_then(Value::as_str);
        assert_eq!(message, consumed.then_some("new job"), "{job}");
        assert_eq!(job["namespace"], namespace, "{job}");
        let text = |name: &str| {
            let value = job[name].as_str();
            value.unwrap_or_else(|| panic!("no text in {name}: {job}"))
        };
        let number = |name: &str| {
            let value = job[name].as_i64().filter(|number| *number >= 0);
            value.unwrap_or_else(|| panic!("no number in {name}: {job}"))
        };
        let attributes = job
            .get("attributes")
            .expect("attributes, which can be null");
        assert!(attributes.is_null() || attributes.is_object(), "{job}");
        Job {
            queue: text("queue").to_owned(),
            id: text("job_id").to_owned(),
            data: decode(text("data")),
            ttl: number("ttl"),
            elapsed_ms: number("elapsed_ms"),
            remain_tries: number("remain_tries"),
            attributes: attributes.clone(),
        }
    }

    /// The total TTL since publishing. The API returns the remaining time in whole seconds, rounded up.
    pub fn lifetime(&self) -> i64 {
        self.ttl + self.elapsed_ms / 1000
    }

    /// Checks that the TTL was set to `ttl` at this time or later.
    #[track_caller]
    pub fn assert_ttl_set(&self, ttl: u32, since: Instant) {
        let passed = i64::from(ttl) - self.ttl;
        // The machine's clock may be a little faster than this one.
        let passed_max = i64::try_from(since.elapsed().as_secs()).expect("a number") + 1;
        let is_good = passed == 0 || self.ttl > 0 && (1..=passed_max).contains(&passed);
        assert!(is_good, "{ttl} seconds to live: {self:?}");
    }

    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.data).expect("text")
    }
}

/// Decodes standard base64 with padding, the only variant that clients decode.
fn decode(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("not base64: {text:?}"),
    };
    assert!(text.len().is_multiple_of(4), "no padding: {text:?}");
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    assert!(padding <= 2, "too much padding: {text:?}");
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.as_bytes().chunks(4) {
        let mut bits = 0;
        for digit in group {
            bits = bits << 6 | u32::from(value(*digit));
        }
        bits <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}

#[test]
fn base64_decodes_the_examples_of_the_standard() {
    for (text, bytes) in [
        ("", &b""[..]),
        ("Zg==", b"f"),
        ("Zm8=", b"fo"),
        ("Zm9v", b"foo"),
        ("Zm9vYmFy", b"foobar"),
        ("+/+/", &[0xfb, 0xff, 0xbf]),
    ] {
        assert_eq!(decode(text), bytes, "{text}");
    }
}
