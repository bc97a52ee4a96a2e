//! Responses of the qless API, and checks that apply to all of them.

use std::collections::HashMap;

use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A response as received.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// The request, for error messages.
    pub asked: String,
}

impl Response {
    /// Checks what all responses have in common: JSON with `results` and a time, `no-store`, and an `error` exactly if
    /// the request failed.
    #[track_caller]
    pub fn checked(self) -> Response {
        let header = |name: &str| {
            self.headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(header("content-type"), "application/json", "{self:?}");
        assert_eq!(header("cache-control"), "no-store", "{self:?}");
        let envelope: Map<String, Value> = self
            .members()
            .into_iter()
            .filter(|(key, _)| key != "results")
            .map(|(key, value)| (key, serde_json::from_str(value.get()).expect("a value")))
            .collect();
        let total = envelope
            .get("time")
            .and_then(|time| time.get("total"))
            .and_then(Value::as_f64)
            .unwrap_or_else(|| panic!("no time.total: {self:?}"));
        assert!((0.0..600_000.0).contains(&total), "{self:?}");
        let refused = self.status != 200;
        assert_eq!(envelope.contains_key("error"), refused, "{self:?}");
        assert_eq!(envelope.contains_key("code"), refused, "{self:?}");
        if refused {
            assert_eq!(self.results_text(), "null", "{self:?}");
            let sentence = envelope.get("error").and_then(Value::as_str);
            assert!(
                sentence.is_some_and(|text| !text.trim().is_empty()),
                "{self:?}"
            );
        }
        self
    }

    /// The members of the envelope. Values stay text, because `results` can be nested deeper than a parser accepts.
    #[track_caller]
    fn members(&self) -> HashMap<String, &RawValue> {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    fn json(&self) -> Value {
        let json = serde_json::from_str(&self.text);
        plain(json.unwrap_or_else(|error| panic!("{error}: {self:?}")))
    }

    /// Checks that the request succeeded.
    #[track_caller]
    pub fn accepted(self) {
        assert_eq!(self.status, 200, "{self:?}");
    }

    /// The `results` of a success. Whole numbers become integers in any notation.
    #[track_caller]
    pub fn ok(self) -> Value {
        self.whole()["results"].take()
    }

    /// The whole body of a success.
    #[track_caller]
    pub fn whole(self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// Checks that the request failed with this status and code. Returns the whole body.
    #[track_caller]
    pub fn assert_rejected(self, status: u16, code: &str) -> Value {
        let whole = self.json();
        assert_eq!(
            (self.status, &whole["code"]),
            (status, &code.into()),
            "{self:?}"
        );
        whole
    }

    /// Checks that the request was rejected because of this field.
    #[track_caller]
    pub fn assert_rejected_field(self, field: &str) {
        let asked = self.asked.clone();
        let whole = self.assert_rejected(400, "bad_request");
        assert_eq!(whole["field"], field, "{asked}: {whole}");
    }

    /// The text of `results`, byte for byte.
    #[track_caller]
    pub fn results_text(&self) -> &str {
        let members = self.members();
        let results = members.get("results");
        results
            .unwrap_or_else(|| panic!("no results: {self:?}"))
            .get()
    }

    /// The text of `meta` of the job in `results`, byte for byte.
    #[track_caller]
    pub fn meta_text(&self) -> &str {
        meta_text(self.results_text())
    }
}

/// The text of a job's `meta`, byte for byte.
#[track_caller]
pub fn meta_text(job: &str) -> &str {
    #[derive(Deserialize)]
    struct Job<'a> {
        #[serde(borrow)]
        meta: &'a RawValue,
    }
    serde_json::from_str::<Job<'_>>(job)
        .unwrap_or_else(|error| panic!("{error}: {job}"))
        .meta
        .get()
}

/// The value with every whole number as an integer, because `60.0` and `60` are the same number in JSON.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15)
                .and_then(|float| format!("{float:.0}").parse::<i64>().ok());
            whole.map_or(Value::Number(number), Value::from)
        }
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(key, value)| (key, plain(value)))
                .collect(),
        ),
        other => other,
    }
}
