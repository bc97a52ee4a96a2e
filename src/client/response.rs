//! A response that was read completely.

use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use serde::Deserialize;

use super::Error;

/// A response that was read completely.
#[derive(Clone, Debug)]
pub struct Response {
    server: String,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Response {
    pub(super) fn new(
        server: &str,
        status: StatusCode,
        headers: HeaderMap,
        body: Bytes,
    ) -> Response {
        Response {
            server: server.to_owned(),
            status,
            headers,
            body,
        }
    }

    /// A response without headers.
    #[cfg(test)]
    pub(super) fn of(status: StatusCode, body: &'static str) -> Response {
        Response::new(
            "http://a",
            status,
            HeaderMap::new(),
            Bytes::from_static(body.as_bytes()),
        )
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The body as text. Bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON. It can borrow from the response.
    ///
    /// # Errors
    /// If it is not JSON of this shape.
    pub fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Unexpected {
            server: self.server.clone(),
            why: error.to_string(),
        })
    }

    /// The header `Retry-After`, in seconds.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let value = self.headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        value.parse().ok().map(Duration::from_secs)
    }
}
