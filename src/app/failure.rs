//! `/ui/failures/{group}`: the failed jobs of one group.

use leptos::prelude::*;
use leptos_meta::Title;

use super::bulk;
use super::parts::{ago, api, commands, json, loaded, many, pager, quoted};
use super::tables::{self, JobList};
use super::visit::{Visit, segment, to, visit};
use crate::api::read;
use crate::api::views::GroupView;

#[component]
pub fn FailurePage() -> impl IntoView {
    let visit = visit();
    loaded(read::failure(visit.name(2), visit.offset()), move |view| {
        page(&view, &visit)
    })
}

fn page(view: &GroupView, visit: &Visit) -> AnyView {
    let group = &view.group;
    view! {
        <Title text=group.group.clone() />
        <p class="crumb"><a href="/ui/failures">"Failures"</a></p>
        <h1 class="name">{group.group.clone()}</h1>
        {if group.count == 0 { nothing().into_any() } else { some(view, visit) }}
    }
    .into_any()
}

fn nothing() -> impl IntoView {
    view! {
        <div class="card">
            <p class="empty">
                "No job of this group is failed: they have been retried, moved or cancelled, or there never was one."
            </p>
        </div>
    }
}

fn some(view: &GroupView, visit: &Visit) -> AnyView {
    let group = &view.group;
    let moment = |moment: Option<i64>| moment.map(|moment| ago(moment, visit.now));
    let body = format!(
        r#"{{"data": {{"group": {}, "count": {}}}}}"#,
        json(&group.group),
        group.count
    );
    let queue = view
        .jobs
        .first()
        .map(|job| segment(&job.place.name))
        .unwrap_or_default();
    view! {
        <div class="head-row">
            <p class="lead">
                {many(group.count, "failed job", "failed jobs")} " · first " {moment(group.first)} " · last "
                {moment(group.last)}
            </p>
            <div class="row">{tables::retry_all(group, visit)}</div>
        </div>
        {group
            .message
            .clone()
            .map(|message| {
                view! {
                    <section class="card padded" aria-labelledby="newest">
                        <h2 id="newest">"Newest message"</h2>
                        <pre class="message" tabindex="0">{message}</pre>
                    </section>
                }
            })}
        {bulk::of_group(&group.group, visit)}
        <div class="card">
            {tables::jobs("Failed jobs, newest first", JobList::Group, &view.jobs, visit)}
        </div>
        {pager(visit, &to::failure(&group.group), visit.offset(), view.jobs.len(), group.count)}
        <details class="more">
            <summary>"The same by curl"</summary>
            {commands(
                "curl",
                vec![
                    ("This list", format!("curl {}", quoted(&api(visit, &format!("/failed/{}", segment(&group.group)))))),
                    (
                        "Retry all, into one queue",
                        format!("curl {} -d {}", quoted(&api(visit, &format!("/unfail/{queue}"))), quoted(&body)),
                    ),
                ],
            )}
        </details>
    }
    .into_any()
}
