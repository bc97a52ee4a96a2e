//! The body of an lmstfy job as a file. It can contain anything, so the headers keep browsers from displaying it or
//! guessing its type.

use axum::extract::{Extension, Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::ui::http::authentication::Principal;
use crate::ui::http::{Dashboard, unavailable};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::pages::lmstfy_job::load;

/// `GET /ui/lmstfy/{namespace}/{name}/job/{id}/body`
pub async fn body(
    State(dashboard): State<Dashboard>,
    Extension(user): Extension<Principal>,
    Path((namespace, name, id)): Path<(String, String, String)>,
) -> Response {
    let queue_ref = QueueRef::lmstfy(unescape(&namespace), unescape(&name));
    let id = unescape(&id);
    let bytes = match load::load_body(&dashboard.engine_for(user.method), &queue_ref, id).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return (StatusCode::NOT_FOUND, "Job not found.\n").into_response(),
        Err(error) => return unavailable(&error, "failed to read a job body"),
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

/// The file name: the safe characters of the ID.
fn disposition(id: &str) -> HeaderValue {
    let fit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = id.chars().filter(|c| fit(*c)).collect();
    HeaderValue::from_str(&format!("attachment; filename=\"{name}.bin\""))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

/// Removes the leading `~` (`urls::encoding::segment`). axum has already percent-decoded the segment.
fn unescape(segment: &str) -> &str {
    segment.strip_prefix('~').unwrap_or(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_has_safe_characters_only() {
        assert_eq!(
            disposition("01-a_B\"; x=\r\n../é"),
            "attachment; filename=\"01-a_Bx.bin\""
        );
    }
}
