//! Searches with a name, beside the box: they are there for everybody.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::super::parts::{deed, hidden, may};
use super::super::visit::{Visit, to};
use crate::api::act::{ForgetSearch, SaveSearch};
use crate::api::read;
use crate::api::views::{SavedRow, SearchesView};

/// The list of what the box suggests.
pub const SUGGESTED: &str = "suggested";

/// What stands beside the box: nothing, if it cannot be asked for.
pub fn beside(text: &str, visit: &Visit) -> AnyView {
    let (text, visit) = (text.to_owned(), visit.clone());
    Suspend::new(async move {
        let view = read::searches().await.unwrap_or_default();
        inner(&view, &text, &visit)
    })
    .into_any()
}

fn inner(view: &SearchesView, text: &str, visit: &Visit) -> AnyView {
    let suggested = view
        .suggested
        .iter()
        .map(|text| view! { <option value=text.clone()></option> });
    let saved = view.saved.iter().map(|saved| row(saved, visit));
    view! {
        <datalist id=SUGGESTED>{suggested.collect_view()}</datalist>
        {(!view.saved.is_empty())
            .then(|| {
                view! {
                    <nav class="saved" aria-label="Saved searches">
                        <ul>{saved.collect_view()}</ul>
                    </nav>
                }
            })}
        {(!text.trim().is_empty() && may(SaveSearch::PATH)).then(|| form(text, visit))}
    }
    .into_any()
}

fn row(saved: &SavedRow, visit: &Visit) -> AnyView {
    let fields = vec![("name", saved.name.clone()), ("back", visit.here())];
    let about = format!("Delete saved search {}", saved.name);
    view! {
        <li data-key=saved.name.clone()>
            <a class="name" href=to::search(&saved.text) title=format!("{} · saved by {}", saved.text, saved.who)>
                {saved.name.clone()}
            </a>
            {deed(ForgetSearch::PATH, fields, "×", about)}
        </li>
    }
    .into_any()
}

fn form(text: &str, visit: &Visit) -> AnyView {
    view! {
        <details class="more">
            <summary>"Save this search for everyone"</summary>
            <form method="post" action=SaveSearch::PATH class="row wrap">
                {hidden(vec![("text", text.to_owned()), ("back", visit.here())])}
                <label for="search-name">"Name"</label>
                <input id="search-name" name="name" type="text" required maxlength="80" autocomplete="off" />
                <button type="submit" class="button">"Save"</button>
            </form>
        </details>
    }
    .into_any()
}
