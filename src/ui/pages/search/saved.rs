//! Saved searches, which all users share, beside the search field.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::ui::actions::searches::{DeleteSearch, SaveSearch};
use crate::ui::components::forms::{action_button, hidden, may_post};
use crate::ui::page_request::PageRequest;
use crate::ui::pages::search::load;
use crate::ui::pages::search::model::{SavedRow, SearchesView};
use crate::ui::urls;

/// The ID of the list of suggestions.
pub const SUGGESTED: &str = "suggested";

/// The saved searches; empty if they cannot be loaded.
pub fn saved_searches(text: &str, request: &PageRequest) -> AnyView {
    let (text, request) = (text.to_owned(), request.clone());
    Suspend::new(async move {
        let view = load::searches().await.unwrap_or_default();
        inner(&view, &text, &request)
    })
    .into_any()
}

fn inner(view: &SearchesView, text: &str, request: &PageRequest) -> AnyView {
    let suggested = view
        .suggested
        .iter()
        .map(|text| view! { <option value=text.clone()></option> });
    let saved = view.saved.iter().map(|saved| row(saved, request));
    view! {
        <datalist id=SUGGESTED>{suggested.collect_view()}</datalist>
        {(!view.saved.is_empty())
            .then(|| {
                view! {
                    <nav class="[&_ul]:flex [&_ul]:flex-wrap [&_ul]:gap-x-4 [&_ul]:gap-y-1 [&_li]:flex [&_li]:min-w-0 [&_li]:items-center [&_li]:gap-1" aria-label="Saved searches">
                        <ul>{saved.collect_view()}</ul>
                    </nav>
                }
            })}
        {(!text.trim().is_empty() && may_post(SaveSearch::PATH)).then(|| form(text, request))}
    }
    .into_any()
}

fn row(saved: &SavedRow, request: &PageRequest) -> AnyView {
    let fields = vec![("name", saved.name.clone()), ("back", request.here())];
    let about = format!("Delete saved search {}", saved.name);
    view! {
        <li data-key=saved.name.clone()>
            <a class="name" href=urls::search(&saved.text) title=format!("{} · saved by {}", saved.text, saved.who)>
                {saved.name.clone()}
            </a>
            {action_button(DeleteSearch::PATH, fields, "×", about)}
        </li>
    }
    .into_any()
}

fn form(text: &str, request: &PageRequest) -> AnyView {
    view! {
        <details>
            <summary>"Save this search for everyone"</summary>
            <form method="post" action=SaveSearch::PATH class="flex flex-wrap items-center gap-2">
                {hidden(vec![("text", text.to_owned()), ("back", request.here())])}
                <label for="search-name">"Name"</label>
                <input id="search-name" name="name" type="text" required maxlength="80" autocomplete="off" />
                <button type="submit" class="btn">"Save"</button>
            </form>
        </details>
    }
    .into_any()
}
