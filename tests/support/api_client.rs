//! An HTTP client with an optional bearer token, shared by the clients of Relay and Jobq, and the responses of all APIs
//! as received.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use tokio::time::timeout;

use super::Server;

/// A guard against a missing response; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A response as received.
#[derive(Debug)]
pub struct Received {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// The request, for error messages.
    pub asked: String,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// Defines `Reply`: a response of an API, checked by its method `checked`.
macro_rules! reply {
    () => {
        /// A response that has been checked.
        #[derive(Debug)]
        pub struct Reply($crate::support::api_client::Received);

        impl std::ops::Deref for Reply {
            type Target = $crate::support::api_client::Received;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl From<$crate::support::api_client::Received> for Reply {
            fn from(received: $crate::support::api_client::Received) -> Reply {
                Reply(received).checked()
            }
        }
    };
}
pub(crate) use reply;

/// A client of one API, which checks each response when it turns it into an `R`.
pub struct ApiClient<R> {
    http: reqwest::Client,
    /// `http://host:port/path`.
    root: String,
    token: Option<String>,
    reply: PhantomData<fn() -> R>,
}

impl<R> Clone for ApiClient<R> {
    fn clone(&self) -> ApiClient<R> {
        ApiClient {
            http: self.http.clone(),
            root: self.root.clone(),
            token: self.token.clone(),
            reply: PhantomData,
        }
    }
}

impl<R> fmt::Debug for ApiClient<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a client of {}", self.root)
    }
}

impl<R: From<Received>> ApiClient<R> {
    pub fn new(server: &Server, path: &str) -> ApiClient<R> {
        ApiClient {
            http: server.http.clone(),
            root: format!("http://{}{path}", server.address),
            token: None,
            reply: PhantomData,
        }
    }

    /// The same client with this token.
    pub fn with_token(self, token: &str) -> ApiClient<R> {
        let token = Some(token.to_owned());
        ApiClient { token, ..self }
    }

    /// A request to a path below the root. The caller completes and sends it.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.root));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request; `None` if the connection fails.
    pub async fn attempt(&self, asked: &str, request: RequestBuilder) -> Option<R> {
        exchange(asked, request).await.ok().map(R::from)
    }

    /// Sends a request, and requires a response.
    pub async fn ask(&self, asked: &str, request: RequestBuilder) -> R {
        let received = exchange(asked, request).await;
        R::from(received.unwrap_or_else(|error| panic!("{asked}: {error}")))
    }

    /// Sends a request without a body.
    pub async fn send(&self, method: Method, path: &str) -> R {
        let asked = format!("{method} {path}");
        self.ask(&asked, self.request(method, path)).await
    }
}

/// Values of the header `Authorization` that do not contain this token as a bearer token.
pub fn wrong_authorizations(token: &str) -> Vec<String> {
    let mut wrong = ["", "Bearer", "Bearer ", "Bearer wrong", token, "Basic eDp5"]
        .map(str::to_owned)
        .to_vec();
    wrong.push(format!("Bearer {token}x"));
    wrong.push(format!("Bearer {}", token.split_at(1).1));
    wrong.push(format!("Token {token}"));
    wrong
}

/// Sends a request; an error if the connection fails.
pub async fn exchange(asked: &str, request: RequestBuilder) -> reqwest::Result<Received> {
    let exchange = async {
        let response = request.send().await?;
        Ok(Received {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await?,
            asked: asked.to_owned(),
        })
    };
    let received = timeout(WAIT_MAX, exchange).await;
    received.unwrap_or_else(|_| panic!("{asked} hangs"))
}
