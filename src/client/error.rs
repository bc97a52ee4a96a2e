//! Why a request failed.

use std::time::Duration;

use hyper::StatusCode;
use hyper_util::client::legacy;
use serde_json::Value;

use super::Response;

/// Maximum length of a server's message in an error, in characters.
const MESSAGE_CHARS_MAX: usize = 500;

/// Maximum length of an error's body that is parsed, in bytes.
const PARSED_BYTES_MAX: usize = 1 << 20;

/// Why a request failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// No connection: the server has not received the request.
    #[error("cannot connect to {server}: {why}")]
    Connect { server: String, why: String },
    /// The connection failed before the response was complete: the request may have had its effect.
    #[error("no response from {server}: {why}")]
    Broken { server: String, why: String },
    /// There was no response in time: the request may have had its effect.
    #[error("no response from {server} within {} s", after.as_secs_f64())]
    Timeout { server: String, after: Duration },
    /// The server refused the request.
    #[error("server answered {}: {message}", status.as_u16())]
    Refused {
        status: StatusCode,
        /// The server's own message, or the name of the status.
        message: String,
        /// The code of a qless error, such as `not_running`.
        code: Option<String>,
        /// How long to wait before the next attempt.
        retry_after: Option<Duration>,
        /// The whole body, if it is JSON of up to 1 MiB.
        body: Box<Value>,
    },
    /// The response is not what the API returns, so the address is probably not that of a Switchyard server.
    #[error("{server} sent an unexpected response: {why}")]
    Unexpected { server: String, why: String },
    /// The request cannot be sent.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// The error of a connection.
    pub(super) fn connection(server: &str, error: &legacy::Error) -> Error {
        let (server, why) = (server.to_owned(), innermost(error));
        match error.is_connect() {
            true => Error::Connect { server, why },
            false => Error::Broken { server, why },
        }
    }

    /// The error of a body that is not complete.
    pub(super) fn broken(server: &str, error: &(dyn std::error::Error + 'static)) -> Error {
        Error::Broken {
            server: server.to_owned(),
            why: innermost(error),
        }
    }

    /// The error of a response that reports one.
    pub(super) fn refused(response: &Response) -> Error {
        let body = Some(response.body()).filter(|body| body.len() <= PARSED_BYTES_MAX);
        let body: Value = body
            .and_then(|body| serde_json::from_slice(body).ok())
            .unwrap_or_default();
        let text = |key: &str| body.get(key).and_then(Value::as_str);
        let message = text("error").or_else(|| text("msg"));
        let message = message.map_or_else(|| response.text(), str::to_owned);
        let message = one_line(&message);
        let status = response.status();
        let reason = || status.canonical_reason().unwrap_or("error").to_owned();
        Error::Refused {
            status,
            message: if message.is_empty() {
                reason()
            } else {
                message
            },
            code: text("code").map(str::to_owned),
            retry_after: response.retry_after(),
            body: Box::new(body),
        }
    }

    /// The status of the response, if there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Error::Refused { status, .. } => Some(status.as_u16()),
            _ => None,
        }
    }

    /// The server's own message, or the name of the status, if there was a response.
    pub fn message(&self) -> Option<&str> {
        match self {
            Error::Refused { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The code of a qless error.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Refused { code, .. } => code.as_deref(),
            _ => None,
        }
    }

    /// How long the server asks to wait before the next attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the same request can succeed later: the server is away, busy or being restarted.
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::Connect { .. } | Error::Broken { .. } | Error::Timeout { .. } => true,
            Error::Refused { status, .. } => {
                matches!(
                    status.as_u16(),
                    408 | 425 | 429 | 500 | 502 | 503 | 504 | 507
                )
            }
            Error::Unexpected { .. } | Error::Invalid(_) => false,
        }
    }

    /// Whether the request may have had its effect although it failed.
    pub fn is_uncertain(&self) -> bool {
        match self {
            Error::Broken { .. } | Error::Timeout { .. } | Error::Unexpected { .. } => true,
            Error::Refused { status, .. } => status.is_server_error(),
            Error::Connect { .. } | Error::Invalid(_) => false,
        }
    }
}

/// The text of the innermost cause, such as `Connection refused`, without the layers around it.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    let text = inner.to_string();
    // The system's texts end with their number.
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_lowercase(),
        None => text,
    }
}

/// The text in one line, without control characters, and not too long.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let visible = text.chars().filter(|c| !c.is_control());
    visible.take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &'static str) -> Error {
        let status = StatusCode::from_u16(status).unwrap();
        Error::refused(&Response::of(status, body))
    }

    #[test]
    fn errors_show_the_message_of_each_api() {
        for (status, body, expected) in [
            (
                409,
                r#"{"results": null, "error": "job a is not running", "code": "not_running"}"#,
                "server answered 409: job a is not running",
            ),
            (
                404,
                r#"{"msg": "no job available"}"#,
                "server answered 404: no job available",
            ),
            (
                403,
                "a page\u{7}\n of another site\n",
                "server answered 403: a page of another site",
            ),
            (401, "", "server answered 401: Unauthorized"),
            (502, "[]", "server answered 502: []"),
        ] {
            assert_eq!(refused(status, body).to_string(), expected);
        }
        let code = refused(409, r#"{"error": "x", "code": "not_running"}"#);
        assert_eq!(
            (code.status(), code.code()),
            (Some(409), Some("not_running"))
        );
    }

    #[test]
    fn only_errors_that_can_pass_are_temporary() {
        for (status, expected) in [
            (400, false),
            (401, false),
            (404, false),
            (409, false),
            (429, true),
            (500, true),
            (503, true),
            (507, true),
        ] {
            assert_eq!(refused(status, "").is_temporary(), expected, "{status}");
        }
    }
}
