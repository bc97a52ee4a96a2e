//! Serves the descriptions of the APIs at `/openapi/{api}.json`. `tests/http/openapi.rs` compares them with the routes.

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::openapi;

/// The routes of the descriptions. They are the same for everyone, so they need no credentials.
pub fn router() -> Router {
    Router::new().route("/openapi/{file}", get(description))
}

async fn description(Path(file): Path<String>) -> Response {
    match file.strip_suffix(".json").and_then(openapi::of) {
        Some(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        None => (
            StatusCode::NOT_FOUND,
            "not found; the descriptions are qless.json, lmstfy.json, relay.json, jobq.json and admin.json\n",
        )
            .into_response(),
    }
}
