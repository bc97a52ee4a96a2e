//! A small chart for each of the busiest queues.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::basics::plural;
use crate::ui::components::chart::geometry::{HEIGHT, WIDTH, paths};
use crate::ui::components::links::quoted_if_blank;
use crate::ui::components::state::protocol_badge;
use crate::ui::components::styles::CARD_PADDED;
use crate::ui::model::series::StatisticsQuery;
use crate::ui::pages::statistics::model::{QueueActivity, RangeView};
use crate::ui::urls;

/// The charts, each with a link to the statistics of its queue.
pub fn small_charts(view: &RangeView, query: &StatisticsQuery) -> AnyView {
    if view.by_queue.is_empty() {
        return ().into_any();
    }
    let charts = view.by_queue.iter().map(|queue| small(queue, view, query));
    view! {
        <section class=CARD_PADDED aria-labelledby="by-queue">
            <h2 id="by-queue">"By queue"</h2>
            <ul class="grid grid-cols-4 gap-4 max-lg:grid-cols-3 max-sm:grid-cols-1">{charts.collect_view()}</ul>
            <p class="text-muted wrap-anywhere">
                "Completed and failed jobs of the 12 queues that have the most. Each chart has its own scale."
            </p>
        </section>
    }
    .into_any()
}

fn small(queue: &QueueActivity, view: &RangeView, query: &StatisticsQuery) -> AnyView {
    let queue_ref = &queue.queue_ref;
    let address = urls::statistics(&StatisticsQuery {
        queue: urls::queue_param(queue_ref),
        ..query.clone()
    });
    let [completed, failed]: [i64; 2] =
        [&queue.completed, &queue.failed].map(|values| values.iter().sum());
    let all = queue.completed.iter().chain(&queue.failed);
    let top = all.copied().max().unwrap_or_default().max(1) as f64;
    let line = |values: &[i64], class: &'static str| {
        let values: Vec<Option<f64>> = values.iter().map(|n| Some(*n as f64)).collect();
        let (done, last) = paths(&values, top, view.is_in_progress);
        view! { <g class=class><path class="line" d=done /><path class="line" d=last /></g> }
    };
    let about = format!(
        "{}: {} completed, {} failed",
        queue_ref.label(),
        plural(completed, "job", "jobs"),
        time::number(failed)
    );
    view! {
        <li class="min-w-0">
            <p class="wrap-anywhere">
                <a class="name" href=address>{quoted_if_blank(&queue_ref.label())}</a> " " {protocol_badge(queue_ref.protocol)}
            </p>
            <svg
                class="spark block h-10 w-full overflow-visible"
                role="img"
                aria-label=about.clone()
                viewBox=format!("0 0 {WIDTH} {HEIGHT}")
                preserveAspectRatio="none"
            >
                <title>{about.clone()}</title>
                {line(&queue.completed, "text-complete")}
                {(failed > 0).then(|| line(&queue.failed, "text-failed"))}
            </svg>
            <p class="text-sm text-muted">
                {format!("{} completed, {} failed", time::number(completed), time::number(failed))}
            </p>
        </li>
    }
    .into_any()
}
