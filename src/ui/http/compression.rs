//! Compresses responses in pieces, so that a large one does not delay other requests: Brotli takes about 85 ms per MB, on
//! a thread that also serves other requests.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::response::Parts;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use crate::ui::http::page_slots::{PageClient, busy};

/// At this level, Brotli takes about 1 ms per page, and compresses better than gzip at any level.
const LEVEL: CompressionLevel = CompressionLevel::Precise(4);

/// Bytes that are compressed without a pause.
const PIECE_BYTES: usize = 64 << 10;

/// Maximum number of complete responses longer than [`PIECE_BYTES`] that are compressed at the same time: for users,
/// and for all others. The rest wait, because each encoder occupies about 10 MB.
const TURNS: usize = 2;

static TURNS_OF_USERS: Semaphore = Semaphore::const_new(TURNS);

/// The turns of responses to guests and to clients without access, so that these do not delay responses to users.
static TURNS_OF_OTHERS: Semaphore = Semaphore::const_new(TURNS);

/// How long a response waits for its turn.
const WAIT_MAX: Duration = Duration::from_secs(4);

/// Compresses the responses of these routes for clients that accept it.
pub fn compressed<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .layer(middleware::from_fn(split))
        .layer(CompressionLayer::new().quality(LEVEL))
        .layer(middleware::from_fn(finish))
}

/// A permit for a response to a client, held until the response is compressed.
pub trait Slot: Send + Sync + 'static {
    fn client(&self) -> &PageClient;
}

/// Keeps `slot` until the response is compressed, so that only a few responses of each client wait for a turn.
pub fn with_slot(response: Response, slot: impl Slot) -> Response {
    HeldSlot::from(slot).keep_with(response)
}

/// A slot in the extensions of a response.
#[derive(Clone)]
pub struct HeldSlot(Arc<dyn Slot>);

impl<S: Slot> From<S> for HeldSlot {
    fn from(slot: S) -> HeldSlot {
        HeldSlot(Arc::new(slot))
    }
}

impl HeldSlot {
    /// The slot of a response.
    pub fn take(parts: &mut Parts) -> Option<HeldSlot> {
        parts.extensions.remove()
    }

    /// Keeps the slot until the response is compressed.
    pub fn keep_with(self, mut response: Response) -> Response {
        response.extensions_mut().insert(self);
        response
    }

    fn turns(&self) -> &'static Semaphore {
        match self.0.client() {
            PageClient::User(_) => &TURNS_OF_USERS,
            PageClient::Guest(_) | PageClient::SignIn(_) => &TURNS_OF_OTHERS,
        }
    }
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
    let flag = Arc::<AtomicBool>::default();
    response.extensions_mut().insert(IsCompressed {
        flag: Arc::clone(&flag),
        is_complete: bytes.is_some(),
    });
    response.map(|body| {
        Body::new(Pieces {
            body,
            rest: Bytes::new(),
            is_compressed: flag,
            pause: None,
        })
    })
}

/// Compresses complete responses before they are sent, so that a client that reads slowly does not keep a turn. Then
/// their compressed size is known, and the rest of their memory is released.
async fn finish(request: Request, next: Next) -> Response {
    let (mut parts, body) = next.run(request).await.into_parts();
    let slot = HeldSlot::take(&mut parts);
    let compressed = parts.extensions.remove::<IsCompressed>();
    if !parts.headers.contains_key(header::CONTENT_ENCODING) {
        return Response::from_parts(parts, body);
    }
    let Some(compressed) = compressed else {
        // One piece needs no turn, but while it waits for its client, the encoder would keep over a megabyte.
        return collect(parts, body).await;
    };
    compressed.flag.store(true, Ordering::Relaxed);
    if !compressed.is_complete {
        return Response::from_parts(parts, body);
    }
    let turns = slot.as_ref().map_or(&TURNS_OF_OTHERS, HeldSlot::turns);
    let Ok(_turn) = timeout(WAIT_MAX, turns.acquire()).await else {
        return busy();
    };
    collect(parts, body).await
}

/// The response with its whole body, compressed.
async fn collect(parts: Parts, body: Body) -> Response {
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
    is_compressed: Arc<AtomicBool>,
    /// A task that ends when all other tasks have run, and tokio has looked for new events. In this task, `yield_now`
    /// would end at the next poll, and the encoder polls again as soon as it has flushed.
    pause: Option<JoinHandle<()>>,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if !this.is_compressed.load(Ordering::Relaxed) {
            return Pin::new(&mut this.body).poll_frame(context);
        }
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let pause = this.pause.get_or_insert_with(|| tokio::spawn(yield_now()));
        ready!(Pin::new(pause).poll(context)).ok();
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
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit};
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

    /// A body that counts how many of its kind are being read.
    struct Counted {
        text: Option<Bytes>,
        is_read: bool,
        read: Arc<AtomicUsize>,
        read_max: Arc<AtomicUsize>,
    }

    impl HttpBody for Counted {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            if !self.is_read {
                self.is_read = true;
                let read = self.read.fetch_add(1, Ordering::Relaxed) + 1;
                self.read_max.fetch_max(read, Ordering::Relaxed);
            }
            Poll::Ready(self.text.take().map(|text| Ok(Frame::data(text))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.text.as_ref().map_or(0, Bytes::len) as u64)
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            if self.is_read {
                self.read.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    #[tokio::test]
    async fn few_large_responses_are_compressed_at_a_time_in_pieces() {
        const RESPONSES: usize = 20;
        // On a busy machine, the last one waits longer than `WAIT_MAX`.
        tokio::time::pause();
        let (read, read_max) = (Arc::default(), Arc::<AtomicUsize>::default());
        let max = Arc::clone(&read_max);
        let counted = move || {
            let body = Counted {
                text: Some(text()),
                is_read: false,
                read: Arc::clone(&read),
                read_max: Arc::clone(&max),
            };
            async { Response::new(Body::new(body)) }
        };
        let routes = compressed(Router::new().fallback(counted));
        let runs = Arc::new(AtomicUsize::new(0));
        let others = Arc::clone(&runs);
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
        assert_eq!(read_max.load(Ordering::Relaxed), TURNS);
        // Meanwhile another task runs once for the pieces of all that have a turn.
        let runs = runs.load(Ordering::Relaxed);
        assert!(runs >= RESPONSES * (BYTES / PIECE_BYTES) / TURNS, "{runs}");
        other.abort();
    }

    /// The only slot of a client.
    #[expect(dead_code, reason = "the permit is held until it is dropped")]
    struct OnlySlot(PageClient, OwnedSemaphorePermit);

    impl Slot for OnlySlot {
        fn client(&self) -> &PageClient {
            &self.0
        }
    }

    fn guest() -> PageClient {
        PageClient::Guest(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// A page that takes the slot.
    fn page_of(client: PageClient, slots: &Arc<Semaphore>) -> Router {
        let slots = Arc::clone(slots);
        let page = async move || {
            let slot = Arc::clone(&slots).try_acquire_owned().unwrap();
            with_slot(text().into_response(), OnlySlot(client.clone(), slot))
        };
        compressed(Router::new().fallback(page))
    }

    async fn take_all(turns: &Semaphore) -> SemaphorePermit<'_> {
        let all = u32::try_from(TURNS).unwrap();
        turns.acquire_many(all).await.unwrap()
    }

    #[tokio::test]
    async fn responses_to_guests_delay_none_to_users() {
        let slots = Arc::new(Semaphore::new(1));
        let _turns = take_all(&TURNS_OF_OTHERS).await;
        tokio::time::pause();
        for client in [guest(), PageClient::SignIn(IpAddr::V4(Ipv4Addr::LOCALHOST))] {
            let refused = respond(page_of(client, &slots), "br").await;
            assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        }
        let ada = PageClient::User("ada".to_owned());
        let response = respond(page_of(ada, &slots), "br").await;
        assert_eq!(response.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_slot_is_kept_while_the_response_waits_for_its_turn() {
        let slots = Arc::new(Semaphore::new(1));
        let routes = page_of(guest(), &slots);
        let turns = take_all(&TURNS_OF_OTHERS).await;
        tokio::time::pause();
        let refused = respond(routes.clone(), "br");
        let (refused, while_waiting) = tokio::join!(refused, async {
            tokio::time::sleep(WAIT_MAX / 2).await;
            slots.available_permits()
        });
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!((while_waiting, slots.available_permits()), (0, 1));
        drop(turns);
        tokio::time::resume();
        for encoding in ["br", "identity"] {
            let response = respond(routes.clone(), encoding).await;
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(slots.available_permits(), 1, "{encoding}");
        }
    }

    #[tokio::test]
    async fn small_and_plain_responses_are_sent_as_they_are() {
        let whole = text();
        for (encoding, body) in [("br", whole.slice(..PIECE_BYTES)), ("identity", whole)] {
            let sent = body.clone();
            let routes = Router::new().fallback(|| async { sent });
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
