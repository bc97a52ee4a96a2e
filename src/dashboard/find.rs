//! What the palette finds, as JSON for its script.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::Dashboard;
use crate::api::turn;

/// What somebody has typed.
#[derive(Deserialize)]
pub struct Wanted {
    #[serde(default)]
    q: String,
}

/// `GET /ui/find?q=…`
pub async fn find(State(dashboard): State<Dashboard>, Query(wanted): Query<Wanted>) -> Response {
    match turn::find(&dashboard.engine, &wanted.q).await {
        Ok(groups) => ([(header::CACHE_CONTROL, "no-store")], Json(groups)).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to read names for search");
            let why = "The database is unavailable. Try again in a moment.\n";
            (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
    }
}
