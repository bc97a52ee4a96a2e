//! Shares one rendering of a page between all tabs that refresh it after the same event.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use bytes::Bytes;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::request::{BasePath, Https};
use crate::ui::cookies;
use crate::ui::display::Display;
use crate::ui::http::authentication::Principal;
use crate::ui::http::{Dashboard, REFRESH};
use crate::ui::urls;

/// How long a rendering is shared.
const FRESH: Duration = Duration::from_secs(1);

/// Maximum number of renderings that are shared at the same time; others are made for their request alone.
const RENDERINGS_MAX: usize = 64;

/// Maximum size of a page.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// The policy of a document that loads and runs nothing.
const NOTHING_RUNS: &str = "default-src 'none'; sandbox";

/// Pages rendered within the last second.
#[derive(Clone, Default)]
pub struct RenderedPages(Arc<Mutex<HashMap<String, Rendering>>>);

#[derive(Clone)]
struct Rendering {
    seq: u64,
    made: Instant,
    page: Arc<OnceCell<Bytes>>,
}

impl RenderedPages {
    /// The page with this key for the state `seq`. Calls `make` to render it, unless that rendering exists.
    async fn page(
        &self,
        key: String,
        seq: u64,
        make: impl Future<Output = Response>,
    ) -> Option<Bytes> {
        let page = self.entry(key, seq);
        let made = async {
            let (parts, body) = make.await.into_parts();
            let media_type = parts.headers.get(header::CONTENT_TYPE);
            // Other responses, such as downloads, can contain what a client has chosen, and never become a page.
            if !media_type.is_some_and(|its| its.as_bytes().starts_with(b"text/html")) {
                return Err(());
            }
            to_bytes(body, PAGE_BYTES_MAX).await.map_err(drop)
        };
        page.get_or_try_init(|| made).await.ok().cloned()
    }

    fn entry(&self, key: String, seq: u64) -> Arc<OnceCell<Bytes>> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|_, rendering| rendering.seq == seq && rendering.made.elapsed() < FRESH);
        if pages.len() >= RENDERINGS_MAX && !pages.contains_key(&key) {
            return Arc::default();
        }
        let fresh = || Rendering {
            seq,
            made: Instant::now(),
            page: Arc::default(),
        };
        Arc::clone(&pages.entry(key).or_insert_with(fresh).page)
    }
}

/// Shares refreshes. Other requests are not shared: their pages can contain a flash, and must show the result of an
/// action.
pub async fn share(State(dashboard): State<Dashboard>, request: Request, next: Next) -> Response {
    if request.method() != Method::GET || !request.headers().contains_key(REFRESH) {
        return next.run(request).await;
    }
    let key = key(&request);
    let made = next.run(request);
    match dashboard
        .rendered_pages
        .page(key, dashboard.feed.seq(), made)
        .await
    {
        Some(page) => {
            // The browser's code reads the page; nothing in it may run as a document.
            let headers = [
                (header::CACHE_CONTROL, "no-store"),
                (header::CONTENT_SECURITY_POLICY, NOTHING_RUNS),
            ];
            (headers, Html(page)).into_response()
        }
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// The key of a rendering: everything that determines a page except the state of the server.
fn key(request: &Request) -> String {
    let headers: &HeaderMap = request.headers();
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let display = Display::of(|name| cookies::get(text("cookie"), name));
    let seen = match request.uri().path() {
        urls::FAILURES => cookies::get_failures_seen(text("cookie")),
        _ => None,
    };
    let principal = request.extensions().get::<Principal>();
    let (role, name) = match principal {
        Some(principal) => (
            principal.identity.role.as_str(),
            principal.identity.name.as_str(),
        ),
        None => ("", ""),
    };
    let method = principal.map(|principal| principal.method);
    let https = Https::is_set(request.extensions());
    let base_path = BasePath::of(request.extensions()).map_or("", BasePath::as_str);
    // Whitespace separates the parts of the key; user names contain none.
    format!(
        "{} {}{base_path} {https} {display:?} {seen:?} {role} {method:?} {name}",
        request.uri(),
        text("host")
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_page_is_rendered_once_per_state_and_second() {
        let (pages, made) = (RenderedPages::default(), AtomicU32::new(0));
        let page = async |key: &str, seq: u64| {
            let make = async {
                let made = made.fetch_add(1, Ordering::Relaxed);
                Html(made.to_string()).into_response()
            };
            pages.page(key.to_owned(), seq, make).await.unwrap()
        };
        let (a, b) = tokio::join!(page("/ui", 1), page("/ui", 1));
        assert_eq!((&a[..], &b[..]), (&b"0"[..], &b"0"[..]));
        assert_eq!(&page("/ui/queues", 1).await[..], b"1", "another page");
        assert_eq!(&page("/ui", 2).await[..], b"2", "another state");
        tokio::time::advance(FRESH).await;
        assert_eq!(&page("/ui", 2).await[..], b"3", "another second");
        assert_eq!(pages.0.lock().unwrap().len(), 1, "old pages are removed");
        for n in 0..2 * RENDERINGS_MAX {
            page(&format!("/ui/jobs?q={n}"), 2).await;
        }
        assert_eq!(pages.0.lock().unwrap().len(), RENDERINGS_MAX);
    }
}
