//! Leptos writes a marker between the nodes of a page, to find them in the browser. Only islands need it; in the rest of
//! a page, markers are a tenth of its size.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::engine::RESPONSE_BYTES_MAX;

const MARKER: &str = "<!>";

/// The ends of an island. Islands contain no others.
const ISLAND: &str = "<leptos-island";
const ISLAND_END: &str = "</leptos-island>";

/// Removes the markers of pages. Text cannot contain them, because `<` is escaped.
pub async fn remove(request: Request, next: Next) -> Response {
    let (mut parts, body) = next.run(request).await.into_parts();
    let media_type = parts.headers.get(header::CONTENT_TYPE);
    if !media_type.is_some_and(|its| its.as_bytes().starts_with(b"text/html")) {
        return Response::from_parts(parts, body);
    }
    let page = to_bytes(body, RESPONSE_BYTES_MAX).await.ok();
    let Some(page) = page.and_then(|page| String::from_utf8(page.into()).ok()) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(without_markers(&page)))
}

fn without_markers(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(start) = rest.find(ISLAND) {
        let (before, island) = rest.split_at(start);
        out.extend(before.split(MARKER));
        let end = island.find(ISLAND_END).unwrap_or(island.len());
        out.push_str(&island[..end]);
        rest = &island[end..];
    }
    out.extend(rest.split(MARKER));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_stay_in_islands_only() {
        let page = "a<!>b<leptos-island data-props=\"{}\">c<!>d</leptos-island><!>é<!><leptos-island>e<!></leptos-island>f<!>";
        let expected = "ab<leptos-island data-props=\"{}\">c<!>d</leptos-island>é<leptos-island>e<!></leptos-island>f";
        assert_eq!(without_markers(page), expected);
        assert_eq!(
            without_markers("<!><leptos-island>a<!>"),
            "<leptos-island>a<!>"
        );
        assert_eq!(without_markers(""), "");
    }
}
