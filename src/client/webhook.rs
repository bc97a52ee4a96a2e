//! Posts to webhooks of other servers.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::handshake;
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, join, split};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tower_service::Service;

use super::tls;

/// The time for a request and the head of its response.
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of the head of a response, with the informational responses before it.
const RESPONSE_HEAD_BYTES_MAX: u64 = 64 << 10;

/// Posts to webhooks. Follows no redirects, and reads nothing but the status of a response.
#[derive(Debug, Default)]
pub struct Webhooks {
    plain: OnceCell<tls::Connector>,
    /// With the certificate authorities of the system.
    encrypted: OnceCell<tls::Connector>,
}

impl Webhooks {
    /// Posts JSON, and returns the status.
    ///
    /// # Errors
    /// A description for users, without the address: if nothing can be sent, or there is no response in time.
    pub async fn post(
        &self,
        url: &str,
        signature: &str,
        body: Vec<u8>,
    ) -> Result<u16, &'static str> {
        let url: Uri = url.parse().map_err(|_| "the address is not valid")?;
        let is_encrypted = match url.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err("the address is neither http nor https"),
        };
        let cell = match is_encrypted {
            true => &self.encrypted,
            false => &self.plain,
        };
        let connector = cell.get_or_try_init(|| connector(is_encrypted)).await?;
        let signature =
            HeaderValue::from_str(signature).map_err(|_| "the signature is not valid")?;
        let host = url.authority().ok_or("the address is not valid")?.as_str();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let request = Request::post(path)
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .header(
                USER_AGENT,
                concat!("switchyard/", env!("CARGO_PKG_VERSION")),
            )
            .header(SIGNATURE, signature)
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| "the request is not valid")?;
        let sent = timeout(WEBHOOK_TIMEOUT, send(connector.clone(), url, request)).await;
        sent.unwrap_or(Err("no response within 5 s"))
    }
}

/// Sends a request on a connection of its own, and returns the status of the response.
async fn send(
    mut connector: tls::Connector,
    url: Uri,
    request: Request<Full<Bytes>>,
) -> Result<u16, &'static str> {
    let stream = connector.call(url).await.map_err(|_| "cannot connect")?;
    let (read, write) = split(TokioIo::new(stream));
    let stream = TokioIo::new(join(read.take(RESPONSE_HEAD_BYTES_MAX), write));
    let failed = |_| "the connection failed";
    let (mut sender, connection) = handshake(stream).await.map_err(failed)?;
    let transfer = async {
        drop(connection.await);
        // The response can have arrived before the connection ended.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        response = sender.send_request(request) => Ok(response.map_err(failed)?.status().as_u16()),
        () = transfer => Err("the connection failed"),
    }
}

/// The header with the signature of the body.
const SIGNATURE: HeaderName = HeaderName::from_static("switchyard-signature");

async fn connector(is_encrypted: bool) -> Result<tls::Connector, &'static str> {
    // Reads the certificates of the system.
    let made = tokio::task::spawn_blocking(move || tls::connector(is_encrypted, None)).await;
    let connector = made.ok().and_then(Result::ok);
    connector.ok_or("the system has no CA certificates")
}
