//! Accepts connections within their limits and serves each in its own task.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use super::connections::{Connection, ConnectionGuard, Connections};
use super::io::{BufferedStream, TimedRequestBody, TrackedResponseBody, TrackedSocket};
use super::limits::Limits;
use super::proxies::Proxies;
use super::tls::{Tls, is_plain, refuse_plain};
use crate::memory::{self, Reserved};
use crate::metrics::Gauge;
use crate::request::{BasePath, Https};

/// The pause after the system failed to accept a connection, for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Maximum size of a request's header, including its first line, and of a connection's buffer for what the client sends.
/// The connection keeps the buffer until it ends.
const HEADER_BYTES_MAX: usize = 128 << 10;

/// How long a client may be silent before the system asks whether it is still there, and the time between two attempts.
const KEEPALIVE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);

/// The response to a connection beyond the limit.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 31\r\nretry-after: 1\r\nconnection: close\r\n\r\nthe server has too many clients";

/// State that all connections share.
struct Shared {
    router: Router,
    proxies: Proxies,
    base_path: Option<BasePath>,
    /// The value of `Strict-Transport-Security` in responses over HTTPS.
    hsts: Option<HeaderValue>,
    body: Duration,
    stopping: CancellationToken,
}

/// TLS, HSTS, trusted proxies and base path of a listener.
#[derive(Clone)]
pub struct Transport {
    /// `None` for plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// Seconds of `Strict-Transport-Security`.
    pub hsts: Option<u32>,
    pub proxies: Proxies,
    /// The path below which clients reach this listener, unless they reach it at the root.
    pub base_path: Option<BasePath>,
    /// Counts the open connections.
    pub connections: Gauge,
}

/// Serves until `stopping` is canceled, and then until all requests have completed.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    transport: Transport,
    stopping: CancellationToken,
) {
    let clients = Clients::new(limits, &transport, FULL);
    let Transport {
        tls,
        hsts,
        proxies,
        base_path,
        ..
    } = transport;
    let shared = Arc::new(Shared {
        router,
        proxies,
        base_path,
        hsts: hsts.and_then(|age| HeaderValue::try_from(format!("max-age={age}")).ok()),
        body: limits.body,
        stopping: stopping.clone(),
    });
    clients
        .accept(listener, &stopping, |tasks, stream, peer, guard| {
            let shared = Arc::clone(&shared);
            // Separate tasks, so that a plain connection has no memory or processing overhead for TLS.
            match &tls {
                None => tasks.spawn(serve_http(stream, false, peer, guard, shared)),
                Some(tls) => tasks.spawn(serve_tls(stream, Arc::clone(tls), peer, guard, shared)),
            }
        })
        .await;
}

/// The clients of a listener.
pub struct Clients {
    connections: Arc<Connections>,
    proxies: Proxies,
    /// What a client beyond the limit is sent.
    full: Option<&'static [u8]>,
}

impl Clients {
    /// `full` is what a client beyond the limit is sent, except over TLS.
    pub fn new(limits: Limits, transport: &Transport, full: &'static [u8]) -> Clients {
        Clients {
            connections: Connections::new(limits, transport.connections.clone()),
            proxies: transport.proxies.clone(),
            full: transport.tls.is_none().then_some(full),
        }
    }

    /// Accepts connections within their limits until `stopping` is canceled, then waits until the open ones have ended.
    /// `serve` spawns the task of a connection.
    pub async fn accept(
        self,
        listener: TcpListener,
        stopping: &CancellationToken,
        serve: impl Fn(&TaskTracker, TrackedSocket, SocketAddr, ConnectionGuard) -> JoinHandle<()>,
    ) {
        let tasks = TaskTracker::new();
        while let Some(accepted) = stopping.run_until_cancelled(listener.accept()).await {
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if !is_of_one_client(&error) {
                        tracing::error!(%error, "failed to accept a connection");
                        stopping.run_until_cancelled(sleep(ACCEPT_PAUSE)).await;
                    }
                    continue;
                }
            };
            // The clients behind a trusted proxy share its address, so it has no limit of its own.
            let counted = (!self.proxies.trust(peer.ip())).then_some(peer.ip());
            let Some(guard) = self.connections.admit(counted) else {
                if let Some(full) = self.full {
                    // Does not wait: the send buffer of a new socket has room for the response.
                    drop(stream.try_write(full));
                }
                continue;
            };
            // Disables Nagle's algorithm, because responses are small and must not wait for more data.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "failed to set TCP_NODELAY on a connection");
            }
            if let Err(error) = keep_alive(&stream) {
                tracing::debug!(%error, "failed to set SO_KEEPALIVE on a connection");
            }
            let connection = Arc::clone(&guard.connection);
            let stream = TrackedSocket::new(stream, Arc::clone(&connection));
            let serving = serve(&tasks, stream, peer, guard);
            connection.set_task(serving.abort_handle());
        }
        drop(listener);
        tasks.close();
        tasks.wait().await;
    }
}

/// Long polls, event streams and clients of the Redis protocol can be silent for long.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE_INTERVAL);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// Whether the error concerns one client, which has disconnected.
fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

/// Serves one TLS connection until it ends. The time limit on the header of the first request also covers the
/// handshake.
async fn serve_tls(
    stream: TrackedSocket,
    tls: Arc<Tls>,
    peer: SocketAddr,
    guard: ConnectionGuard,
    shared: Arc<Shared>,
) {
    let begin = async {
        if is_plain(stream.tcp()).await? {
            refuse_plain(stream).await?;
            return Ok(None);
        }
        tls.accept(stream).await.map(Some)
    };
    match shared.stopping.run_until_cancelled(begin).await {
        Some(Ok(Some(stream))) => serve_http(stream, true, peer, guard, shared).await,
        Some(Err(error)) => log_end(&error),
        Some(Ok(None)) | None => {}
    }
}

/// Serves HTTP on one connection until it ends.
async fn serve_http<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    is_tls: bool,
    peer: SocketAddr,
    guard: ConnectionGuard,
    shared: Arc<Shared>,
) {
    let connection = &guard.connection;
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let is_pipelined = connection.begin_request();
        let mut request: Request =
            request.map(|body| TimedRequestBody::body(body, shared.body, connection));
        shared.proxies.read(peer.ip(), is_tls, &mut request);
        if let Some(base_path) = &shared.base_path {
            base_path.apply(&mut request);
        }
        request.extensions_mut().insert(ConnectInfo(peer));
        let hsts = shared.hsts.as_ref();
        let hsts = hsts.filter(|_| Https::is_set(request.extensions()));
        // The limit of hyper for headers is not set, because it would also apply to trailers, of which hyper otherwise
        // keeps up to 16 KiB. Its buffer can hold more than the longest header.
        let has_too_long_header = connection.header_bytes() > HEADER_BYTES_MAX
            && header_bytes(&request) > HEADER_BYTES_MAX;
        let response = memory::of_request(shared.router.clone().call(request));
        async move {
            // hyper can process the next request before it has sent the responses to previous ones, of which it keeps
            // any number.
            poll_fn(|_| match connection.is_flushed() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            if has_too_long_header {
                return Ok(too_long_header(connection));
            }
            if is_pipelined {
                // hyper runs up to 16 requests that have arrived together before other connections.
                yield_now().await;
            }
            let (response, reserved) = response.await;
            let mut response = response?;
            if let Some(hsts) = hsts {
                let headers = response.headers_mut();
                headers.insert(header::STRICT_TRANSPORT_SECURITY, hsts.clone());
            }
            if connection.must_end() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok::<_, Infallible>(
                response
                    .map(|body| TrackedResponseBody::new(body, reserved, Arc::clone(connection))),
            )
        }
    });
    let mut http = http1::Builder::new();
    http.max_buf_size(HEADER_BYTES_MAX);
    let stream = TokioIo::new(BufferedStream::new(stream, connection));
    let mut serving = pin!(http.serve_connection(stream, service));
    let outcome = tokio::select! {
        outcome = serving.as_mut() => outcome,
        () = shared.stopping.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = outcome {
        log_end(&error);
    }
}

/// The size of a request's header as clients usually write it.
fn header_bytes(request: &Request) -> usize {
    let version = "  HTTP/1.1\r\n\r\n".len();
    let uri = request.uri();
    let target = uri.path_and_query().map_or(0, |it| it.as_str().len());
    let lines = request.headers().iter();
    let lines = lines.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    request.method().as_str().len() + target + version + lines.sum::<usize>()
}

fn too_long_header(connection: &Arc<Connection>) -> Response<TrackedResponseBody> {
    let body = TrackedResponseBody::new(Body::empty(), Reserved::default(), Arc::clone(connection));
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

pub fn log_end(error: &impl Display) {
    tracing::trace!(%error, "a connection ended early");
}
