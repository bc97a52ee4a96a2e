//! HTTP clients for the command line, for webhooks, and for the export of traces.
//!
//! ```ignore
//! let client = Client::new(&Settings { server: "http://127.0.0.1:3000".to_owned(), ..Settings::default() })?;
//! let queues: Value = client.get(["queues"]).send().await?.json()?;
//! ```

mod error;
mod request;
mod response;
mod stream;
mod tls;
mod webhook;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
pub use hyper::Method;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};

pub use error::Error;
pub use request::Request;
pub use response::Response;
pub use stream::{Event, Events, Lines};
pub use tls::{Connector, connector};
pub use webhook::{WEBHOOK_TIMEOUT, Webhooks};

/// How long an unused connection is kept. Servers close idle connections after 60 s.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Where the server is, and how the client authenticates.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `http://` or `https://`, host, port, and optionally a path that each request's path is appended to. Without a
    /// scheme it is http.
    pub server: String,
    /// The token, or with `user` that user's password or dashboard secret.
    pub token: Option<Token>,
    /// Authenticates with this name and the token by Basic authentication.
    pub user: Option<String>,
    /// The only trusted certificate authorities, in PEM format. By default those of the system.
    pub ca: Option<String>,
}

/// A token as it is sent. Its debug output does not show it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Trims the text, because HTTP trims headers.
    ///
    /// # Errors
    /// If it is empty or cannot be sent in a header.
    pub fn new(text: &str) -> Result<Token, &'static str> {
        let text = text.trim();
        if text.is_empty() {
            return Err("must not be empty");
        }
        match HeaderValue::from_str(text) {
            Ok(_) => Ok(Token(text.to_owned())),
            Err(_) => Err("must not contain control characters"),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A client of one server. Clones share its connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: legacy::Client<Connector, Full<Bytes>>,
    /// Scheme, host and port, and the path before that of each request, without a slash at the end.
    server: String,
    /// The value of `Authorization`.
    authorization: Option<HeaderValue>,
    /// The value of `X-Token`, which lmstfy uses.
    token: Option<HeaderValue>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.0.server).finish()
    }
}

impl Client {
    /// A client with these settings. It does not connect yet.
    ///
    /// # Errors
    /// If the server's address is not valid, the CA certificates cannot be read, or a user has no token.
    pub fn new(settings: &Settings) -> Result<Client, String> {
        let server = base(&settings.server)?;
        let ca = settings.ca.as_deref();
        let connector = connector(server.starts_with("https:"), ca);
        let connector = connector.map_err(|error| match ca {
            Some(_) => error,
            None => format!("{error}; set --ca FILE"),
        })?;
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .build(connector);
        let token = settings.token.as_ref();
        let authorization = match (&settings.user, token) {
            (None, token) => token.map(|Token(token)| format!("Bearer {token}")),
            (Some(user), Some(Token(token))) => Some(format!(
                "Basic {}",
                STANDARD.encode(format!("{user}:{token}"))
            )),
            (Some(user), None) => {
                return Err(format!(
                    "the user {user} needs a password; set --token or --token-file"
                ));
            }
        };
        Ok(Client(Arc::new(Inner {
            http,
            server,
            authorization: authorization.as_deref().map(secret).transpose()?,
            token: token.map(|Token(token)| secret(token)).transpose()?,
        })))
    }

    /// The server's address, as errors show it.
    pub fn server(&self) -> &str {
        &self.0.server
    }

    /// A request to the path of these segments, which are percent-encoded here.
    pub fn request<S: AsRef<str>>(
        &self,
        method: Method,
        segments: impl IntoIterator<Item = S>,
    ) -> Request {
        Request::new(self.clone(), method, segments)
    }

    /// A GET request.
    pub fn get<S: AsRef<str>>(&self, segments: impl IntoIterator<Item = S>) -> Request {
        self.request(Method::GET, segments)
    }

    /// A POST request.
    pub fn post<S: AsRef<str>>(&self, segments: impl IntoIterator<Item = S>) -> Request {
        self.request(Method::POST, segments)
    }
}

/// A header that logs do not show.
fn secret(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| "the token or the user has characters that a header cannot have".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// The address without a slash at the end.
fn base(server: &str) -> Result<String, String> {
    let server = server.trim();
    let full = match server.contains("://") {
        true => server.to_owned(),
        false => format!("http://{server}"),
    };
    let wrong = |why: &str| format!("--server: {why}; expected http://HOST:PORT or https://HOST");
    let uri: Uri = full
        .parse()
        .map_err(|_| wrong(&format!("\"{server}\" is not a URL")))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(wrong(&format!("\"{server}\" is not an HTTP URL")));
    }
    if uri.authority().is_none_or(|it| it.as_str().contains('@')) {
        return Err(wrong("must not contain a user"));
    }
    if uri.query().is_some() || full.contains('#') {
        return Err(wrong(&format!("\"{server}\" has a query or a fragment")));
    }
    Ok(full.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_scheme_and_no_slash_at_the_end() {
        for (given, expected) in [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
            (
                " https://queues.example.com/ ",
                "https://queues.example.com",
            ),
            (
                "https://example.com/switchyard/",
                "https://example.com/switchyard",
            ),
            ("localhost:3000", "http://localhost:3000"),
            ("[::1]:3000", "http://[::1]:3000"),
        ] {
            assert_eq!(base(given).as_deref(), Ok(expected), "{given}");
        }
    }

    #[test]
    fn wrong_addresses_are_refused_without_showing_secrets() {
        for given in [
            "",
            "ftp://a",
            "http://",
            "http://u:secret@a",
            "http://a/?b=c",
            "http://a/#b",
            "a b",
        ] {
            let why = base(given).unwrap_err();
            assert!(why.contains("expected http://HOST:PORT"), "{given}: {why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn tokens_are_trimmed_and_hidden() {
        let token = Token::new(" abc\n").unwrap();
        assert_eq!(token.0, "abc");
        assert!(!format!("{token:?}").contains("abc"));
        assert!(Token::new(" \n").is_err());
        assert!(Token::new("a\nb").is_err());
    }

    #[test]
    fn a_user_needs_a_token() {
        let settings = Settings {
            server: "http://a".to_owned(),
            user: Some("ada".to_owned()),
            ..Settings::default()
        };
        assert!(Client::new(&settings).is_err());
    }
}
