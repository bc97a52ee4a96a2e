//! Pagination.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::basics::number_of;
use crate::ui::model::PAGE_ROWS;
use crate::ui::model::paging::Neighbors;
use crate::ui::page_request::PageRequest;

/// The rows of `list` at the offset of the request, and links to the previous and the next page.
pub fn paged<'a, T>(request: &PageRequest, path: &str, list: &'a [T]) -> (&'a [T], AnyView) {
    let (shown, total) = (shown(request, list), number_of(list.len()));
    (shown, pager(request, path, shown.len(), total))
}

/// The entries of a list that the page shows.
pub fn shown<'a, T>(request: &PageRequest, list: &'a [T]) -> &'a [T] {
    let rest = list.get(request.offset()..).unwrap_or_default();
    rest.get(..PAGE_ROWS).unwrap_or(rest)
}

/// Links to the first, the previous and the next page of a list by key.
pub fn key_pager(path: &str, neighbors: &Neighbors, shown: usize, total: i64) -> AnyView {
    let (is_first, is_last) = (neighbors.previous.is_none(), neighbors.next.is_none());
    if is_first && is_last {
        return ().into_any();
    }
    let address = |name: &str, position: &str| {
        let mark = if path.contains('?') { '&' } else { '?' };
        format!("{path}{mark}{name}={position}")
    };
    let n = number_of(shown);
    let of = time::number(total);
    // The server does not count the rows before a page. It knows the numbers of the rows at both ends of the list.
    let range = match (shown, is_first, is_last) {
        (0, ..) => "No entries on this page".to_owned(),
        (_, true, _) => format!("1–{} of {of}", time::number(n)),
        (_, _, true) if n < total => format!("{}–{of} of {of}", time::number(total - n + 1)),
        _ => format!("{} of {of}", time::number(n)),
    };
    let previous = neighbors.previous.as_deref();
    let previous = previous.map(|position| {
        view! {
            <a class="btn" rel="first" href=path.to_owned()>"First"</a>
            <a class="btn" rel="prev" href=address("before", position)>"Previous"</a>
        }
    });
    let next = neighbors.next.as_deref();
    let next = next.map(
        |position| view! { <a class="btn" rel="next" href=address("after", position)>"Next"</a> },
    );
    view! {
        <nav class="flex items-center gap-3 text-muted" aria-label="Pagination">{previous} <span>{range}</span> {next}</nav>
    }
    .into_any()
}

/// Links to the previous and the next page of a list by offset.
pub fn pager(request: &PageRequest, path: &str, shown: usize, total: i64) -> AnyView {
    let offset = request.offset();
    let address = |offset: usize| match offset {
        0 => path.to_owned(),
        _ if path.contains('?') => format!("{path}&offset={offset}"),
        _ => format!("{path}?offset={offset}"),
    };
    let end = number_of(offset.saturating_add(shown));
    // If rows were removed, the last page can be empty. It still needs the link back.
    if offset == 0 && end >= total {
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
            {(offset > 0).then(|| view! { <a class="btn" rel="prev" href=address(offset.saturating_sub(PAGE_ROWS))>"Previous"</a> })}
            <span>{range}</span>
            {(shown > 0 && end < total)
                .then(|| view! { <a class="btn" rel="next" href=address(offset + PAGE_ROWS)>"Next"</a> })}
        </nav>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_20_rows() {
        for (rows, on_first, on_second) in [(19, 19, 0), (20, 20, 0), (21, 20, 1)] {
            let list = vec![(); rows];
            let shown = |query: &str| {
                let query = query.to_owned();
                let request = PageRequest {
                    query,
                    ..PageRequest::default()
                };
                paged(&request, "/ui/workers", &list).0.len()
            };
            assert_eq!((shown(""), shown("offset=20")), (on_first, on_second));
        }
    }
}
