//! Serves the descriptions of the APIs at `/openapi/{api}.json`. `tests/http/openapi.rs` compares them with the routes.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};

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
    let json = [(header::CONTENT_TYPE, "application/json")];
    match base_path {
        Some(Extension(base)) => {
            let server = format!(r#""servers": [{{"url": "{base}"}}]"#);
            (json, text.replacen(ROOT, &server, 1)).into_response()
        }
        None => (json, text).into_response(),
    }
}
