//! A request, built step by step.

use std::time::Duration;

use bytes::Bytes;
use form_urlencoded::Serializer;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde::Serialize;
use tokio::time::timeout;

use super::{Client, Error, Events, Lines, Response};

/// The time for a request and its response, unless the request sets another.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a response, in bytes: the server's own limit.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// The header in which lmstfy's clients send their token.
const X_TOKEN: HeaderName = HeaderName::from_static("x-token");

/// A request that has not been sent yet.
#[derive(Debug)]
pub struct Request {
    client: Client,
    method: Method,
    path: String,
    query: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    timeout: Duration,
    accepted: Vec<u16>,
    has_namespace_token: bool,
    /// Why it cannot be sent.
    problem: Option<String>,
}

impl Request {
    pub(super) fn new<S: AsRef<str>>(
        client: Client,
        method: Method,
        segments: impl IntoIterator<Item = S>,
    ) -> Request {
        let mut path = String::new();
        for segment in segments {
            path.push('/');
            path.push_str(&encoded(segment.as_ref()));
        }
        Request {
            client,
            method,
            path,
            query: None,
            headers: Vec::new(),
            body: Bytes::new(),
            timeout: TIMEOUT,
            accepted: Vec::new(),
            has_namespace_token: false,
            problem: None,
        }
    }

    /// Adds a parameter to the query. It can be repeated.
    #[must_use]
    pub fn query(mut self, name: &str, value: &(impl ToString + ?Sized)) -> Request {
        let mut query = Serializer::new(self.query.take().unwrap_or_default());
        query.append_pair(name, &value.to_string());
        self.query = Some(query.finish());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> Request {
        match HeaderValue::from_str(value) {
            Ok(value) => self.headers.push((name, value)),
            Err(_) => self.problem = Some(format!("the header {name} has a control character")),
        }
        self
    }

    /// Sends this value as JSON.
    #[must_use]
    pub fn json(mut self, value: &impl Serialize) -> Request {
        match serde_json::to_vec(value) {
            Ok(body) => self.body = body.into(),
            Err(error) => self.problem = Some(error.to_string()),
        }
        self.header(header::CONTENT_TYPE, "application/json")
    }

    /// Sends these bytes.
    #[must_use]
    pub fn bytes(mut self, body: impl Into<Bytes>) -> Request {
        self.body = body.into();
        self
    }

    /// Sends the token as lmstfy expects it, in `X-Token`, instead of `Authorization`.
    #[must_use]
    pub fn with_namespace_token(mut self) -> Request {
        self.has_namespace_token = true;
        self
    }

    /// The time for the request and its whole response; for a stream, until it starts. For a long poll, include the
    /// time that the server waits.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Request {
        self.timeout = timeout;
        self
    }

    /// Does not report this status as an error.
    #[must_use]
    pub fn accept(mut self, status: u16) -> Request {
        self.accepted.push(status);
        self
    }

    /// Sends the request and reads the whole response.
    ///
    /// # Errors
    /// If there is no complete response in time, it has more than 64 MiB, or its status is neither a success nor
    /// accepted.
    pub async fn send(self) -> Result<Response, Error> {
        let (server, after) = (self.client.server().to_owned(), self.timeout);
        let accepted = self.accepted.clone();
        let exchange = async {
            let response = self.start().await?;
            read(&server, response).await
        };
        let response = timeout(after, exchange).await;
        let response = response.map_err(|_| Error::Timeout {
            server: server.clone(),
            after,
        })??;
        let status = response.status();
        if status.is_success() || accepted.contains(&status.as_u16()) {
            return Ok(response);
        }
        Err(Error::refused(&response))
    }

    /// Sends the request, and reads the response line by line while it arrives.
    ///
    /// # Errors
    /// If the response does not start in time or reports an error.
    pub async fn lines(self) -> Result<Lines, Error> {
        let (server, after) = (self.client.server().to_owned(), self.timeout);
        let start = async {
            let response = self.start().await?;
            if response.status().is_success() {
                return Ok(Lines::new(server.clone(), response.into_body()));
            }
            Err(Error::refused(&read(&server, response).await?))
        };
        let started = timeout(after, start).await;
        started.map_err(|_| Error::Timeout {
            server: server.clone(),
            after,
        })?
    }

    /// Sends the request, and reads server-sent events.
    ///
    /// # Errors
    /// See [`Request::lines`].
    pub async fn events(self) -> Result<Events, Error> {
        let request = self.header(header::ACCEPT, "text/event-stream");
        Ok(Events::new(request.lines().await?))
    }

    /// Sends the request and reads the head of the response.
    async fn start(self) -> Result<hyper::Response<Incoming>, Error> {
        if let Some(problem) = self.problem {
            return Err(Error::Invalid(problem));
        }
        let inner = &self.client.0;
        let mut uri = format!("{}{}", inner.server, self.path);
        if let Some(query) = &self.query {
            uri.push('?');
            uri.push_str(query);
        }
        let mut request = hyper::Request::builder().method(self.method).uri(uri);
        let agent = concat!("switchyard/", env!("CARGO_PKG_VERSION"));
        request = request.header(header::USER_AGENT, agent);
        request = match (self.has_namespace_token, &inner.token, &inner.authorization) {
            (true, Some(token), _) => request.header(X_TOKEN, token),
            (false, _, Some(authorization)) => request.header(header::AUTHORIZATION, authorization),
            _ => request,
        };
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(self.body))
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let response = inner.http.request(request).await;
        response.map_err(|error| Error::connection(&inner.server, &error))
    }
}

/// Reads the whole response.
async fn read(server: &str, response: hyper::Response<Incoming>) -> Result<Response, Error> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
    let body = body.map_err(|error| Error::broken(server, &*error))?;
    let status: StatusCode = head.status;
    Ok(Response::new(server, status, head.headers, body.to_bytes()))
}

/// The text with everything percent-encoded but what RFC 3986 calls unreserved.
fn encoded(segment: &str) -> String {
    let mut text = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_percent_encoded() {
        for (segment, expected) in [
            ("mail", "mail"),
            ("a/b c", "a%2Fb%20c"),
            ("é?#%", "%C3%A9%3F%23%25"),
            ("-._~", "-._~"),
        ] {
            assert_eq!(encoded(segment), expected);
        }
    }
}
