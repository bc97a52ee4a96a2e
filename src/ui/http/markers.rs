//! Leptos writes a marker between the nodes of a page, to find them in the browser. Only islands need it; in the rest
//! of a page, markers are a tenth of its size.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use memchr::memchr_iter;
use memchr::memmem::find;

use crate::engine::RESPONSE_BYTES_MAX;
use crate::ui::http::is_page;

/// Between two nodes, and for a node without content.
const MARKERS: [&[u8]; 2] = [b"<!>", b"<!--<() />-->"];

/// The start tag and the end tag of an island. Islands are not nested.
const ISLAND: &[u8] = b"<leptos-island";
const ISLAND_END: &[u8] = b"</leptos-island>";

/// Removes the markers of pages. Text cannot contain them, because `<` is escaped.
pub async fn remove(request: Request, next: Next) -> Response {
    let (mut parts, body) = next.run(request).await.into_parts();
    if !is_page(&parts.headers) {
        return Response::from_parts(parts, body);
    }
    let Ok(page) = to_bytes(body, RESPONSE_BYTES_MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(without_markers(&page)))
}

fn without_markers(page: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(page.len());
    let mut rest = page;
    while let Some(start) = find(rest, ISLAND) {
        let (before, island) = rest.split_at(start);
        copy(before, &mut out);
        let end = find(island, ISLAND_END).unwrap_or(island.len());
        let (island, after) = island.split_at(end);
        out.extend_from_slice(island);
        rest = after;
    }
    copy(rest, &mut out);
    out
}

/// Appends this part of a page without its markers. Looks for `!`, because little else contains it.
fn copy(part: &[u8], out: &mut Vec<u8>) {
    let mut copied = 0;
    for at in memchr_iter(b'!', part) {
        let start = at.saturating_sub(1);
        let rest = part.get(start..).unwrap_or_default();
        if let Some(marker) = MARKERS.iter().find(|marker| rest.starts_with(marker)) {
            out.extend_from_slice(part.get(copied..start).unwrap_or_default());
            copied = start.saturating_add(marker.len());
        }
    }
    out.extend_from_slice(part.get(copied..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_becomes(page: &str, expected: &str) {
        assert_eq!(without_markers(page.as_bytes()), expected.as_bytes());
    }

    #[test]
    fn markers_stay_in_islands_only() {
        assert_becomes(
            "a<!>b<leptos-island a=\"\">c<!>d</leptos-island><!>é<!><leptos-island>e<!></leptos-island>f<!>",
            "ab<leptos-island a=\"\">c<!>d</leptos-island>é<leptos-island>e<!></leptos-island>f",
        );
        assert_becomes("<!><leptos-island>a<!>", "<leptos-island>a<!>");
        assert_becomes(
            "a<!--<() />--><b><!----><!DOCTYPE>",
            "a<b><!----><!DOCTYPE>",
        );
        assert_becomes("!<!!><!>>!<<!>", "!<!!>>!<");
        assert_becomes("", "");
    }
}
