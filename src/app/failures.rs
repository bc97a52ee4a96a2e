//! `/ui/failures`: failed jobs by group.

use leptos::prelude::*;
use leptos_meta::Title;

use super::parts::{loaded, many};
use super::tables;
use super::visit::visit;
use crate::api::read;

#[component]
pub fn FailuresPage() -> impl IntoView {
    let visit = visit();
    loaded(read::failures(), move |groups| {
        let failed = groups.iter().map(|group| group.count).sum();
        let count = i64::try_from(groups.len()).unwrap_or(i64::MAX);
        view! {
            <Title text="Failures" />
            <h1>"Failures"</h1>
            {if groups.is_empty() {
                view! {
                    <div class="card">
                        <p class="empty">
                            "No failed jobs. When a worker fails a job, it appears here under its group, to be retried."
                        </p>
                    </div>
                }
                    .into_any()
            } else {
                view! {
                    <p class="lead">
                        {format!("{} in {}", many(failed, "failed job", "failed jobs"), many(count, "group", "groups"))}
                    </p>
                    <div class="card">{tables::groups(&groups, &visit, true)}</div>
                }
                    .into_any()
            }}
        }
        .into_any()
    })
}
