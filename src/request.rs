//! Facts about a request that the listener records as extensions, for all modules that handle requests.

pub mod base_path;
pub mod client;
pub mod logged;

use std::fmt;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use futures::StreamExt;
use tokio::time::timeout;

pub use base_path::BasePath;
pub use client::{ClientAddress, Https, network, network_of};

/// Limits on the discarded body of a rejected request.
const DISCARDED_BYTES_MAX: usize = 16 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// The ID of a request, sent as `X-Request-ID` and written to each log line of the request.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// The code of the error that a response reports, for metrics and the log. An extension of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode {
    /// The protocol.
    pub api: &'static str,
    pub code: &'static str,
}

/// The error of a request body that did not arrive in time.
#[derive(Debug)]
pub struct BodyTimeout;

impl fmt::Display for BodyTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body did not arrive in time")
    }
}

impl std::error::Error for BodyTimeout {}

/// Reads and discards the body of a rejected request; see [`discard`].
pub async fn drain(request: Request) {
    let expects_continue = request.headers().contains_key(header::EXPECT);
    discard(request.into_body(), expects_continue).await;
}

/// Reads and discards a body, up to 16 MiB within 5 s, because clients read the response only after they have written
/// the body. Does nothing for `Expect: 100-continue`, whose client has not started to write.
pub async fn discard(body: Body, expects_continue: bool) {
    if expects_continue {
        return;
    }
    let reading = async {
        let mut stream = body.into_data_stream();
        let mut length = 0;
        while let Some(Ok(part)) = stream.next().await {
            length += part.len();
            if length > DISCARDED_BYTES_MAX {
                break;
            }
        }
    };
    drop(timeout(DISCARD_TIMEOUT, reading).await);
}

/// The number of parameters of a query, or of fields of a form; at least 1.
pub fn count_parameters(query: &[u8]) -> usize {
    memchr::memchr_iter(b'&', query).count() + 1
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn up_to_16_mib_of_a_rejected_request_are_discarded() {
        for (expects_continue, expected) in [(false, 3), (true, 0)] {
            let read = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&read);
            let parts = stream::iter([(16 << 20) - 1, 1, 1, 1]).map(move |length| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(Bytes::from(vec![0; length]))
            });
            discard(Body::from_stream(parts), expects_continue).await;
            assert_eq!(read.load(Ordering::Relaxed), expected);
        }
    }
}
