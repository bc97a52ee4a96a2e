//! The body of a job as a file. Whoever published it may have written anything into it, so a browser must not
//! show it, nor guess what it is.

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Dashboard;
use crate::api::turn;
use crate::api::views::Place;

/// `GET /ui/lmstfy/{namespace}/{name}/job/{id}/body`
pub async fn body(
    State(dashboard): State<Dashboard>,
    Path((namespace, name, id)): Path<(String, String, String)>,
) -> Response {
    let place = Place::lmstfy(unmarked(&namespace), unmarked(&name));
    let id = unmarked(&id);
    let bytes = match turn::body(&dashboard.engine, &place, id).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return (StatusCode::NOT_FOUND, "Job not found.\n").into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to read a job body");
            return (
                StatusCode::SERVICE_UNAVAILABLE,
                "The database is unavailable. Try again in a moment.\n",
            )
                .into_response();
        }
    };
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        ),
        (header::CONTENT_DISPOSITION, disposition(id)),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; sandbox"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, bytes).into_response()
}

/// A file named after the job, as far as the id is fit for a name.
fn disposition(id: &str) -> HeaderValue {
    let fit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = id.chars().filter(|c| fit(*c)).collect();
    HeaderValue::from_str(&format!("attachment; filename=\"{name}.bin\""))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

/// The router has undone the percent-encoding already, but not the mark before odd names (`visit::segment`).
fn unmarked(segment: &str) -> &str {
    segment.strip_prefix('~').unwrap_or(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_plain_name() {
        assert_eq!(
            disposition("01-a_B\"; x=\r\n../é"),
            "attachment; filename=\"01-a_Bx.bin\""
        );
    }
}
