//! Counts requests by route and status, and errors by code.
//!
//! A request costs one lookup in a table without locks, a few atomic additions, and no allocation. Routes are patterns,
//! so neither IDs nor tokens become labels, and their number is that of the server's routes.

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::Response;

use crate::metrics::table::Table;
use crate::metrics::{Buckets, Counter, Histogram};
use crate::request::ErrorCode;

/// Routes and methods with counts of their own. The server has about 250; the rest is for more pages.
const ROUTES_MAX: usize = 512;

/// Pairs of an API and an error code with counts of their own.
const ERRORS_MAX: usize = 256;

/// The route of requests to unknown paths.
const NO_ROUTE: &str = "none";
/// The label of routes, methods, statuses and errors without counts of their own.
const OTHER: &str = "other";

/// The statuses with counts of their own. All others are counted together.
const STATUSES: [u16; 28] = [
    200, 201, 202, 204, 206, 301, 302, 303, 304, 308, 400, 401, 403, 404, 405, 409, 411, 413, 415,
    416, 421, 422, 429, 431, 500, 503, 504, 507,
];

/// Upper bounds of the durations of requests, in microseconds.
const DURATION_US: [u64; 13] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000, 60_000_000,
];

/// Counts of requests and errors since the start.
#[derive(Debug)]
pub struct HttpCounts {
    routes: Table<Route, RouteCounts>,
    errors: Table<ErrorCode, Counter>,
}

/// A route: a method, and the pattern of a path.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    pub method: &'static str,
    pub path: String,
}

/// Counts of one route.
#[derive(Debug)]
pub struct RouteCounts {
    statuses: [Counter; STATUSES.len()],
    other_status: Counter,
    duration_us: Histogram<13>,
}

impl Default for RouteCounts {
    fn default() -> RouteCounts {
        RouteCounts {
            statuses: std::array::from_fn(|_| Counter::default()),
            other_status: Counter::default(),
            duration_us: Histogram::new(&DURATION_US),
        }
    }
}

impl RouteCounts {
    /// Statuses that were sent, each with its number.
    pub fn statuses(&self) -> impl Iterator<Item = (String, u64)> {
        let known = STATUSES.iter().map(u16::to_string).zip(&self.statuses);
        known
            .chain([(OTHER.to_owned(), &self.other_status)])
            .map(|(status, count)| (status, count.get()))
            .filter(|(_, count)| *count > 0)
    }

    /// Durations until the beginning of the response, in seconds.
    pub fn durations(&self) -> Buckets {
        self.duration_us.read(1e6)
    }
}

impl Default for HttpCounts {
    fn default() -> HttpCounts {
        let rest = Route {
            method: OTHER,
            path: OTHER.to_owned(),
        };
        HttpCounts {
            routes: Table::new(ROUTES_MAX, rest),
            errors: Table::new(
                ERRORS_MAX,
                ErrorCode {
                    api: OTHER,
                    code: OTHER,
                },
            ),
        }
    }
}

impl HttpCounts {
    /// The counts of a method and the pattern of a route.
    fn of(&self, (method, path): (&'static str, &str)) -> &(Route, RouteCounts) {
        self.routes.entry(
            &(method, path),
            |route| route.method == method && route.path == path,
            || Route {
                method,
                path: path.to_owned(),
            },
        )
    }

    /// Counts a response of this route.
    pub fn count(&self, counts: &RouteCounts, response: &Response, took: Duration) {
        let status = response.status().as_u16();
        let known = STATUSES.binary_search(&status).ok();
        let count = known.and_then(|known| counts.statuses.get(known));
        count.unwrap_or(&counts.other_status).increment();
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counts.duration_us.observe(us);
        if let Some(error) = response.extensions().get::<ErrorCode>() {
            let (_, count) = self.errors.entry(error, |it| it == error, || *error);
            count.increment();
        }
    }

    /// The routes that were requested, in order.
    pub fn routes(&self) -> Vec<&(Route, RouteCounts)> {
        let is_used = |counts: &RouteCounts| counts.statuses().next().is_some();
        let mut routes: Vec<_> = self.routes.entries().filter(|it| is_used(&it.1)).collect();
        routes.sort_unstable_by(|(a, _), (b, _)| (&a.path, a.method).cmp(&(&b.path, b.method)));
        routes
    }

    /// The errors that were sent, each with its number.
    pub fn errors(&self) -> Vec<(ErrorCode, u64)> {
        let all = self.errors.entries();
        let all = all.map(|(error, count)| (*error, count.get()));
        let mut errors: Vec<_> = all.filter(|(_, count)| *count > 0).collect();
        errors.sort_unstable();
        errors
    }
}

/// The name of a method with counts of its own.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => OTHER,
    }
}

/// A request in progress.
pub struct RequestInProgress {
    method: Method,
    path: Option<MatchedPath>,
    began: Instant,
}

impl RequestInProgress {
    pub fn begin(request: &Request) -> RequestInProgress {
        RequestInProgress {
            method: request.method().clone(),
            path: request.extensions().get().cloned(),
            began: Instant::now(),
        }
    }

    /// The method and the pattern of the route.
    pub fn labels(&self) -> (&'static str, &str) {
        let path = self.path.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
        (method_name(&self.method), path)
    }

    /// Counts the response, and logs it if `log` is set: the pattern of the route, never the path, which can contain
    /// IDs and tokens.
    pub fn end(self, all: &HttpCounts, response: &Response, id: &str, log: bool) {
        let took = self.began.elapsed();
        let (route, counts) = all.of(self.labels());
        all.count(counts, response, took);
        if log {
            let error = response.extensions().get::<ErrorCode>();
            let code = error.map(|error| error.code);
            tracing::info!(
                target: REQUESTS,
                id,
                method = route.method,
                route = route.path,
                status = response.status().as_u16(),
                code,
                duration_ms = took.as_micros() as f64 / 1_000.0,
                "request"
            );
        }
    }
}

/// The log target of lines about requests.
pub const REQUESTS: &str = "requests";

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn statuses_are_in_order_so_that_they_are_found() {
        assert!(STATUSES.is_sorted());
    }

    #[test]
    fn requests_are_counted_by_method_status_and_error() {
        let counts = HttpCounts::default();
        for (method, status, code) in [
            ("GET", 200, None),
            ("GET", 404, Some("no_such_job")),
            ("GET", 418, None),
            ("BREW", 200, None),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let of_route = counts.of((method_name(&method), NO_ROUTE));
            assert_eq!(of_route.0.path, NO_ROUTE);
            let mut response = StatusCode::from_u16(status).unwrap().into_response();
            if let Some(code) = code {
                let api = "relay";
                response.extensions_mut().insert(ErrorCode { api, code });
            }
            counts.count(&of_route.1, &response, Duration::from_millis(2));
        }
        let routes = counts.routes();
        let methods: Vec<_> = routes.iter().map(|(route, _)| route.method).collect();
        assert_eq!(methods, ["GET", OTHER]);
        let statuses: Vec<_> = routes[0].1.statuses().collect();
        let expected = [("200", 1), ("404", 1), (OTHER, 1)];
        assert_eq!(statuses, expected.map(|(status, n)| (status.to_owned(), n)));
        assert_eq!(routes[0].1.durations().counts[2], 3);
        let (api, code) = ("relay", "no_such_job");
        assert_eq!(counts.errors(), [(ErrorCode { api, code }, 1)]);
    }
}
