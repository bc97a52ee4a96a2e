//! The HTTP client of the export.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::client::{Connector, connector};

/// How long an export may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long an unused connection is kept.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Maximum size of the collector's response, in bytes.
const RESPONSE_BYTES_MAX: usize = 64 << 10;

/// Sends requests on the runtime that it was made on, because the SDK exports from a thread without one.
pub struct Client {
    http: legacy::Client<Connector, Full<Bytes>>,
    runtime: Handle,
    /// Whether the last export failed. Only the first failure of several is logged.
    has_failed: AtomicBool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

impl Client {
    /// A client for this address.
    ///
    /// # Errors
    /// If it is not an HTTP address, or the system's CA certificates cannot be read.
    pub fn new(address: &str) -> Result<Client, String> {
        let uri: hyper::Uri = address.parse().map_err(|_| "not a URL".to_owned())?;
        let connector = match uri.scheme_str() {
            Some("http") => connector(false, Some(""))?,
            Some("https") => connector(true, None)?,
            _ => return Err("expected http://HOST:PORT or https://HOST:PORT".to_owned()),
        };
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .build(connector);
        Ok(Client {
            http,
            runtime: Handle::current(),
            has_failed: AtomicBool::new(false),
        })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let http = self.http.clone();
        let sending = async move {
            let response = http.request(request.map(Full::new)).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await?;
            Ok::<_, HttpError>(Response::from_parts(head, body.to_bytes()))
        };
        // The timer needs the runtime too.
        let sending = self
            .runtime
            .spawn(async { timeout(TIMEOUT, sending).await });
        sending.await??
    }
}

impl HttpClient for Client {
    fn send_bytes<'this, 'future>(
        &'this self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'future>>
    where
        'this: 'future,
        Self: 'future,
    {
        Box::pin(async move {
            let outcome = self.send(request).await;
            let problem = match &outcome {
                Ok(response) if response.status().is_success() => None,
                Ok(response) => Some(format!("status {}", response.status().as_u16())),
                Err(error) => Some(error.to_string()),
            };
            let had_failed = self.has_failed.swap(problem.is_some(), Ordering::Relaxed);
            match (had_failed, problem) {
                (false, Some(error)) => tracing::warn!(%error, "failed to export traces"),
                (true, None) => tracing::info!("traces are exported again"),
                _ => {}
            }
            outcome
        })
    }
}
