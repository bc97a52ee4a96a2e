//! Serves the descriptions of the APIs at `/openapi/{api}.json`. `tests/http/openapi.rs` compares them with the routes.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use futures::stream;

use crate::openapi;
use crate::request::BasePath;

/// The server in each description.
const ROOT: &str = r#""servers": [{"url": "/"}]"#;

/// The routes of the descriptions. They are the same for everyone, so they need no credentials.
pub fn router() -> Router {
    Router::new().route("/openapi/{file}", get(description))
}

async fn description(Path(file): Path<String>, base_path: Option<Extension<BasePath>>) -> Response {
    let Some(text) = file.strip_suffix(".json").and_then(openapi::of) else {
        return (
            StatusCode::NOT_FOUND,
            "not found; the descriptions are qless.json, lmstfy.json, relay.json, jobq.json and admin.json\n",
        )
            .into_response();
    };
    let (before, after) = text.split_once(ROOT).unwrap_or((text, ""));
    let server = match base_path {
        Some(Extension(base)) => Bytes::from(format!(r#""servers": [{{"url": "{base}"}}]"#)),
        None => Bytes::from_static(ROOT.as_bytes()),
    };
    // A stream of these parts, because a copy of the text would occupy memory for each client that reads slowly.
    let parts = [before.into(), server, after.into()];
    let length = parts.iter().map(Bytes::len).sum::<usize>();
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
    ];
    let body = Body::from_stream(stream::iter(parts.map(Ok::<_, Infallible>)));
    (headers, body).into_response()
}
