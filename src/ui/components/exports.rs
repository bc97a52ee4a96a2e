//! Links below a list of jobs: to the search for the same jobs, and to files with all of them.

use leptos::prelude::*;

use crate::ui::urls;

/// Links to files with all jobs that match the search.
pub fn exports(search: &str) -> AnyView {
    let link = |extension, text| {
        let address = urls::export(search, extension)?;
        Some(view! { <a href=address download="">{text}</a> })
    };
    match (link("csv", "CSV"), link("jsonl", "JSON lines")) {
        (Some(csv), Some(jsonl)) => {
            view! { <p class="text-muted">"Export all: " {csv} " · " {jsonl}</p> }.into_any()
        }
        _ => ().into_any(),
    }
}

/// Links to the search, and to files with all jobs that match it.
pub fn search_and_exports(search: &str) -> AnyView {
    view! {
        <div class="flex flex-wrap gap-x-6 gap-y-1">
            <a href=urls::search(search)>"Search these jobs"</a>
            {exports(search)}
        </div>
    }
    .into_any()
}
