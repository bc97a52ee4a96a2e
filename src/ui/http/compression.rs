//! Compresses responses in pieces, so that a large one does not delay other requests: Brotli takes about 85 ms per MB, on
//! a thread that serves all.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::yield_now;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

/// At this level, Brotli takes about 1 ms per page, and compresses better than gzip at any level.
const LEVEL: CompressionLevel = CompressionLevel::Precise(4);

/// Bytes that are compressed without a pause.
const PIECE_BYTES: usize = 64 << 10;

/// Complete responses of which a piece is compressed at the same time. The others wait for their turn.
const TURNS: usize = 2;

static FREE_TURNS: Semaphore = Semaphore::const_new(TURNS);

/// Compresses the responses of these routes for clients that accept it.
pub fn compressed<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .layer(middleware::from_fn(split))
        .layer(CompressionLayer::new().quality(LEVEL))
        .layer(middleware::from_fn(finish))
}

/// Set if a response turns out to be compressed.
#[derive(Clone, Debug)]
struct IsCompressed {
    flag: Arc<AtomicBool>,
    /// Whether the size of the response was known before.
    is_complete: bool,
}

/// Prepares responses of more than one piece.
async fn split(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let bytes = response.body().size_hint().exact();
    if bytes.is_some_and(|bytes| bytes <= PIECE_BYTES as u64) {
        return response;
    }
    let compressed = IsCompressed {
        flag: Arc::default(),
        is_complete: bytes.is_some(),
    };
    response.extensions_mut().insert(compressed.clone());
    response.map(|body| {
        Body::new(Pieces {
            body,
            rest: Bytes::new(),
            compressed,
            pause: None,
            turn: None,
        })
    })
}

/// Compresses complete responses before they are sent, so that no client that reads slowly has a turn. Then their
/// compressed size is known, and the rest of their memory is released.
async fn finish(request: Request, next: Next) -> Response {
    let (mut parts, body) = next.run(request).await.into_parts();
    let compressed = parts.extensions.remove::<IsCompressed>();
    let compressed = compressed.filter(|_| parts.headers.contains_key(header::CONTENT_ENCODING));
    let Some(compressed) = compressed else {
        return Response::from_parts(parts, body);
    };
    compressed.flag.store(true, Ordering::Relaxed);
    if !compressed.is_complete {
        return Response::from_parts(parts, body);
    }
    match to_bytes(body, usize::MAX).await {
        Ok(bytes) => Response::from_parts(parts, Body::from(bytes)),
        Err(error) => {
            tracing::error!(%error, "failed to compress a response");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A body whose frames are split, with a pause before each part, if it is compressed.
struct Pieces {
    body: Body,
    /// What is left of a frame.
    rest: Bytes,
    compressed: IsCompressed,
    pause: Option<Pin<Box<dyn Future<Output = Turn> + Send>>>,
    /// Kept while a piece is compressed.
    turn: Turn,
}

type Turn = Option<SemaphorePermit<'static>>;

/// Waits for a turn, and then until all other tasks have run, and tokio has looked for new events. A stream needs no
/// turn: its client may read slowly.
async fn pause(needs_turn: bool) -> Turn {
    let turn = match needs_turn {
        true => FREE_TURNS.acquire().await.ok(),
        false => None,
    };
    // In this task, it would be over at the next poll, and the encoder polls again as soon as it has flushed.
    tokio::spawn(yield_now()).await.ok();
    turn
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if !this.compressed.flag.load(Ordering::Relaxed) {
            return Pin::new(&mut this.body).poll_frame(context);
        }
        this.turn = None;
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let is_complete = this.compressed.is_complete;
        let paused = this
            .pause
            .get_or_insert_with(|| Box::pin(pause(is_complete)));
        this.turn = ready!(paused.as_mut().poll(context));
        this.pause = None;
        let piece = this.rest.split_to(this.rest.len().min(PIECE_BYTES));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + body.lower());
        if let Some(upper) = body.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    const BYTES: usize = 16 * PIECE_BYTES;

    fn text() -> Bytes {
        "a page ".repeat(BYTES / 7 + 1).into_bytes().into()
    }

    async fn respond(routes: Router, encoding: &str) -> Response {
        let request = Request::get("/").header(header::ACCEPT_ENCODING, encoding);
        routes
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn large_responses_are_compressed_a_few_pieces_at_a_time() {
        const RESPONSES: usize = 20;
        let routes = compressed(Router::new().route("/", get(|| async { text() })));
        let turns = Arc::new(AtomicUsize::new(0));
        let others = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                others.fetch_add(1, Ordering::Relaxed);
                yield_now().await;
            }
        });
        let responses = (0..RESPONSES).map(|_| tokio::spawn(respond(routes.clone(), "br")));
        for response in responses.collect::<Vec<_>>() {
            let response = response.await.unwrap();
            assert_eq!(response.headers()[header::CONTENT_ENCODING], "br");
            let bytes = response.body().size_hint().exact().unwrap();
            assert!(bytes < text().len() as u64 / 10, "{bytes}");
        }
        // Meanwhile another task runs at least once for each two pieces.
        let turns = turns.load(Ordering::Relaxed);
        assert!(
            turns >= RESPONSES * (BYTES / PIECE_BYTES) / TURNS,
            "{turns}"
        );
        other.abort();
    }

    #[tokio::test]
    async fn small_and_plain_responses_are_sent_as_they_are() {
        let whole = text();
        for (encoding, body) in [("br", whole.slice(..PIECE_BYTES)), ("identity", whole)] {
            let sent = body.clone();
            let routes = Router::new().route("/", get(|| async { sent }));
            let response = respond(compressed(routes), encoding).await;
            let is_compressed = response.headers().contains_key(header::CONTENT_ENCODING);
            assert_eq!(is_compressed, encoding == "br");
            let frame = response.into_body().into_data_stream();
            let frame = futures::StreamExt::next(&mut Box::pin(frame)).await;
            let frame = frame.unwrap().unwrap();
            assert_eq!(frame == body, encoding == "identity", "{encoding}");
        }
    }
}
