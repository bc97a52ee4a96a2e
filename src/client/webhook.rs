//! Posts to webhooks of other servers.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::tls;

/// The time for a request and the head of its answer.
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// Posts to webhooks. Follows no redirects, and reads nothing but the status of an answer.
#[derive(Debug, Default)]
pub struct Webhooks {
    plain: OnceCell<Http>,
    /// With the certificate authorities of the system.
    encrypted: OnceCell<Http>,
}

type Http = Client<tls::Connector, Full<Bytes>>;

impl Webhooks {
    /// Posts JSON, and returns the status.
    ///
    /// # Errors
    /// A description for users, without the address: if there is no answer in time.
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
        let http = cell.get_or_try_init(|| client(is_encrypted)).await?;
        let signature =
            HeaderValue::from_str(signature).map_err(|_| "the signature is not valid")?;
        let request = Request::post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(
                USER_AGENT,
                concat!("switchyard/", env!("CARGO_PKG_VERSION")),
            )
            .header(SIGNATURE, signature)
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| "the request is not valid")?;
        match timeout(WEBHOOK_TIMEOUT, http.request(request)).await {
            Err(_) => Err("no answer within 5 s"),
            Ok(Err(error)) if error.is_connect() => Err("cannot connect"),
            Ok(Err(_)) => Err("the connection failed"),
            // Without its body, the connection is closed.
            Ok(Ok(answer)) => Ok(answer.status().as_u16()),
        }
    }
}

/// The header with the signature of the body.
const SIGNATURE: HeaderName = HeaderName::from_static("switchyard-signature");

async fn client(is_encrypted: bool) -> Result<Http, &'static str> {
    // Reads the certificates of the system.
    let made = tokio::task::spawn_blocking(move || tls::connector(is_encrypted, None)).await;
    let connector = made.ok().and_then(Result::ok);
    let connector = connector.ok_or("the system has no CA certificates")?;
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(0)
        .build(connector))
}
