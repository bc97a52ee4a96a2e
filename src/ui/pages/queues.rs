//! `/ui/queues`: all queues. The address contains the sort order and the filter.

mod groups;
pub mod load;

use std::cmp::Reverse;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::ui::components::basics::{loaded, number_of, plural};
use crate::ui::components::paging::{self, paged};
use crate::ui::components::pause;
use crate::ui::components::styles::{CARD, EMPTY};
use crate::ui::components::tables::{self, Sparklines};
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::overview::problems::has_problem;
use crate::ui::pages::queues::load::queues;
use crate::ui::pages::records::new_queue;
use crate::ui::pages::statistics::load::sparklines;
use crate::ui::urls;

/// The order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Queues with problems first: stalled, paused with jobs, long waits, failures; then those with unfinished jobs.
    Need,
    Name,
    /// Most jobs in this state first.
    Count(EffectiveState),
    /// Longest wait first.
    Wait,
}

impl Sort {
    fn parse(text: &str) -> Sort {
        match text {
            "name" => Sort::Name,
            "wait" => Sort::Wait,
            other => EffectiveState::parse(other).map_or(Sort::Need, Sort::Count),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Sort::Need => "need",
            Sort::Name => "name",
            Sort::Wait => "wait",
            Sort::Count(state) => state.as_str(),
        }
    }
}

/// The value of the parameter `state` for queues with problems.
const PROBLEM: &str = "problem";

/// The filter of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFilter {
    /// A part of the name, ignoring case.
    name: String,
    /// The same in lower case.
    lower_name: String,
    /// Only queues with problems.
    problems: bool,
}

impl QueueFilter {
    /// The filter with these parameters.
    pub fn parse(name: String, state: &str) -> QueueFilter {
        QueueFilter {
            lower_name: name.to_lowercase(),
            name,
            problems: state == PROBLEM,
        }
    }

    /// The parameters of the address.
    fn fields(&self) -> [(&'static str, &str); 2] {
        let problems = if self.problems { PROBLEM } else { "" };
        [("q", self.name.as_str()), ("state", problems)]
    }

    /// Whether the list shows the queue.
    pub fn matches(&self, queue: &QueueRow, now: i64) -> bool {
        let label = queue.queue_ref.label().to_lowercase();
        label.contains(&self.lower_name) && (!self.problems || has_problem(queue, now))
    }

    /// The queues that it selects, as the audit log names them.
    pub fn target(&self) -> String {
        let name = &self.name;
        match (name.is_empty(), self.problems) {
            (true, false) => "all queues".to_owned(),
            (false, false) => format!("all queues that match “{name}”"),
            (true, true) => "all queues with problems".to_owned(),
            (false, true) => format!("all queues with problems that match “{name}”"),
        }
    }

    /// The text of an empty list.
    fn nothing(&self) -> String {
        let name = &self.name;
        match (name.is_empty(), self.problems) {
            (_, false) => format!("No queues match “{name}”. "),
            (true, true) => "No queues have problems. ".to_owned(),
            (false, true) => format!("No queues matching “{name}” have problems. "),
        }
    }
}

/// Waits are compared by the minute, so that rows do not change places with each refresh.
const MINUTE_US: i64 = 60_000_000;

/// Sorts queues, and queues with equal values by name.
pub fn sort(queues: &mut [QueueRow], by: Sort, now: i64) {
    let wait = |queue: &QueueRow| match queue.oldest_waiting {
        Some(since) if queue.counts.waiting > 0 => now.saturating_sub(since),
        _ => 0,
    };
    queues.sort_by_cached_key(|queue| (queue.queue_ref.label(), queue.queue_ref.protocol));
    match by {
        Sort::Name => {}
        Sort::Wait => queues.sort_by_key(|queue| Reverse(wait(queue))),
        Sort::Count(state) => queues.sort_by_key(|queue| Reverse(queue.counts.of(state))),
        Sort::Need => queues.sort_by_key(|queue| {
            let counts = &queue.counts;
            let busy = counts.running + counts.waiting + counts.scheduled + counts.depends > 0;
            let is_blocked = queue.paused && counts.waiting > 0;
            Reverse((
                counts.stalled,
                is_blocked,
                wait(queue) / MINUTE_US,
                counts.failed + counts.dead,
                busy,
            ))
        }),
    }
}

/// The columns: heading, class, and sort order.
const COLUMNS: [(&str, &str, Sort); 11] = [
    ("Queue", "", Sort::Name),
    ("Jobs", "w-[14%] min-w-24 mid", Sort::Need),
    ("Running", "num", Sort::Count(EffectiveState::Running)),
    ("Waiting", "num", Sort::Count(EffectiveState::Waiting)),
    (
        "Scheduled",
        "num mid",
        Sort::Count(EffectiveState::Scheduled),
    ),
    ("Depends", "num wide", Sort::Count(EffectiveState::Depends)),
    ("Stalled", "num mid", Sort::Count(EffectiveState::Stalled)),
    ("Failed", "num", Sort::Count(EffectiveState::Failed)),
    ("Dead", "num", Sort::Count(EffectiveState::Dead)),
    (
        "Jobq jobs",
        "num max-sm:whitespace-normal",
        Sort::Count(EffectiveState::Record),
    ),
    ("Oldest waiting", "num wide", Sort::Wait),
];

/// The table of queues. With a sort order and a filter, each heading is a link that sorts.
pub fn table(
    caption: &str,
    queues: &[QueueRow],
    sorted: Option<(Sort, &QueueFilter)>,
    sparks: Option<&Sparklines>,
    now: i64,
) -> AnyView {
    let has_records =
        |queue: &QueueRow| queue.states().any(|state| state == EffectiveState::Record);
    let with_records = queues.iter().any(has_records);
    let is_selectable = sorted.is_some() && pause::may_select();
    let heads = heads(sorted, with_records, sparks.is_some());
    let heads = if is_selectable {
        let select = view! { <th scope="col" class="check-cell">"Select"</th> };
        let action = view! { <th scope="col" class="w-[1%] text-right mid">"Action"</th> };
        view! { {select} {heads} {action} }.into_any()
    } else {
        heads
    };
    let rows = tables::queue_rows(queues, with_records, sparks, is_selectable, now);
    tables::table(caption, heads, rows)
}

fn heads(sorted: Option<(Sort, &QueueFilter)>, with_records: bool, with_sparks: bool) -> AnyView {
    let sparks =
        with_sparks.then(|| view! { <th scope="col" class="wide">"Completed, last 30 min"</th> });
    let columns = COLUMNS
        .into_iter()
        .filter(|(_, _, by)| with_records || *by != Sort::Count(EffectiveState::Record))
        .map(|(word, class, by)| {
            let order = sorted.filter(|(now, _)| *now == by && by != Sort::Need);
            let direction = order.map(|_| {
                if by == Sort::Name {
                    "ascending"
                } else {
                    "descending"
                }
            });
            let inner = match sorted {
                Some((_, filter)) if by != Sort::Need => {
                    view! { <a href=address(by, filter)>{word}</a> }.into_any()
                }
                _ => word.into_any(),
            };
            view! { <th scope="col" class=class aria-sort=direction>{inner}</th> }
        })
        .collect_view();
    view! { {columns} {sparks} }.into_any()
}

fn address(by: Sort, wanted: &QueueFilter) -> String {
    let fields = [("sort", by.as_str())].into_iter().chain(wanted.fields());
    urls::with_fields("/ui/queues", fields)
}

#[component]
pub fn QueuesPage() -> impl IntoView {
    let request = page_request();
    let asked = {
        let request = request.clone();
        async move {
            let listed = Listed::of(queues().await?, &request);
            // Not of all queues, which can be many thousands.
            let shown = paging::shown(&request, &listed.queues).iter();
            let shown: Vec<_> = shown.map(|queue| queue.queue_ref.clone()).collect();
            let sparks = match groups::is_grouped(&request) || shown.is_empty() {
                true => Vec::new(),
                false => sparklines(shown).await?,
            };
            let sparks = sparks
                .into_iter()
                .map(|spark| (spark.queue_ref, spark.completed));
            Ok((listed, sparks.collect::<Sparklines>()))
        }
    };
    loaded(asked, move |(listed, sparks)| {
        view! {
            <Title text="Queues" />
            <h1>"Queues"</h1>
            {list(listed, &sparks, &request)}
        }
        .into_any()
    })
}

/// The queues that match the filter, sorted.
struct Listed {
    queues: Vec<QueueRow>,
    by: Sort,
    wanted: QueueFilter,
    /// The number of all queues.
    total: usize,
}

impl Listed {
    fn of(mut queues: Vec<QueueRow>, request: &PageRequest) -> Listed {
        let param = |name| request.param(name).unwrap_or_default();
        let by = Sort::parse(&param("sort"));
        let wanted = QueueFilter::parse(param("q"), &param("state"));
        let total = queues.len();
        queues.retain(|queue| wanted.matches(queue, request.now));
        sort(&mut queues, by, request.now);
        Listed {
            queues,
            by,
            wanted,
            total,
        }
    }
}

fn list(listed: Listed, sparks: &Sparklines, request: &PageRequest) -> AnyView {
    let Listed {
        queues,
        by,
        wanted,
        total,
    } = listed;
    let can_pause = |queue: &&QueueRow| queue.queue_ref.protocol != Protocol::Jobq;
    let filter = wanted
        .fields()
        .map(|(name, value)| (name, value.to_owned()));
    let several = pause::several(
        number_of(queues.iter().filter(can_pause).count()),
        filter.to_vec(),
        request,
    );
    let shown_queues = if total == 0 {
        view! { <p class=EMPTY>"No queues yet. " <a href="/ui">"How to add a first job"</a></p> }
            .into_any()
    } else if queues.is_empty() {
        view! {
            <p class=EMPTY>
                {wanted.nothing()} <a href=address(by, &QueueFilter::default())>"Clear the filter"</a>
            </p>
        }
        .into_any()
    } else if groups::is_grouped(request) {
        groups::list(&queues, by, &wanted, request)
    } else {
        let (shown, pages) = paged(request, &address(by, &wanted), &queues);
        view! {
            {table("Queues", shown, Some((by, &wanted)), Some(sparks), request.now)}
            {pages}
        }
        .into_any()
    };
    let shown = if queues.len() == total {
        plural(number_of(total), "queue", "queues")
    } else {
        format!(
            "{} of {}",
            queues.len(),
            plural(number_of(total), "queue", "queues")
        )
    };
    view! {
        <div class="flex flex-wrap items-center gap-x-4 gap-y-2">
            <form method="get" action="/ui/queues" role="search" class="flex flex-wrap items-center gap-2">
                <label for="q">"Name contains"</label>
                <input id="q" name="q" type="search" value=wanted.name.clone() maxlength="255" autocomplete="off" data-shortcut="/" />
                <input type="hidden" name="sort" value=by.as_str() />
                {groups::is_grouped(request).then(|| view! { <input type="hidden" name=groups::GROUP.0 value=groups::GROUP.1 /> })}
                <label class="inline-flex min-h-6 items-center gap-1.5"><input type="checkbox" name="state" value="problem" checked=wanted.problems /> "Problems only"</label>
                <button type="submit" class="btn">"Filter"</button>
            </form>
            <span class="text-muted wrap-anywhere">{shown}</span>
            {group_link(by, &wanted, request)}
            {(by != Sort::Need).then(|| view! { <a href=address(Sort::Need, &wanted)>"Sort by problems"</a> })}
        </div>
        <section class=CARD>{several} {shown_queues}</section>
        {new_queue(request)}
    }
    .into_any()
}

/// The link that groups the queues by prefix, or shows them as one table.
fn group_link(by: Sort, wanted: &QueueFilter, request: &PageRequest) -> AnyView {
    let address = address(by, wanted);
    if groups::is_grouped(request) {
        return view! { <a href=address>"Show as a table"</a> }.into_any();
    }
    let (name, value) = groups::GROUP;
    view! { <a href=format!("{address}&{name}={value}")>"Group by prefix"</a> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::model::queue::QueueRow;
    use crate::ui::model::state::Counts;
    use crate::ui::model::state::EffectiveState;

    fn names(queues: &[QueueRow]) -> Vec<String> {
        queues.iter().map(|queue| queue.queue_ref.label()).collect()
    }

    #[test]
    fn the_default_order_is_problems_then_backlog_then_idle() {
        let mut queues = vec![
            QueueRow::sample("idle", Counts::default(), None),
            QueueRow::sample(
                "busy",
                Counts {
                    running: 2,
                    ..Counts::default()
                },
                None,
            ),
            QueueRow::sample(
                "late",
                Counts {
                    waiting: 1,
                    ..Counts::default()
                },
                Some(0),
            ),
            QueueRow::sample(
                "lost",
                Counts {
                    stalled: 1,
                    ..Counts::default()
                },
                None,
            ),
            QueueRow::sample(
                "broken",
                Counts {
                    failed: 7,
                    ..Counts::default()
                },
                None,
            ),
        ];
        sort(&mut queues, Sort::Need, 2 * MINUTE_US);
        assert_eq!(names(&queues), ["lost", "late", "broken", "busy", "idle"]);
        sort(&mut queues, Sort::Name, 0);
        assert_eq!(names(&queues), ["broken", "busy", "idle", "late", "lost"]);
        sort(&mut queues, Sort::Count(EffectiveState::Running), 0);
        assert_eq!(names(&queues)[0], "busy");
    }

    #[test]
    fn problems_are_stalled_failed_or_dead_jobs_and_long_waits() {
        let only = QueueFilter {
            problems: true,
            ..QueueFilter::default()
        };
        let is = |counts, since, paused| {
            let queue = QueueRow {
                paused,
                ..QueueRow::sample("a", counts, since)
            };
            only.matches(&queue, 10 * MINUTE_US)
        };
        let waiting = Counts {
            waiting: 1,
            ..Counts::default()
        };
        let failed = Counts {
            failed: 1,
            ..Counts::default()
        };
        assert!(!is(Counts::default(), None, true));
        assert!(!is(waiting, Some(9 * MINUTE_US), false));
        assert!(is(waiting, Some(9 * MINUTE_US), true));
        assert!(is(waiting, Some(0), false));
        assert!(is(failed, None, false));
    }

    #[test]
    fn a_sort_order_survives_the_url() {
        for by in COLUMNS.map(|(_, _, by)| by) {
            assert_eq!(Sort::parse(by.as_str()), by);
        }
        assert_eq!(Sort::parse("nonsense"), Sort::Need);
    }
}
