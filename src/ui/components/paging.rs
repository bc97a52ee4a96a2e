//! Pagination.

use leptos::prelude::*;

use crate::time;
use crate::ui::model;
use crate::ui::page_request::PageRequest;

/// Rows per page of a list that is loaded completely, such as that of all queues. Keeps pages below 60 kB.
pub const PAGE_ROWS: usize = 25;

/// The rows of `list` at the offset of the request, and links to the previous and the next page.
pub fn paged<'a, T>(request: &PageRequest, path: &str, list: &'a [T]) -> (&'a [T], AnyView) {
    let rest = list.get(request.offset()..).unwrap_or_default();
    let shown = rest.get(..PAGE_ROWS).unwrap_or(rest);
    let total = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let links = pages_of(
        request,
        path,
        request.offset(),
        shown.len(),
        total,
        PAGE_ROWS,
    );
    (shown, links)
}

/// Links to the previous and the next page.
pub fn pager(
    request: &PageRequest,
    path: &str,
    offset: usize,
    shown: usize,
    total: i64,
) -> AnyView {
    pages_of(request, path, offset, shown, total, model::PAGE_JOBS)
}

fn pages_of(
    request: &PageRequest,
    path: &str,
    offset: usize,
    shown: usize,
    total: i64,
    size: usize,
) -> AnyView {
    let address = |offset: usize| match offset {
        0 => path.to_owned(),
        _ if path.contains('?') => format!("{path}&offset={offset}"),
        _ => format!("{path}?offset={offset}"),
    };
    // If rows were removed, the last page can be empty. It still needs the link back.
    if offset == 0 && request.offset() == 0 && i64::try_from(shown).unwrap_or(i64::MAX) >= total {
        return ().into_any();
    }
    let range = if shown == 0 {
        "No entries on this page".to_owned()
    } else {
        format!(
            "{}–{} of {}",
            offset + 1,
            offset + shown,
            time::number(total)
        )
    };
    view! {
        <nav class="flex items-center gap-3 text-muted" aria-label="Pagination">
            {(offset > 0).then(|| view! { <a class="btn" rel="prev" href=address(offset.saturating_sub(size))>"Previous"</a> })}
            <span>{range}</span>
            {(shown == size)
                .then(|| view! { <a class="btn" rel="next" href=address(offset + size)>"Next"</a> })}
        </nav>
    }
    .into_any()
}
