//! An HTTP client with an optional bearer token, shared by the clients of Relay and Jobq.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use tokio::time::timeout;

use super::Server;

/// A guard against a missing response; no test waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of one API.
#[derive(Clone, Debug)]
pub struct Bearer {
    http: reqwest::Client,
    /// `http://host:port/path`.
    root: String,
    token: Option<String>,
}

impl Bearer {
    pub fn new(server: &Server, path: &str) -> Bearer {
        Bearer {
            http: server.http.clone(),
            root: format!("http://{}{path}", server.address),
            token: None,
        }
    }

    /// The same client with this token.
    pub fn with_token(self, token: &str) -> Bearer {
        let token = Some(token.to_owned());
        Bearer { token, ..self }
    }

    /// A request to a path below the root. The caller completes and sends it.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.root));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }
}

/// Sends a request. Returns status, headers and text of the response; `None` if the connection fails.
pub async fn exchange(asked: &str, request: RequestBuilder) -> Option<(u16, HeaderMap, String)> {
    let exchange = async {
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok::<_, reqwest::Error>((status, headers, response.text().await?))
    };
    let answer = timeout(PATIENCE, exchange).await;
    let answer = answer.unwrap_or_else(|_| panic!("{asked} hangs"));
    answer.ok()
}
