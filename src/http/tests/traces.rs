//! Traces of whole requests, received by a small collector.

use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message;
use tower::ServiceExt;

use super::*;
use crate::traces::{Exporter, SQLITE, TRACEPARENT};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT_SPAN: &str = "b7ad6b7169203331";

/// The spans that a collector has received.
type Spans = Arc<Mutex<Vec<Span>>>;

/// A collector on a port of its own. Returns its address.
async fn collector(spans: Spans) -> String {
    let receive = async move |body: Bytes| {
        let request = ExportTraceServiceRequest::decode(body).unwrap();
        for resource in request.resource_spans {
            let attributes = &resource.resource.as_ref().unwrap().attributes;
            let name = attributes.iter().find(|it| it.key == "service.name");
            let name = name.and_then(|it| it.value.as_ref()?.value.clone());
            assert_eq!(name, Some(Value::StringValue("switchyard".to_owned())));
            let scopes = resource.scope_spans.into_iter();
            let mut spans = spans.lock().unwrap();
            spans.extend(scopes.flat_map(|scope| scope.spans));
        }
        StatusCode::OK
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().nest("/v1/traces", Router::new().fallback(receive));
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text<'a>(span: &'a Span, key: &str) -> &'a str {
    let attribute = span.attributes.iter().find(|it| it.key == key);
    match attribute.and_then(|it| it.value.as_ref()?.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        _ => "",
    }
}

fn children<'a>(spans: &'a [Span], of: &Span) -> Vec<&'a Span> {
    let spans = spans.iter();
    spans.filter(|it| it.parent_span_id == of.span_id).collect()
}

/// A request with this `traceparent`, or without one if it is empty.
async fn send(
    routes: &Router,
    (method, path, body): (&str, &str, &str),
    traceparent: &str,
) -> Response {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json");
    if !traceparent.is_empty() {
        request = request.header(TRACEPARENT, traceparent);
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    routes.clone().oneshot(request).await.unwrap()
}

/// A put and a claim of one job in each protocol.
const JOBS: [[(&str, &str, &str); 2]; 4] = [
    [
        (
            "POST",
            "/add/mail",
            r#"{"host": "client-1", "data": {"id": "hidden-id", "meta": {"a": "hidden-data"}}}"#,
        ),
        ("GET", "/get/mail?host=worker-1", ""),
    ],
    [
        ("PUT", "/api/ns/mail?delay=0&ttl=0&tries=1", "hidden-data"),
        ("GET", "/api/ns/mail?ttr=30&timeout=1", ""),
    ],
    [
        (
            "POST",
            "/v2/queues/jobs",
            r#"[{"queue": "mail", "id": "hidden-id", "timeout": 60, "payload": "hidden-data"}]"#,
        ),
        ("GET", "/v2/queues/mail/jobs", ""),
    ],
    [
        (
            "POST",
            "/api/v0/job/create",
            r#"{"payload": "hidden-data", "state": ["new"]}"#,
        ),
        (
            "POST",
            "/api/v0/job/poll",
            r#"{"query": [["IS", "json_extract(state, '$[0]')", "new"]], "state": ["taken"]}"#,
        ),
    ],
];

/// One test, because a process exports to one collector.
#[tokio::test(flavor = "multi_thread")]
async fn requests_commit_groups_and_statements_are_exported() {
    let spans = Spans::default();
    let exporter = Exporter::start(&collector(Arc::clone(&spans)).await).unwrap();
    let settings = Settings {
        no_auth: true,
        ..Settings::default()
    };
    let options = EngineSettings {
        database: "sqlite::memory:".to_owned(),
        ..EngineSettings::default()
    };
    let engine = Engine::open(&options).await.unwrap();
    let routes = router(&engine, &settings, &CancellationToken::new());
    let sampled = format!("00-{TRACE}-{CLIENT_SPAN}-01");
    let mut traceparents = Vec::new();
    for [put, claim] in JOBS {
        let put = send(&routes, put, &sampled).await;
        assert!(put.status().is_success(), "{put:?}");
        assert!(!put.headers().contains_key(TRACEPARENT));
        let claim = send(&routes, claim, "").await;
        assert_eq!(claim.status(), StatusCode::OK, "{claim:?}");
        let trace = claim.headers().get(TRACEPARENT);
        traceparents.push(trace.expect("a trace").to_str().unwrap().to_owned());
    }
    // The client decided not to record this trace.
    let skipped = "00-11111111111111111111111111111111-2222222222222222-00";
    for [put, claim] in JOBS {
        send(&routes, put, skipped).await;
        let claim = send(&routes, claim, skipped).await;
        assert!(!claim.headers().contains_key(TRACEPARENT));
    }
    send(&routes, ("GET", "/health", ""), "").await;
    send(&routes, ("GET", "/hidden-path", ""), "").await;
    exporter.stop().await;
    engine.close().await;

    let spans = std::mem::take(&mut *spans.lock().unwrap());
    let requests = spans.iter().filter(|it| it.kind() == SpanKind::Server);
    let names: Vec<_> = requests.map(|it| it.name.as_str()).collect();
    let [jobs @ .., unknown] = names.as_slice() else {
        panic!("no request")
    };
    assert_eq!((jobs, *unknown), (&NAMES[..], "GET none"));
    for (names, traceparent) in NAMES.chunks(2).zip(&traceparents) {
        assert_traced(&spans, names, traceparent);
    }
    let everything = format!("{spans:?}");
    assert!(!everything.contains("hidden"), "{everything}");
}

/// The spans of [`JOBS`].
const NAMES: [&str; 8] = [
    "POST /add/{queue}",
    "GET /get/{queue}",
    "PUT /api/{namespace}/{queue}",
    "GET /api/{namespace}/{queue}",
    "POST /v2/queues/jobs",
    "GET /v2/queues/{queue}/jobs",
    "POST /api/v0/job/create",
    "POST /api/v0/job/poll",
];

/// The put continues the trace of its client. The claim has a trace of its own, with a link to the put, and its
/// response has the put's. Both have a commit group with its statements.
fn assert_traced(spans: &[Span], names: &[&str], traceparent: &str) {
    let find = |name: &str| spans.iter().find(|it| it.name == name).unwrap();
    let (put, claim) = (find(names[0]), find(names[1]));
    assert_eq!(hex(&put.trace_id), TRACE);
    assert_eq!(hex(&put.parent_span_id), CLIENT_SPAN);
    assert_eq!(traceparent, format!("00-{TRACE}-{}-01", hex(&put.span_id)));
    let is_linked = claim.links.iter().any(|it| it.span_id == put.span_id);
    assert!(is_linked, "{claim:?}");
    assert_ne!(claim.trace_id, put.trace_id);
    for request in [put, claim] {
        assert_eq!(text(request, "switchyard.request_id").len(), 32);
        let groups = children(spans, request);
        let group = groups.iter().find(|it| it.name == "commit group");
        let statements = children(spans, group.expect("a group"));
        let commits = statements.iter().any(|it| it.name == "COMMIT");
        assert!(commits, "{request:?}");
        for statement in statements {
            assert_eq!(text(statement, "db.system.name"), SQLITE);
            assert_eq!(statement.trace_id, request.trace_id);
        }
    }
}
