//! Accepts connections and serves each in a task of its own, within the limits on all of them.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use super::client::Proxies;
use super::connections::{Admitted, Connections};
use super::io::{Answered, Timed, Watched};
use super::limits::Limits;

/// The pause after the system could not accept a connection, for example because no file is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The largest header of a request, its first line included.
const HEADER_BYTES_MAX: usize = 128 << 10;

/// The answer on a connection for which there is no room.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 31\r\nretry-after: 1\r\nconnection: close\r\n\r\nthe server has too many clients";

/// What all connections share.
struct Shared {
    router: Router,
    proxies: Proxies,
    body: Duration,
    stopping: CancellationToken,
}

/// Serves until `stopping` is cancelled, and then until all requests have been answered.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    proxies: Proxies,
    stopping: CancellationToken,
) {
    let connections = Connections::new(limits);
    let tasks = TaskTracker::new();
    let shared = Arc::new(Shared {
        router,
        proxies,
        body: limits.body,
        stopping: stopping.clone(),
    });
    while let Some(accepted) = stopping.run_until_cancelled(listener.accept()).await {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if !is_of_one_client(&error) {
                    tracing::error!(%error, "a connection could not be accepted");
                    stopping.run_until_cancelled(sleep(ACCEPT_PAUSE)).await;
                }
                continue;
            }
        };
        let address = peer.ip();
        let counted = (!shared.proxies.trust(address)).then_some(address);
        let Some(admitted) = connections.admit(counted) else {
            // A new socket has room for this; a client that reads nothing does not delay the others.
            drop(stream.try_write(FULL));
            continue;
        };
        // Answers are small and wanted at once.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection would not send at once");
        }
        let connection = Arc::clone(&admitted.connection);
        let serving = tasks.spawn(serve_one(stream, peer, admitted, Arc::clone(&shared)));
        connection.set_task(serving.abort_handle());
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

/// Whether the error is that of one client, which has gone.
fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

/// Serves one connection to its end.
async fn serve_one(stream: TcpStream, peer: SocketAddr, admitted: Admitted, shared: Arc<Shared>) {
    let connection = &admitted.connection;
    let service = service_fn(|request: hyper::Request<Incoming>| {
        connection.begin_request();
        let mut request: Request = request.map(|body| Timed::body(body, shared.body, connection));
        shared.proxies.read(peer.ip(), &mut request);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = shared.router.clone().call(request);
        async {
            let answer = answer.await?;
            Ok::<_, Infallible>(answer.map(|body| Answered::new(body, Arc::clone(connection))))
        }
    });
    let io = TokioIo::new(Watched::new(stream, Arc::clone(connection)));
    let mut http = http1::Builder::new();
    http.max_header_size(HEADER_BYTES_MAX);
    let mut serving = pin!(http.serve_connection(io, service));
    let outcome = tokio::select! {
        outcome = serving.as_mut() => outcome,
        () = shared.stopping.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = outcome {
        tracing::trace!(%error, "a connection ended early");
    }
}
