//! Request reading that all protocols share: the body within its limits, the query, and the call of the handler.

use std::error::Error;
use std::future::Future;
use std::ops::Deref;
use std::str::FromStr;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{self, MethodFilter, MethodRouter};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde::Serialize;

use crate::auth::BEARER;
use crate::memory::{SMALL_MAX, release, reserve};
use crate::request::{BodyTimeout, count_parameters, discard, drain};

/// A body that is too large is read and discarded up to this multiple of its limit, because clients read the response
/// only after they have written the body.
const DISCARD_FACTOR: usize = 4;

/// The state of a protocol's handlers.
pub trait Api: Clone + Send + Sync + 'static {
    /// The request type of the handlers.
    type Call: Send;
    /// The error type of the handlers.
    type Error: IntoResponse + Send;

    /// Reads a request, including its body.
    fn read(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Self::Call, Self::Error>> + Send;
}

/// The route of a method: reads the request and calls the handler.
pub fn on<T, F, Fut>(method: MethodFilter, handler: F) -> MethodRouter<T>
where
    T: Api,
    F: Fn(T, T::Call) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Response, T::Error>> + Send,
{
    routing::on(
        method,
        async move |State(api): State<T>, request: Request| {
            let outcome = match api.read(request).await {
                Ok(call) => handler(api, call).await,
                Err(error) => Err(error),
            };
            outcome.unwrap_or_else(IntoResponse::into_response)
        },
    )
}

/// Discards the body of a request that no handler reads, and responds with `error`.
pub async fn reject(request: Request, error: impl IntoResponse) -> Response {
    drain(request).await;
    error.into_response()
}

/// Responds with `error` to a request without a valid token.
pub fn unauthorized(error: impl IntoResponse) -> Response {
    ([(header::WWW_AUTHENTICATE, BEARER)], error).into_response()
}

/// A JSON response.
pub fn json(value: &impl Serialize) -> Response {
    let text = serde_json::to_vec(value).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    TooLarge,
    Incomplete,
    TimedOut,
    /// Other requests occupy the memory for bodies.
    Busy,
}

/// A request without its body.
pub struct Head {
    pub headers: HeaderMap,
    path: RawPathParams,
    query: Vec<(String, String)>,
}

/// A request with its body.
pub struct RequestWithBody {
    head: Head,
    pub body: Result<Bytes, BodyError>,
}

impl Deref for RequestWithBody {
    type Target = Head;

    fn deref(&self) -> &Head {
        &self.head
    }
}

/// Maximum number of parameters in a query string, unless the API reads more.
pub const PARAMETERS_MAX: usize = 100;

/// A decimal number without sign; `None` for any other text.
pub fn plain_number<N: FromStr>(text: &str) -> Option<N> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Why the address of a request cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriError {
    /// The path is not valid UTF-8.
    Path,
    /// The query string is not valid UTF-8.
    Query,
    TooManyParameters,
}

impl UriError {
    /// The error message.
    pub fn message(self) -> &'static str {
        match self {
            UriError::Path => "the path is not valid UTF-8",
            UriError::Query => "the query string is not valid UTF-8",
            UriError::TooManyParameters => "the query string has too many parameters",
        }
    }
}

impl RequestWithBody {
    /// Reads a request and its body of at most `max` bytes.
    ///
    /// # Errors
    /// If the path or the query is not valid UTF-8, or the query has too many parameters.
    pub async fn read(request: Request, max: usize) -> Result<RequestWithBody, UriError> {
        let (parts, body) = request.into_parts();
        let body = BodyReader::of(&parts, body).read(max).await;
        let head = Head::of(parts).await?;
        Ok(RequestWithBody { head, body })
    }

    /// Reads a request, and its body only if `authorize` accepts the rest. Discards the body of a rejected request.
    ///
    /// # Errors
    /// The error of `authorize`, or of [`RequestWithBody::read`].
    pub async fn read_if<T, E: From<UriError>>(
        request: Request,
        max: usize,
        authorize: impl AsyncFnOnce(&Head) -> Result<T, E>,
    ) -> Result<(RequestWithBody, T), E> {
        let (parts, body) = request.into_parts();
        let body = BodyReader::of(&parts, body);
        let authorized = match Head::of(parts).await {
            Ok(head) => authorize(&head).await.map(|authorized| (head, authorized)),
            Err(not_text) => Err(not_text.into()),
        };
        match authorized {
            Ok((head, authorized)) => {
                let body = body.read(max).await;
                Ok((RequestWithBody { head, body }, authorized))
            }
            Err(refused) => {
                body.discard().await;
                Err(refused)
            }
        }
    }
}

impl Head {
    async fn of(mut parts: Parts) -> Result<Head, UriError> {
        let path = RawPathParams::from_request_parts(&mut parts, &()).await;
        let query = pairs(parts.uri.query().unwrap_or_default(), PARAMETERS_MAX);
        Ok(Head {
            path: path.map_err(|_| UriError::Path)?,
            query: query?,
            headers: parts.headers,
        })
    }

    /// The value of the path parameter `name`; empty if the route has no such parameter.
    pub fn part(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value).unwrap_or_default()
    }

    /// Whether the route has the path parameter `name`.
    pub fn has_part(&self, name: &str) -> bool {
        self.path.iter().any(|(key, _)| key == name)
    }

    /// The first value of the query parameter `name`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The body of a request, which has not been read yet.
pub struct BodyReader {
    body: Body,
    is_get: bool,
    expects_continue: bool,
}

impl BodyReader {
    pub fn of(parts: &Parts, body: Body) -> BodyReader {
        BodyReader {
            body,
            is_get: parts.method == Method::GET,
            expects_continue: parts.headers.contains_key(header::EXPECT),
        }
    }

    /// Reads at most `max` bytes. The body of a GET has no meaning in any protocol, so it is discarded: a GET may wait
    /// long for a job, and would keep memory reserved for its body.
    pub async fn read(self, max: usize) -> Result<Bytes, BodyError> {
        if !self.is_get {
            return body(self.body, max).await;
        }
        self.discard().await;
        Ok(Bytes::new())
    }

    async fn discard(self) {
        if !self.body.is_end_stream() {
            Box::pin(discard(self.body, self.expects_continue)).await;
        }
    }
}

/// Reads a body of at most `max` bytes. The HTTP server limits the time. Reserves memory for what exceeds 64 KiB, as it
/// arrives: a client that announces a long body has not sent it yet.
pub async fn body(body: Body, max: usize) -> Result<Bytes, BodyError> {
    let expected = HttpBody::size_hint(&body).exact().unwrap_or_default();
    let expected = usize::try_from(expected).unwrap_or(usize::MAX).min(max);
    let mut stream = body.into_data_stream();
    let mut parts = BodyParts::default();
    let (mut length, mut is_busy) = (0, false);
    while let Some(part) = stream.next().await {
        let part = part.map_err(|error| body_error(&error))?;
        length += part.len();
        if length > max.saturating_mul(DISCARD_FACTOR) {
            break;
        }
        if length > max || is_busy {
            continue;
        }
        if length > SMALL_MAX && Box::pin(reserve(part.len())).await.is_err() {
            // The rest is read and discarded, because clients read the response only after they have written the body.
            is_busy = true;
            parts = BodyParts::default();
            release();
            continue;
        }
        parts.push(part, expected);
    }
    if length > max {
        return Err(BodyError::TooLarge);
    }
    if is_busy {
        return Err(BodyError::Busy);
    }
    Ok(parts.joined())
}

/// The parts of a body that have arrived. A body of one part is not copied.
#[derive(Default)]
struct BodyParts {
    first: Option<Bytes>,
    /// All parts, if there are several.
    all: BytesMut,
}

impl BodyParts {
    /// Adds a part of a body that may have `expected` bytes. Allocates for what has arrived, not for what is announced;
    /// the capacity doubles as more arrives.
    fn push(&mut self, part: Bytes, expected: usize) {
        match &self.first {
            None => self.first = Some(part),
            Some(first) => {
                if self.all.is_empty() {
                    self.all.reserve(expected.min(SMALL_MAX));
                    self.all.extend_from_slice(first);
                }
                if self.all.capacity() < self.all.len() + part.len() {
                    let rest = expected.saturating_sub(self.all.len());
                    self.all.reserve(rest.min(self.all.len()).max(part.len()));
                }
                self.all.extend_from_slice(&part);
            }
        }
    }

    fn joined(self) -> Bytes {
        if self.all.is_empty() {
            self.first.unwrap_or_default()
        } else {
            self.all.freeze()
        }
    }
}

/// The names and values of a query, at most `max`.
///
/// # Errors
/// If there are more, or if they are not valid UTF-8: the parser replaces invalid bytes with U+FFFD, which would make
/// distinct names equal.
pub fn pairs(query: &str, max: usize) -> Result<Vec<(String, String)>, UriError> {
    // A short parameter occupies many times its length.
    if count_parameters(query.as_bytes()) > max {
        return Err(UriError::TooManyParameters);
    }
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    if query.is_ascii() && !query.contains('%') {
        return Ok(pairs);
    }
    let count = |text: &str| text.matches('\u{fffd}').count();
    let read: usize = pairs
        .iter()
        .map(|(name, value)| count(name) + count(value))
        .sum();
    let meant = || count(query) + query.to_ascii_uppercase().matches("%EF%BF%BD").count();
    match read == 0 || read == meant() {
        true => Ok(pairs),
        false => Err(UriError::Query),
    }
}

fn body_error(error: &(dyn Error + 'static)) -> BodyError {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    if causes.any(<dyn Error>::is::<BodyTimeout>) {
        BodyError::TimedOut
    } else {
        BodyError::Incomplete
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll};

    use futures::stream;
    use hyper::body::{Frame, SizeHint};

    use super::*;

    /// A body in chunks of these lengths, and the number of chunks that have been read.
    fn in_parts(lengths: Vec<usize>) -> (Body, Arc<AtomicUsize>) {
        let read = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&read);
        let parts = stream::iter(lengths).map(move |length| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from(vec![0; length]))
        });
        (Body::from_stream(parts), read)
    }

    #[tokio::test]
    async fn a_body_up_to_the_limit_is_read() {
        for (length, expected) in [
            (0, Ok(0)),
            (9, Ok(9)),
            (10, Ok(10)),
            (11, Err(BodyError::TooLarge)),
        ] {
            let (all, _) = in_parts(vec![length]);
            let (bytewise, _) = in_parts(vec![1; length]);
            for parts in [all, bytewise] {
                let read = body(parts, 10).await;
                assert_eq!(read.map(|body| body.len()), expected, "{length} bytes");
            }
        }
    }

    #[test]
    fn memory_is_allocated_for_what_arrives_and_not_for_what_is_announced() {
        let mut parts = BodyParts::default();
        for _ in 0..2 {
            parts.push(Bytes::from_static(b"12"), 16 << 20);
        }
        assert!(
            parts.all.capacity() <= SMALL_MAX,
            "{}",
            parts.all.capacity()
        );
        let part = Bytes::from(vec![0; SMALL_MAX]);
        for arrived in 2..10 {
            parts.push(part.clone(), 16 << 20);
            let capacity = parts.all.capacity();
            assert!(capacity <= 2 * arrived * SMALL_MAX, "{capacity}");
        }
        assert_eq!(parts.joined().len(), 4 + 8 * SMALL_MAX);
    }

    /// A body with an announced length.
    struct Announced(u64, Body);

    impl HttpBody for Announced {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            Pin::new(&mut self.1).poll_frame(cx)
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0)
        }
    }

    #[tokio::test]
    async fn an_announced_length_occupies_no_memory() {
        let (parts, _) = in_parts(vec![4, 4]);
        let announced = Body::new(Announced(1 << 60, parts));
        assert_eq!(body(announced, 1 << 61).await, Ok(Bytes::from(vec![0; 8])));
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_read_up_to_four_times_its_limit() {
        let (parts, read) = in_parts(vec![39, 1, 1, 1]);
        assert_eq!(body(parts, 10).await, Err(BodyError::TooLarge));
        assert_eq!(read.load(Ordering::Relaxed), 3, "41 bytes are too many");
    }
}
