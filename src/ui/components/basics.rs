//! Components that most pages use.

use std::future::Future;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::commands::copy;
use crate::ui::components::error;
use crate::ui::components::forms::shortcut;
use crate::ui::components::links::{queue_link, quoted_if_blank};
use crate::ui::components::state::protocol_badge;
use crate::ui::components::styles::{CARD_PADDED, CRUMB, EMPTY, FACTS, SECTION_TITLE};
use crate::ui::error::PageError;
use crate::ui::model::queue_ref::QueueRef;

/// A page that loads data first: shows the result with `show`, or the error.
pub fn loaded<T: Send + 'static>(
    load: impl Future<Output = Result<T, PageError>> + Send + 'static,
    show: impl FnOnce(T) -> AnyView + Send + 'static,
) -> AnyView {
    Suspend::new(async move {
        match load.await {
            Ok(found) => show(found),
            Err(error) => error::error_view(&error),
        }
    })
    .into_any()
}

/// The text in place of a list or table that is empty.
pub fn empty_note(text: impl IntoAny) -> AnyView {
    let text = text.into_any();
    view! { <p class=EMPTY>{text}</p> }.into_any()
}

/// A card with a title.
pub fn card(id: &'static str, title: &'static str, content: AnyView) -> AnyView {
    view! {
        <section class=CARD_PADDED aria-labelledby=id>
            <h2 id=id>{title}</h2>
            {content}
        </section>
    }
    .into_any()
}

/// A card with a text, its size in bytes, and buttons for it.
pub fn text_card(
    id: &'static str,
    title: &'static str,
    size: usize,
    buttons: AnyView,
    shown: AnyView,
) -> AnyView {
    let bytes = number_of(size);
    view! {
        <section class=CARD_PADDED aria-labelledby=id>
            <div class=SECTION_TITLE>
                <h2 id=id>{title}</h2>
                <span class="flex flex-wrap items-center gap-2">
                    <span class="text-muted wrap-anywhere">{plural(bytes, "byte", "bytes")}</span>
                    {buttons}
                </span>
            </div>
            {shown}
        </section>
    }
    .into_any()
}

/// The head of a job's page: breadcrumb, state, actions and ID. `below` is a link to the list that contains the job.
pub fn job_head(
    queue_ref: &QueueRef,
    id: &str,
    below: Option<AnyView>,
    states: AnyView,
    actions: AnyView,
) -> AnyView {
    let separator = || view! { <span aria-hidden="true">" › "</span> };
    let shown = quoted_if_blank(id);
    let is_itself = shown == id;
    view! {
        <Title text=format!("Job {id}") />
        <p class=CRUMB>
            <a href="/ui/queues">"Queues"</a> {separator()} {queue_link(queue_ref)}
            {below.map(|below| view! { {separator()} {below} })}
        </p>
        <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
            <div class="flex flex-wrap items-center gap-2">
                <h1><span class="name">"Job"</span> {states}</h1>
                {protocol_badge(queue_ref.protocol)}
            </div>
            <div class="flex flex-wrap items-center gap-2">{actions}</div>
        </div>
        <p class="-mt-3 flex flex-wrap items-center gap-2 text-muted wrap-anywhere">
            <code id="jid" class="id">{shown}</code>
            {is_itself.then(|| shortcut("y", copy("jid".to_owned(), "Copy ID".to_owned())))}
        </p>
    }
    .into_any()
}

/// A list of facts.
pub fn definitions<V: IntoView + 'static>(
    facts: impl IntoIterator<Item = (&'static str, V)>,
) -> AnyView {
    let rows = facts
        .into_iter()
        .map(|(name, value)| view! { <div><dt>{name}</dt> <dd>{value}</dd></div> });
    view! { <dl class=FACTS>{rows.collect_view()}</dl> }.into_any()
}

/// A valid element ID made from `name`; the same in every rendering.
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

/// A length or a count, as the number that [`plural`] and [`time::number`] show.
pub fn number_of(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A number and its noun: `1 job`, `2 jobs`.
pub fn plural(n: i64, one: &str, more: &str) -> String {
    format!("{} {}", time::number(n), if n == 1 { one } else { more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_names_have_different_ids() {
        assert_eq!(element_id("x-", "a/b"), "x-a_2fb");
        assert_ne!(element_id("", "a/b"), element_id("", "a_2fb"));
    }
}
