//! With the cargo feature `otlp`: spans of OpenTelemetry's SDK.

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use opentelemetry::trace::{
    Link, Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt,
    TraceFlags, TraceId, TraceState, Tracer as _, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use tokio::task::spawn_blocking;
use tokio::task_local;

use super::TRACEPARENT;
use super::client::Client;
use crate::request::ErrorCode;

/// Maximum number of links of a span. The limit of OpenTelemetry's SDK is the same.
const LINKS_MAX: usize = 128;

/// Maximum length of the text of statements in a span, in bytes.
const SQL_BYTES_MAX: usize = 4 << 10;

/// How long the export of the last spans may take.
const STOP_MAX: Duration = Duration::from_secs(3);

/// Routes without spans, because they are requested all the time.
const SKIPPED: [&str; 2] = ["/health", "/metrics"];

/// The path of traces below an endpoint.
const TRACES_PATH: &str = "/v1/traces";

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

task_local! {
    /// The span of the request or the commit group of this task.
    static CURRENT: Arc<Current>;
}

/// A span in progress, for the spans below it.
#[derive(Debug)]
struct Current {
    context: SpanContext,
    /// Spans to link: commit groups, and spans that created claimed jobs.
    links: Mutex<Vec<SpanContext>>,
    /// The number of jobs that the request has claimed, and the trace of the last one.
    claimed: Mutex<(usize, Option<SpanContext>)>,
}

impl Current {
    fn new(context: SpanContext) -> Arc<Current> {
        Arc::new(Current {
            context,
            links: Mutex::default(),
            claimed: Mutex::default(),
        })
    }

    fn link(&self, to: SpanContext) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if links.len() < LINKS_MAX {
            links.push(to);
        }
    }
}

/// A context whose span is the parent of a new one.
fn below(parent: SpanContext) -> Context {
    Context::new().with_remote_span_context(parent)
}

/// The span of a request.
#[derive(Debug)]
pub struct RequestSpan {
    span: Span,
    current: Arc<Current>,
}

impl RequestSpan {
    /// Begins the span of a request, below that of its `traceparent`. `None` if the request is not traced.
    pub fn begin(
        request: &Request,
        method: &'static str,
        route: &str,
        id: &str,
    ) -> Option<RequestSpan> {
        let tracer = TRACER.get()?;
        if SKIPPED.iter().any(|skipped| route.starts_with(skipped)) {
            return None;
        }
        let parent = of_headers(request.headers()).map_or_else(Context::new, below);
        let builder = SpanBuilder::from_name(format!("{method} {route}"))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new("http.request.method", method),
                KeyValue::new("http.route", route.to_owned()),
                KeyValue::new("switchyard.request_id", id.to_owned()),
            ]);
        let span = tracer.build_with_context(builder, &parent);
        let current = Current::new(span.span_context().clone());
        span.is_recording().then_some(RequestSpan { span, current })
    }

    /// Ends the span. The response to a claim of one job gets the trace in which the job was created.
    pub fn end(mut self, response: &mut Response) {
        let links = std::mem::take(
            &mut *self
                .current
                .links
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for link in links {
            self.span.add_link(link, Vec::new());
        }
        let status = response.status();
        let code = i64::from(status.as_u16());
        let attribute = KeyValue::new("http.response.status_code", code);
        self.span.set_attribute(attribute);
        let error = response.extensions().get::<ErrorCode>();
        if let Some(error) = error {
            let attribute = KeyValue::new("error.type", error.code);
            self.span.set_attribute(attribute);
        }
        if status.is_server_error() {
            self.span.set_status(Status::error(""));
        }
        let claimed = self.current.claimed.lock();
        let claimed = claimed.unwrap_or_else(PoisonError::into_inner);
        if let (1, Some(trace)) = &*claimed
            && let Ok(value) = HeaderValue::from_str(&text(trace))
        {
            response.headers_mut().insert(TRACEPARENT, value);
        }
    }
}

/// Runs the request below its span.
pub async fn of_request<F: Future>(span: &Option<RequestSpan>, request: F) -> F::Output {
    match span {
        Some(span) => CURRENT.scope(Arc::clone(&span.current), request).await,
        None => request.await,
    }
}

/// The trace that a write belongs to, if any.
#[derive(Clone, Debug)]
pub struct Trace(Option<Arc<Current>>);

impl Trace {
    /// No trace.
    pub const NONE: Trace = Trace(None);

    /// That of this task.
    pub fn current() -> Trace {
        match TRACER.get() {
            Some(_) => Trace(CURRENT.try_with(Arc::clone).ok()),
            None => Trace(None),
        }
    }

    /// Whether the write belongs to a trace.
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// The trace and the span as a `traceparent`.
    pub fn traceparent(&self) -> Option<String> {
        self.0.as_deref().map(|current| text(&current.context))
    }
}

/// The span of a commit group, which ends when this is dropped.
#[derive(Debug)]
pub struct GroupSpan {
    span: Span,
    current: Arc<Current>,
}

impl GroupSpan {
    /// Begins the span of a group of these requests. A single traced request is its parent; several are linked, both
    /// ways. `None` if no request is traced.
    pub fn begin<'a>(requests: impl Iterator<Item = &'a Trace>) -> Option<GroupSpan> {
        let tracer = TRACER.get()?;
        let mut count = 0_i64;
        let traced = requests.inspect(|_| count += 1);
        let traced: Vec<_> = traced.filter_map(|trace| trace.0.clone()).collect();
        let (parent, links) = match traced.as_slice() {
            [] => return None,
            [one] => (below(one.context.clone()), Vec::new()),
            several => {
                let several = several.iter().take(LINKS_MAX);
                let links = several.map(|it| Link::with_context(it.context.clone()));
                (Context::new(), links.collect())
            }
        };
        let builder = SpanBuilder::from_name("commit group")
            .with_kind(SpanKind::Internal)
            .with_links(links)
            .with_attributes([KeyValue::new("switchyard.requests", count)]);
        let span = tracer.build_with_context(builder, &parent);
        let current = Current::new(span.span_context().clone());
        if traced.len() > 1 {
            let link = |request: &Arc<Current>| request.link(current.context.clone());
            traced.iter().for_each(link);
        }
        Some(GroupSpan { span, current })
    }

    /// Ends the span.
    pub fn end(mut self, is_ok: bool) {
        if !is_ok {
            self.span.set_status(Status::error(""));
        }
    }
}

/// Runs a commit group below its span.
pub async fn of_group<F: Future>(span: &Option<GroupSpan>, group: F) -> F::Output {
    match span {
        Some(span) => CURRENT.scope(Arc::clone(&span.current), group).await,
        None => group.await,
    }
}

/// Links the request of this task to the spans that created the jobs that it has claimed. `traceparents` has one text
/// per job, empty for a job without a trace.
pub fn claimed<I: IntoIterator<Item = String>>(traceparents: impl FnOnce() -> I) {
    if TRACER.get().is_none() {
        return;
    }
    let link = |current: &Arc<Current>| {
        let claimed = current.claimed.lock();
        let mut claimed = claimed.unwrap_or_else(PoisonError::into_inner);
        for traceparent in traceparents() {
            claimed.0 += 1;
            claimed.1 = parse(&traceparent);
            if let Some(trace) = claimed.1.clone() {
                current.link(trace);
            }
        }
    };
    CURRENT.try_with(link).ok();
}

/// The span of a statement, or of several that are sent together, if the task belongs to a trace.
#[derive(Debug)]
pub struct StatementSpan(Option<Span>);

impl StatementSpan {
    /// Begins the span.
    pub fn begin<I: IntoIterator<Item = &'static str>>(
        database: &'static str,
        statements: impl FnOnce() -> I,
    ) -> StatementSpan {
        StatementSpan(StatementSpan::of_task(database, statements))
    }

    fn of_task<I: IntoIterator<Item = &'static str>>(
        database: &'static str,
        statements: impl FnOnce() -> I,
    ) -> Option<Span> {
        let tracer = TRACER.get()?;
        let parent = CURRENT.try_with(|current| current.context.clone()).ok()?;
        let (mut sql, mut count) = (String::new(), 0_i64);
        for statement in statements() {
            count += 1;
            if sql.len() < SQL_BYTES_MAX {
                sql.push_str(if sql.is_empty() { "" } else { ";\n" });
                sql.push_str(statement.trim());
            }
        }
        sql.truncate(sql.floor_char_boundary(SQL_BYTES_MAX));
        let name = sql.split_whitespace().next().unwrap_or("statement");
        let builder = SpanBuilder::from_name(name.to_owned()).with_kind(SpanKind::Client);
        let mut attributes = vec![
            KeyValue::new("db.system.name", database),
            KeyValue::new("db.query.text", sql),
        ];
        if count > 1 {
            attributes.push(KeyValue::new("db.operation.batch.size", count));
        }
        let builder = builder.with_attributes(attributes);
        Some(tracer.build_with_context(builder, &below(parent)))
    }

    /// Ends the span.
    pub fn end(mut self, is_ok: bool) {
        if let (Some(span), false) = (&mut self.0, is_ok) {
            span.set_status(Status::error(""));
        }
    }
}

/// What exports the spans.
#[derive(Debug)]
pub struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Exports the spans of this process to an endpoint, such as `http://127.0.0.1:4318`.
    ///
    /// # Errors
    /// If the address is not valid, or a trace export has already been started.
    pub fn start(endpoint: &str) -> Result<Exporter, String> {
        let why = |why: String| format!("--otlp-endpoint: {why}");
        let endpoint = endpoint.trim_end_matches('/');
        let address = match endpoint.ends_with(TRACES_PATH) {
            true => endpoint.to_owned(),
            false => format!("{endpoint}{TRACES_PATH}"),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new(&address).map_err(why)?)
            .with_endpoint(address)
            .build()
            .map_err(|error| why(error.to_string()))?;
        let mut resource = Resource::builder();
        // `OTEL_SERVICE_NAME` takes precedence. `OTEL_RESOURCE_ATTRIBUTES` only adds attributes.
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(env!("CARGO_PKG_NAME"));
        }
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.with_attribute(version).build())
            .build();
        let tracer = provider.tracer(env!("CARGO_PKG_NAME"));
        match TRACER.set(tracer) {
            Ok(()) => Ok(Exporter(provider)),
            Err(_) => Err(why("already started".to_owned())),
        }
    }

    /// Exports the last spans, for up to 3 s.
    pub async fn stop(self) {
        let stopping = spawn_blocking(move || self.0.shutdown_with_timeout(STOP_MAX));
        if let Ok(Err(error)) = stopping.await {
            tracing::warn!(%error, "failed to export the last traces");
        }
    }
}

/// A span context as a `traceparent`.
fn text(context: &SpanContext) -> String {
    let sampled = u8::from(context.is_sampled());
    format!(
        "00-{}-{}-{sampled:02x}",
        context.trace_id(),
        context.span_id()
    )
}

/// The span of the client that the headers name.
fn of_headers(headers: &HeaderMap) -> Option<SpanContext> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => parse(value.to_str().ok()?.trim()),
        _ => None,
    }
}

/// Reads a `traceparent` (W3C Trace Context, section 3.2). Later versions may append fields.
fn parse(text: &str) -> Option<SpanContext> {
    let is_hex = |part: &str| {
        part.bytes()
            .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
    };
    let mut parts = text.split('-');
    let mut part = |length: usize| {
        let part = parts.next()?;
        (part.len() == length && is_hex(part)).then_some(part)
    };
    let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
    if version == "ff" || version == "00" && parts.next().is_some() {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let trace = TraceId::from_hex(trace).ok()?;
    let span = SpanId::from_hex(span).ok()?;
    let context = SpanContext::new(trace, span, flags, true, TraceState::NONE);
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_as_the_recommendation_says() {
        const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(text(&parse(GOOD).unwrap()), GOOD);
        let later = format!("01{}-more", GOOD.trim_start_matches("00"));
        assert_eq!(text(&parse(&later).unwrap()), GOOD);
        for wrong in [
            "",
            "00",
            &format!("{GOOD}-more"),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.to_uppercase(),
            &GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            &GOOD.replace("b7ad6b7169203331", "b7ad6b716920333"),
        ] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(of_headers(&headers).is_some());
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(of_headers(&headers).is_none(), "it is sent twice");
    }
}
