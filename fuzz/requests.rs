//! Sends bytes as a request to the whole server with a temporary database. Checks that nothing panics and that no
//! response is an internal error. The fuzz target `requests` and a test of the engine share this file.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::header::{HOST, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use switchyard::auth::{Admin, Auth, Credentials, Secrets};
use switchyard::engine::{Engine, EngineSettings};
use switchyard::http::{Settings, router};
use switchyard::secret::Hash;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Requests before the engine is replaced, so that its database stays small.
const REQUESTS_PER_ENGINE: u32 = 20_000;

/// Maximum size of a response body, in bytes.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// The secret of all credentials of the second server. It is fixed, so that seeds can contain it.
const SECRET: &str = "fuzzing-secret-00";

/// Two servers over one engine: one without credentials, where every user is an admin, and one with credentials for
/// every API.
pub struct Server {
    engine: Engine,
    routers: [Router; 2],
    served: u32,
}

impl Server {
    pub async fn start() -> Server {
        let options = EngineSettings {
            database: "sqlite::memory:".to_owned(),
            without_tasks: true,
            ..EngineSettings::default()
        };
        let engine = Engine::open(&options).await.unwrap();
        // Long polls and streams end at once, so that every response is complete.
        engine.stop_waiting();
        let stop = CancellationToken::new();
        stop.cancel();
        let secret = || Secrets::from_iter([Hash::of(SECRET)]);
        let credentials = Credentials {
            admin: Admin {
                token: secret(),
                login: Some(("root".to_owned(), secret())),
            },
            qless: secret(),
            relay: secret(),
            jobq: secret(),
            ..Credentials::default()
        };
        let open = Settings {
            no_auth: true,
            ..Settings::default()
        };
        let locked = Settings {
            auth: Auth::new(credentials, None),
            ..Settings::default()
        };
        let routers = [open, locked].map(|settings| router(&engine, &settings, &stop));
        Server {
            engine,
            routers,
            served: 0,
        }
    }

    /// Sends the request to both servers.
    pub async fn send(&mut self, data: &[u8]) {
        if self.served >= REQUESTS_PER_ENGINE {
            self.engine.close().await;
            *self = Server::start().await;
        }
        self.served += 1;
        for router in &self.routers {
            let Some(request) = request(data) else {
                return;
            };
            let response = router.clone().oneshot(request).await.unwrap();
            let status = response.status();
            let body = to_bytes(response.into_body(), RESPONSE_BYTES_MAX).await;
            let body = body.expect("an answer within its limit");
            assert!(
                !status.is_server_error() || is_stopped_poll(status),
                "{status} {} to {}",
                String::from_utf8_lossy(body.get(..500).unwrap_or(&body)),
                String::from_utf8_lossy(data)
            );
        }
    }
}

/// Whether this is the status with which a stopping server ends long polls.
fn is_stopped_poll(status: StatusCode) -> bool {
    status == StatusCode::SERVICE_UNAVAILABLE
}

/// Parses `METHOD ADDRESS`, one header per line up to an empty line, and the body; `None` if the input is no request.
fn request(data: &[u8]) -> Option<Request> {
    let mut rest = data;
    let mut line = || {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, after) = match end {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &[][..]),
        };
        rest = after;
        line
    };
    let first = line();
    let space = first.iter().position(|byte| *byte == b' ')?;
    let method = Method::from_bytes(&first[..space]).ok()?;
    let uri = Uri::try_from(&first[space + 1..]).ok()?;
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    request.extensions_mut().insert(ConnectInfo(peer));
    let headers = request.headers_mut();
    loop {
        let field = line();
        if field.is_empty() {
            break;
        }
        let mut parts = field.splitn(2, |byte| *byte == b':');
        let (name, value) = (parts.next()?, parts.next().unwrap_or_default());
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name),
            HeaderValue::from_bytes(value.trim_ascii()),
        ) {
            headers.append(name, value);
        }
    }
    headers
        .entry(HOST)
        .or_insert(HeaderValue::from_static("localhost"));
    *request.body_mut() = Body::from(rest.to_vec());
    Some(request)
}
