//! Without the cargo feature `otlp`.

use std::future::Future;

use axum::extract::Request;
use axum::response::Response;

/// The span of a request. There is none.
#[derive(Clone, Copy, Debug)]
pub struct RequestSpan;

impl RequestSpan {
    /// No span.
    #[inline]
    pub fn begin(_: &Request, _: &'static str, _: &str, _: &str) -> Option<RequestSpan> {
        None
    }

    /// Nothing.
    #[inline]
    pub fn end(self, _: &mut Response) {}
}

/// Runs the request.
#[inline]
pub fn of_request<F: Future>(_: &Option<RequestSpan>, request: F) -> F {
    request
}

/// The trace that a write belongs to. There is none.
#[derive(Clone, Debug)]
pub struct Trace;

impl Trace {
    /// No trace.
    pub const NONE: Trace = Trace;

    /// No trace.
    #[inline]
    pub fn current() -> Trace {
        Trace
    }

    /// False.
    #[inline]
    pub fn is_some(&self) -> bool {
        false
    }

    /// No trace.
    #[inline]
    pub fn traceparent(&self) -> Option<String> {
        None
    }
}

/// The span of a commit group. There is none.
#[derive(Debug)]
pub struct GroupSpan;

impl GroupSpan {
    /// No span.
    #[inline]
    pub fn begin<'a>(_: impl Iterator<Item = &'a Trace>) -> Option<GroupSpan> {
        None
    }

    /// Nothing.
    #[inline]
    pub fn end(self, _: bool) {}
}

/// Runs the commit group.
#[inline]
pub fn of_group<F: Future>(_: &Option<GroupSpan>, group: F) -> F {
    group
}

/// Nothing.
#[inline]
pub fn claimed<I: IntoIterator<Item = String>>(_: impl FnOnce() -> I) {}

/// The span of a statement. There is none.
#[derive(Debug)]
pub struct StatementSpan;

impl StatementSpan {
    /// No span.
    #[inline]
    pub fn begin<I: IntoIterator<Item = &'static str>>(
        _: &'static str,
        _: impl FnOnce() -> I,
    ) -> StatementSpan {
        StatementSpan
    }

    /// Nothing.
    #[inline]
    pub fn end(self, _: bool) {}
}

/// What exports the spans. There is nothing.
#[derive(Debug)]
pub struct Exporter;

impl Exporter {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn start(_: &str) -> Result<Exporter, String> {
        Err("--otlp-endpoint: this program was built without the cargo feature otlp".to_owned())
    }

    /// Nothing.
    pub async fn stop(self) {}
}
