//! Shares one rendering of a page between all tabs that refresh it after the same event.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use bytes::Bytes;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::request::{BasePath, ClientAddress, Https, network_of};
use crate::ui::cookies;
use crate::ui::display::Display;
use crate::ui::http::authentication::Principal;
use crate::ui::http::compression::HeldSlot;
use crate::ui::http::page_slots::RETRY_AFTER;
use crate::ui::http::recent_pages::{Delta, RecentPages};
use crate::ui::http::{Dashboard, REFRESH, is_page};
use crate::ui::pages::search::is_followed;
use crate::ui::urls;

/// How long a rendering is shared.
const FRESH: Duration = Duration::from_secs(1);

/// How long the results of a search that users follow are shared, even if the state changes: a search is expensive.
const FRESH_SEARCH: Duration = Duration::from_secs(5);

/// Maximum number of renderings that are shared at the same time; others are made for their request alone.
const RENDERINGS_MAX: usize = 64;

/// Bytes of a rendering that is shared after it was made. A larger one is shared only by requests that wait for it.
const SHARED_BYTES_MAX: usize = 512 << 10;

/// Maximum size of a page.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// Bytes of a delta that needs no slot. Larger deltas wait for one, like whole pages.
const SMALL_DELTA_MAX: usize = 32 << 10;

/// The header of a refresh with the ID of the rendering that the browser has; the response is a delta.
const BASE: &str = "x-switchyard-base";

/// The media type of a delta.
const DELTA: &str = "text/plain; charset=utf-8";

/// The policy of a document that loads and runs nothing.
const NOTHING_RUNS: &str = "default-src 'none'; sandbox";

/// Pages rendered within the last second (followed searches: 5 s), and the latest ones that were sent to browsers.
#[derive(Clone, Default)]
pub struct RenderedPages(Arc<Mutex<HashMap<String, Rendering>>>, RecentPages);

#[derive(Clone)]
struct Rendering {
    /// The state that it shows; `None` if it is shared while the state changes.
    seq: Option<u64>,
    made: Instant,
    page: Arc<OnceCell<Bytes>>,
}

impl RenderedPages {
    /// The page with this key for the state `seq`; for any recent state if that is `None`. `now` is the sequence number
    /// of the current state. Calls `make` to render the page, unless that rendering exists, and then also returns
    /// the slot of the response. `None` if the response of `make` is not a page.
    async fn page(
        &self,
        key: String,
        seq: Option<u64>,
        now: u64,
        make: impl Future<Output = Response>,
    ) -> Option<(Bytes, Option<HeldSlot>)> {
        let page = self.entry(&key, seq, now);
        let mut slot = None;
        let made = async {
            let (mut parts, body) = make.await.into_parts();
            slot = HeldSlot::take(&mut parts);
            // Other responses, such as downloads, can contain what a client has chosen, and never become a page.
            if !is_page(&parts.headers) {
                return Err(());
            }
            to_bytes(body, PAGE_BYTES_MAX).await.map_err(drop)
        };
        let made = page.get_or_try_init(|| made).await.ok().cloned()?;
        if made.len() > SHARED_BYTES_MAX {
            self.forget(&key, &page);
        }
        Some((made, slot))
    }

    /// Stops sharing a rendering with later requests.
    fn forget(&self, key: &str, page: &Arc<OnceCell<Bytes>>) {
        let mut pages = self.lock();
        if pages.get(key).is_some_and(|it| Arc::ptr_eq(&it.page, page)) {
            pages.remove(key);
        }
    }

    fn entry(&self, key: &str, seq: Option<u64>, now: u64) -> Arc<OnceCell<Bytes>> {
        let mut pages = self.lock();
        pages.retain(|_, rendering| match rendering.seq {
            Some(seq) => seq == now && rendering.made.elapsed() < FRESH,
            None => rendering.made.elapsed() < FRESH_SEARCH,
        });
        if pages.len() >= RENDERINGS_MAX && !pages.contains_key(key) {
            return Arc::default();
        }
        let fresh = || Rendering {
            seq,
            made: Instant::now(),
            page: Arc::default(),
        };
        Arc::clone(&pages.entry(key.to_owned()).or_insert_with(fresh).page)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Rendering>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shares refreshes. Other requests are not shared: their pages can contain a flash, and must show the result of an
/// action.
pub async fn share(State(dashboard): State<Dashboard>, request: Request, next: Next) -> Response {
    let is_refresh = request.method() == Method::GET && request.headers().contains_key(REFRESH);
    // Without one, it is a request for the sign-in page. They must not occupy the places of users' pages.
    let has_principal = request.extensions().get::<Principal>().is_some();
    if !is_refresh || !has_principal {
        return next.run(request).await;
    }
    let key = key(&request);
    // The layer outside adds a base path to whole pages only.
    let base = request
        .headers()
        .get(BASE)
        .filter(|_| BasePath::of(request.extensions()).is_none());
    let base = base.and_then(|base| base.to_str().ok()).map(str::to_owned);
    let now = dashboard.feed.seq();
    let seq = (!is_followed_search(request.uri())).then_some(now);
    let user = request.extensions().get::<Principal>().cloned();
    let from = ClientAddress::of(request.extensions());
    let made = next.run(request);
    let pages = &dashboard.rendered_pages;
    match pages.page(key.clone(), seq, now, made).await {
        Some((page, slot)) => {
            // The browser's code reads the page; nothing in it may run as a document.
            let headers = [
                (header::CACHE_CONTROL, "no-store"),
                (header::CONTENT_SECURITY_POLICY, NOTHING_RUNS),
            ];
            let delta = base.and_then(|base| pages.1.delta(&key, &page, &base));
            if let Some(Delta::Changes(changes)) = &delta
                && changes.len() <= SMALL_DELTA_MAX
            {
                let delta = [(header::CONTENT_TYPE, DELTA)];
                return (headers, delta, changes.clone()).into_response();
            }
            // A large response is copied and compressed for each request, even if another one has rendered the page.
            let slot = match slot {
                Some(slot) => slot,
                None => match dashboard.page_slots.take(user.as_ref(), from, false).await {
                    Ok(slot) => HeldSlot::from(slot),
                    Err(busy) => return busy,
                },
            };
            let delta = delta.and_then(|delta| delta.response(&page));
            let response = match delta {
                Some(delta) => (headers, [(header::CONTENT_TYPE, DELTA)], delta).into_response(),
                None => (headers, Html(page)).into_response(),
            };
            slot.keep_with(response)
        }
        // Most often it was the response of a client that has waited too long for a slot.
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            [(header::RETRY_AFTER, RETRY_AFTER)],
        )
            .into_response(),
    }
}

fn is_followed_search(uri: &Uri) -> bool {
    uri.path() == "/ui/jobs" && uri.query().is_some_and(is_followed)
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
    // Guests of other addresses must not wait until this one has a slot for the page.
    let guest = principal
        .is_none_or(|principal| !principal.has_credentials())
        .then(|| network_of(ClientAddress::of(request.extensions())));
    let https = Https::is_set(request.extensions());
    let base_path = BasePath::of(request.extensions()).map_or("", BasePath::as_str);
    // Whitespace separates the parts of the key; user names contain none.
    format!(
        "{} {}{base_path} {https} {display:?} {seen:?} {role} {method:?} {guest:?} {name}",
        request.uri(),
        text("host")
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::middleware;
    use tokio_util::sync::CancellationToken;
    use tower::ServiceExt;

    use super::*;
    use crate::assets::Assets;
    use crate::auth::Auth;
    use crate::engine::engine_without_tasks;

    const FOLLOWED: &str = "/ui/jobs?follow=1";

    #[tokio::test(start_paused = true)]
    async fn a_page_is_rendered_once_per_state_and_second() {
        let (pages, made) = (RenderedPages::default(), AtomicU32::new(0));
        let page = async |key: &str, seq: u64| {
            let make = async {
                let made = made.fetch_add(1, Ordering::Relaxed);
                Html(made.to_string()).into_response()
            };
            let shown = (key != FOLLOWED).then_some(seq);
            pages
                .page(key.to_owned(), shown, seq, make)
                .await
                .unwrap()
                .0
        };
        let (a, b) = tokio::join!(page("/ui", 1), page("/ui", 1));
        assert_eq!((&a[..], &b[..]), (&b"0"[..], &b"0"[..]));
        assert_eq!(&page("/ui/queues", 1).await[..], b"1", "another page");
        assert_eq!(&page("/ui", 2).await[..], b"2", "another state");
        tokio::time::advance(FRESH).await;
        assert_eq!(&page("/ui", 2).await[..], b"3", "another second");
        assert_eq!(pages.0.lock().unwrap().len(), 1, "old pages are removed");
        assert_eq!(&page(FOLLOWED, 2).await[..], b"4");
        tokio::time::advance(FRESH).await;
        assert_eq!(&page(FOLLOWED, 3).await[..], b"4", "another state");
        tokio::time::advance(FRESH_SEARCH).await;
        assert_eq!(&page(FOLLOWED, 3).await[..], b"5");
        for n in 0..2 * RENDERINGS_MAX {
            page(&format!("/ui/jobs?q={n}"), 2).await;
        }
        assert_eq!(pages.0.lock().unwrap().len(), RENDERINGS_MAX);
    }

    #[tokio::test]
    async fn a_large_rendering_is_shared_only_by_requests_that_wait_for_it() {
        let (pages, made) = (RenderedPages::default(), AtomicU32::new(0));
        let page = async |bytes: usize| {
            let make = async {
                made.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Html("x".repeat(bytes)).into_response()
            };
            let page = pages.page("/ui".to_owned(), Some(1), 1, make).await;
            page.unwrap().0.len()
        };
        for (bytes, expected) in [(SHARED_BYTES_MAX + 1, 2), (SHARED_BYTES_MAX, 3)] {
            assert_eq!(tokio::join!(page(bytes), page(bytes)), (bytes, bytes));
            page(bytes).await;
            assert_eq!(made.load(Ordering::Relaxed), expected, "{bytes} bytes");
        }
    }

    async fn dashboard() -> Dashboard {
        let engine = engine_without_tasks().await;
        let stop = CancellationToken::new();
        let (auth, clients) = (Auth::default(), Arc::default());
        Dashboard::new(engine, Assets::load(), &auth, None, false, clients, stop)
    }

    fn user() -> Principal {
        let (name, role) = ("ada".to_owned(), crate::auth::Role::Viewer);
        Principal {
            identity: crate::auth::Identity { name, role },
            method: crate::auth::AuthMethod::Key,
        }
    }

    #[tokio::test]
    async fn a_refresh_that_got_no_page_says_when_to_try_again() {
        let share = middleware::from_fn_with_state(dashboard().await, share);
        let routes = Router::new().fallback(async || "not a page").layer(share);
        let request = Request::get("/ui").header(REFRESH, "1").extension(user());
        let request = request.body(Body::empty()).unwrap();
        let response = routes.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "5");
    }

    #[tokio::test]
    async fn a_refresh_needs_a_slot_unless_it_is_a_small_delta() {
        let dashboard = dashboard().await;
        let rows = Arc::new(AtomicU32::new(0));
        let page = {
            let rows = Arc::clone(&rows);
            async move || {
                Html(
                    (0..rows.load(Ordering::Relaxed))
                        .map(row)
                        .collect::<String>(),
                )
            }
        };
        let share = middleware::from_fn_with_state(dashboard.clone(), share);
        let routes = Router::new().fallback(page).layer(share);
        let refresh = async |base: Option<&str>| {
            let request = Request::get("/ui").header(REFRESH, "1").extension(user());
            let request = match base {
                Some(base) => request.header(BASE, base),
                None => request,
            };
            let request = request.body(Body::empty()).unwrap();
            let response = routes.clone().oneshot(request).await.unwrap();
            let status = response.status();
            let text = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            (status, String::from_utf8(text.to_vec()).unwrap())
        };
        let show = |count: u32| {
            rows.store(count, Ordering::Relaxed);
            dashboard.rendered_pages.0.lock().unwrap().clear();
        };
        show(10_000);
        let (status, delta) = refresh(Some("unknown")).await;
        assert_eq!(status, StatusCode::OK);
        let (known, _) = delta.split_once('\n').unwrap();
        let mut slots = Vec::new();
        for _ in 0..8 {
            let user = user();
            slots.push(dashboard.page_slots.take(Some(&user), None, false).await);
        }
        assert!(slots.iter().all(Result::is_ok));
        tokio::time::pause();
        show(10_001);
        assert_eq!(refresh(Some(known)).await.0, StatusCode::OK);
        for base in [None, Some("unknown")] {
            assert_eq!(refresh(base).await.0, StatusCode::SERVICE_UNAVAILABLE);
        }
        show(20_000);
        let large = refresh(Some(known)).await.0;
        assert_eq!(large, StatusCode::SERVICE_UNAVAILABLE);
        drop(slots);
        assert_eq!(refresh(Some(known)).await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn requests_without_a_user_are_not_shared() {
        let dashboard = dashboard().await;
        let share = middleware::from_fn_with_state(dashboard.clone(), share);
        let routes = Router::new()
            .fallback(async || Html("sign in"))
            .layer(share);
        for (user, shared) in [(None, 0), (Some(user()), 1)] {
            let mut request = Request::get("/ui/login").header(REFRESH, "1");
            if let Some(user) = user {
                request = request.extension(user);
            }
            let request = request.body(Body::empty()).unwrap();
            let response = routes.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(dashboard.rendered_pages.0.lock().unwrap().len(), shared);
        }
    }

    fn row(n: u32) -> String {
        format!("<p>{n}</p>")
    }
}
