//! Tables of the workers of a queue and of the queues of a worker, with the results of the last hour.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::basics::plural;
use crate::ui::components::histogram::{self, Histogram};
use crate::ui::components::links::{queue_link_with_protocol, worker_link};
use crate::ui::components::state::count_cell;
use crate::ui::components::styles::{CARD, CARD_PADDED, CARD_TITLE};
use crate::ui::components::tables;
use crate::ui::components::time::ago;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::state::EffectiveState;
use crate::ui::model::worker::{ActivityList, ActivityRow, RunResults};

const MINUTE_US: i64 = 60_000_000;

/// The workers of a queue.
pub fn workers(workers: &ActivityList<String>, now: i64) -> AnyView {
    let rows = workers.listed.iter().map(|row| {
        let cells = cells(row, workers.since, now);
        view! { <tr data-key=row.of.clone()><th scope="row">{worker_link(&row.of)}</th> {cells}</tr> }
    });
    let (rows, head) = (rows.collect_view().into_any(), ("Worker", "Last seen"));
    section("queue-workers", "Workers", head, rows, workers, now)
}

/// The queues of a worker.
pub fn queues(queues: &ActivityList<QueueRef>, now: i64) -> AnyView {
    let rows = queues.listed.iter().map(|row| {
        let cells = cells(row, queues.since, now);
        view! { <tr data-key=row.of.label()><th scope="row">{queue_link_with_protocol(&row.of)}</th> {cells}</tr> }
    });
    let (rows, head) = (rows.collect_view().into_any(), ("Queue", "Last claim"));
    section("worker-queues", "Queues", head, rows, queues, now)
}

/// The period of the results, in a sentence.
fn period<T>(list: &ActivityList<T>, now: i64) -> String {
    let others = if list.is_partial {
        " Other servers count their own."
    } else {
        ""
    };
    let minutes = ((now - list.since) / MINUTE_US).max(1);
    let period = match minutes {
        1 => "minute".to_owned(),
        _ => format!("{} minutes", time::number(minutes)),
    };
    format!("Results on this server in the last {period}.{others}")
}

fn section<T>(
    id: &'static str,
    title: &'static str,
    (name, seen): (&'static str, &'static str),
    rows: AnyView,
    list: &ActivityList<T>,
    now: i64,
) -> AnyView {
    if list.listed.is_empty() {
        return ().into_any();
    }
    let columns = [
        (name, ""),
        (seen, "num"),
        ("Running", "num"),
        ("Stalled", "num mid"),
        ("Completed", "num"),
        ("Per minute", "num mid"),
        ("Failed", "num"),
        ("Retried", "num mid"),
        ("Expired or timed out", "num mid"),
        ("Run p50", "num mid"),
        ("Run p95", "num mid"),
    ];
    view! {
        <section class=CARD aria-labelledby=id>
            <div class=CARD_TITLE>
                <h2 id=id>{title}</h2>
                <span class="text-muted wrap-anywhere">{period(list, now)}</span>
            </div>
            {tables::table(&format!("Results by {}", name.to_lowercase()), tables::head(&columns), rows)}
            {(list.more > 0).then(|| view! { <p class="px-4 py-2 text-muted">{format!("… and {} more", time::number(list.more))}</p> })}
        </section>
    }
    .into_any()
}

fn cells<T>(row: &ActivityRow<T>, since: i64, now: i64) -> AnyView {
    let results = &row.results;
    let seen = match row.last_seen {
        Some(at) => ago(at, now),
        None => "–".into_any(),
    };
    let failed = |n: i64, class: &'static str| count_cell(n, EffectiveState::Failed, class);
    view! {
        <td class="num">{seen}</td>
        {count_cell(row.running, EffectiveState::Running, "")}
        {count_cell(row.stalled, EffectiveState::Stalled, "mid")}
        {count_cell(results.completed, EffectiveState::Complete, "")}
        <td class="num mid">{per_minute(results.completed, since, now)}</td>
        {failed(results.failed, "")}
        {count_cell(results.retried, EffectiveState::Waiting, "mid")}
        {count_cell(results.lost, EffectiveState::Stalled, "mid")}
        <td class="num mid">{duration(results.run_p50)}</td>
        <td class="num mid">{duration(results.run_p95)}</td>
    }
    .into_any()
}

/// The average number per minute since then; over at least a minute.
fn per_minute(n: i64, since: i64, now: i64) -> String {
    let span = now.saturating_sub(since).max(MINUTE_US);
    let rate = n as f64 / (span as f64 / MINUTE_US as f64);
    match n {
        0 => "0".to_owned(),
        _ if rate < 0.05 => "< 0.1".to_owned(),
        _ if rate < 99.95 => format!("{rate:.1}"),
        _ => time::number(n / (span / MINUTE_US)),
    }
}

fn duration(seconds: Option<f64>) -> String {
    seconds.map_or("–".to_owned(), time::seconds)
}

/// The histogram of a worker's run times, if there are any.
pub fn run_times(bars: &[i64], results: &RunResults) -> Option<AnyView> {
    if bars.is_empty() {
        return None;
    }
    let chart = Histogram {
        id: "run",
        title: "Jobs by run time",
        class: "text-running",
        buckets: bars,
    };
    let quantiles = [results.run_p50, results.run_p95].map(duration);
    let view = view! {
        <section class=CARD_PADDED aria-labelledby="run-times">
            <h2 id="run-times">"Run times"</h2>
            <p class="text-muted wrap-anywhere">"The last completed jobs in each queue, at most 100 per queue."</p>
            {histogram::run_times(&chart, quantiles)}
        </section>
    };
    Some(view.into_any())
}

/// The results of a worker in all its queues, in a sentence.
pub fn summary(results: &RunResults) -> String {
    let parts = [
        (results.failed, "failed"),
        (results.retried, "returned for another attempt"),
        (results.lost, "expired or timed out"),
    ];
    let mut text = format!("{} completed", plural(results.completed, "job", "jobs"));
    for (n, word) in parts {
        text.push_str(&format!(", {} {word}", time::number(n)));
    }
    if let (Some(p50), Some(p95), Some(longest)) =
        (results.run_p50, results.run_p95, results.run_longest)
    {
        text.push_str(&format!(
            ". Run times of the last completed jobs: p50 {}, p95 {}, longest {}",
            time::seconds(p50),
            time::seconds(p95),
            time::seconds(longest)
        ));
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_averages_over_at_least_a_minute() {
        let minutes = |n: i64| n * 60_000_000;
        assert_eq!(per_minute(0, 0, minutes(60)), "0");
        assert_eq!(per_minute(1, 0, minutes(60)), "< 0.1");
        assert_eq!(per_minute(90, 0, minutes(60)), "1.5");
        assert_eq!(per_minute(12, 0, 1), "12.0");
        assert_eq!(per_minute(120_000, 0, minutes(60)), "2,000");
    }

    #[test]
    fn a_summary_names_results_and_run_times() {
        let mut results = RunResults {
            completed: 1_204,
            failed: 3,
            lost: 1,
            ..RunResults::default()
        };
        assert_eq!(
            summary(&results),
            "1,204 jobs completed, 3 failed, 0 returned for another attempt, 1 expired or timed out."
        );
        results.run_p50 = Some(0.25);
        results.run_p95 = Some(2.0);
        results.run_longest = Some(61.0);
        assert!(summary(&results).ends_with(
            "1 expired or timed out. Run times of the last completed jobs: p50 250 ms, p95 2.0 s, longest 1 m 1 s."
        ));
    }
}
