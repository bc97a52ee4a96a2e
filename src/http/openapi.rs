//! The descriptions of the APIs in OpenAPI 3.1, served at `/openapi/{api}.json`. `tests/http/openapi.rs` compares them
//! with the routes.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// The names of the files, and their content with the version of this program.
static FILES: LazyLock<[(&str, String); 5]> = LazyLock::new(|| {
    [
        ("qless.json", include_str!("openapi/qless.json")),
        ("lmstfy.json", include_str!("openapi/lmstfy.json")),
        ("relay.json", include_str!("openapi/relay.json")),
        ("jobq.json", include_str!("openapi/jobq.json")),
        ("admin.json", include_str!("openapi/admin.json")),
    ]
    .map(|(name, text)| {
        (
            name,
            text.replacen("{version}", env!("CARGO_PKG_VERSION"), 1),
        )
    })
});

/// The routes of the descriptions. They are the same for everyone, so they need no credentials.
pub fn router() -> Router {
    Router::new().route("/openapi/{file}", get(description))
}

async fn description(Path(file): Path<String>) -> Response {
    match FILES.iter().find(|(name, _)| *name == file) {
        Some((_, text)) => {
            ([(header::CONTENT_TYPE, "application/json")], text.as_str()).into_response()
        }
        None => (
            StatusCode::NOT_FOUND,
            "not found; the descriptions are qless.json, lmstfy.json, relay.json, jobq.json and admin.json\n",
        )
            .into_response(),
    }
}
