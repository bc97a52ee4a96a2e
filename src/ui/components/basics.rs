//! Parts that most pages share.

use std::future::Future;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::commands::copy;
use crate::ui::components::error;
use crate::ui::components::forms::hot;
use crate::ui::components::links::{queue_link, visible};
use crate::ui::components::state::badge;
use crate::ui::error::PageError;
use crate::ui::model::queue_ref::QueueRef;

/// A page that asks the server first: what `show` makes of the answer, or what went wrong.
pub fn loaded<T: Send + 'static>(
    ask: impl Future<Output = Result<T, PageError>> + Send + 'static,
    show: impl FnOnce(T) -> AnyView + Send + 'static,
) -> AnyView {
    Suspend::new(async move {
        match ask.await {
            Ok(found) => show(found),
            Err(trouble) => error::trouble(&trouble),
        }
    })
    .into_any()
}

/// What stands above everything on the page of a job that is found by its queue: the way there, how it stands, what
/// can be done with it, and its id. `below` is the list of the queue in which it is, if that is no other's.
pub fn job_head(
    queue_ref: &QueueRef,
    id: &str,
    below: Option<AnyView>,
    stands: AnyView,
    actions: AnyView,
) -> AnyView {
    let separator = || view! { <span aria-hidden="true">" › "</span> };
    let shown = visible(id);
    let is_itself = shown == id;
    view! {
        <Title text=format!("Job {id}") />
        <p class="crumb">
            <a href="/ui/queues">"Queues"</a> {separator()} {queue_link(queue_ref)}
            {below.map(|below| view! { {separator()} {below} })}
        </p>
        <div class="head-row">
            <div class="row">
                <h1><span class="name">"Job"</span> {stands}</h1>
                {badge(queue_ref.protocol)}
            </div>
            <div class="row">{actions}</div>
        </div>
        <p class="lead row">
            <code id="jid" class="id">{shown}</code>
            {is_itself.then(|| hot("y", copy("jid".to_owned(), "Copy ID".to_owned())))}
        </p>
    }
    .into_any()
}

/// Facts, each with its name.
pub fn definitions<V: IntoView + 'static>(
    facts: impl IntoIterator<Item = (&'static str, V)>,
) -> AnyView {
    let rows = facts
        .into_iter()
        .map(|(name, value)| view! { <div><dt>{name}</dt> <dd>{value}</dd></div> });
    view! { <dl class="facts">{rows.collect_view()}</dl> }.into_any()
}

/// An id for an element that belongs to `name`, the same at every rendering of the page.
pub fn element_id(prefix: &str, name: &str) -> String {
    let mut id = prefix.to_owned();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() {
            id.push(byte.into());
        } else {
            id.push_str(&format!("_{byte:x}"));
        }
    }
    id
}

/// What a number counts: `1 job`, `2 jobs`.
pub fn many(n: i64, one: &str, more: &str) -> String {
    format!("{} {}", time::number(n), if n == 1 { one } else { more })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::components::paging::paged;
    use crate::ui::page_request::PageRequest;

    #[test]
    fn different_names_have_different_ids() {
        assert_eq!(element_id("x-", "a/b"), "x-a_2fb");
        assert_ne!(element_id("", "a/b"), element_id("", "a_2fb"));
    }

    #[test]
    fn a_page_has_40_rows() {
        for (rows, on_first, on_second) in [(39, 39, 0), (40, 40, 0), (41, 40, 1)] {
            let list = vec![(); rows];
            let shown = |query: &str| {
                let query = query.to_owned();
                let request = PageRequest {
                    query,
                    ..PageRequest::default()
                };
                paged(&request, "/ui/workers", &list).0.len()
            };
            assert_eq!((shown(""), shown("offset=40")), (on_first, on_second));
        }
    }
}
