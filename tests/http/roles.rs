//! Roles of the dashboard: authentication, permissions, and the audit log.

mod alerts;
mod audit;
mod changes;
mod chart_events;
mod manual;
mod mutes;
mod pages;
mod paths;
mod pauses;
mod refused;
mod servers;
mod sessions;
mod start;
mod table;
mod throttle;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;

use crate::support::Server;
use crate::support::keys::{ADMIN, ADMIN_KEY, ADMIN_TOKEN, OPERATOR_KEY, UI_KEYS, VIEWER_KEY};

/// The options of a server with an admin token, a key per role, and `more`.
fn with_keys<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ADMIN_TOKEN[..], &UI_KEYS, more].concat()
}

/// A browser that does not follow redirects.
#[derive(Clone)]
struct Browser {
    http: reqwest::Client,
    origin: String,
    /// The key that is sent with every request.
    key: Option<String>,
    cookie: Option<String>,
}

impl Browser {
    fn at(server: &Server) -> Browser {
        let client = reqwest::Client::builder().no_proxy();
        let client = client.redirect(reqwest::redirect::Policy::none());
        Browser {
            http: client.build().unwrap(),
            origin: format!("http://{}", server.address),
            key: None,
            cookie: None,
        }
    }

    /// The same browser with a key.
    fn with_key(&self, key: &str) -> Browser {
        Browser {
            key: Some(key.to_owned()),
            ..self.clone()
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.http.request(method, format!("{}{path}", self.origin));
        request = request.header("origin", &self.origin);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        request
    }

    /// Navigates to a page.
    async fn open(&self, path: &str) -> Response {
        let request = self.request(Method::GET, path);
        request.header("accept", "text/html").send().await.unwrap()
    }

    /// Navigates to a page, which must exist.
    async fn page(&self, path: &str) -> String {
        let response = self.open(path).await;
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.unwrap()
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Response {
        let request = self.request(Method::POST, path).form(form);
        request.header("accept", "text/html").send().await.unwrap()
    }

    /// Posts a form, which must redirect to a page.
    async fn act(&self, action: &str, form: &[(&str, &str)]) {
        let form = [form, &[("back", "/ui"), ("after", "/ui")]].concat();
        let done = self.post(&format!("/ui/fn/{action}"), &form).await;
        assert_eq!(done.status(), 303, "{action} {form:?}");
    }

    /// The browser after a sign-in, and the `Set-Cookie` header.
    async fn signed_in(&self, name: &str, secret: &str) -> (Browser, String) {
        let form = [("name", name), ("secret", secret), ("next", "/ui/queues")];
        let response = self.post("/ui/login", &form).await;
        assert_eq!(response.status(), 303, "{name}");
        assert_eq!(response.headers()["location"], "/ui/queues");
        let set = response.headers()["set-cookie"].to_str().unwrap();
        let cookie = set.split(';').next().unwrap().to_owned();
        let browser = Browser {
            cookie: Some(cookie),
            ..self.clone()
        };
        (browser, set.to_owned())
    }

    /// The newest audit entries, as an admin sees them.
    async fn audit(&self, query: &str) -> Vec<Value> {
        let admin = self.with_key(ADMIN);
        let response = admin.open(&format!("/ui/audit.json{query}")).await;
        assert_eq!(response.status(), 200, "{query}");
        let export: Value = response.json().await.unwrap();
        export["entries"].as_array().unwrap().clone()
    }
}

/// The actions of the forms of a page.
fn actions(page: &str) -> Vec<String> {
    let forms = page.split("<form").skip(1);
    let tags = forms.map(|rest| rest.split('>').next().unwrap());
    let posts = tags.filter(|tag| tag.contains("method=\"post\""));
    let actions = posts.map(|tag| {
        let action = tag.split("action=\"").nth(1).expect("an action");
        action.split('"').next().unwrap_or_default().to_owned()
    });
    actions.collect()
}
