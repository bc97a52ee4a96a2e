//! `/ui/queues?group=prefix`: the queues by the first part of their names, with sums.

use leptos::prelude::*;

use crate::ui::components::basics::{number_of, plural};
use crate::ui::components::links::queue_link_with_protocol;
use crate::ui::components::paging::paged;
use crate::ui::components::pause;
use crate::ui::components::state::{bar, color, counted};
use crate::ui::model::queue::QueueRow;
use crate::ui::model::state::{Counts, EffectiveState};
use crate::ui::page_request::PageRequest;
use crate::ui::pages::queues::{QueueFilter, Sort, address};

/// The parameter that groups the queues, and its value.
pub const GROUP: (&str, &str) = ("group", "prefix");

/// The characters that end a prefix.
const SEPARATORS: [char; 3] = ['.', '/', ':'];

/// The most queues that a page lists in all its groups together, so that it stays below 60 kB, and in each group.
const LISTED_MAX: usize = 100;
const LISTED_PER_GROUP: std::ops::RangeInclusive<usize> = 3..=20;

/// The queues whose names begin with the same prefix.
#[derive(Debug, PartialEq)]
struct Group<'a> {
    /// Empty for the queues without a prefix, and those whose prefix no other queue has.
    prefix: String,
    queues: Vec<&'a QueueRow>,
    counts: Counts,
}

/// Whether the address asks for groups.
pub fn is_grouped(request: &PageRequest) -> bool {
    request.param(GROUP.0).as_deref() == Some(GROUP.1)
}

/// The part of a name up to and including its first separator; empty if there is none, or if nothing is before it or
/// after it.
fn prefix(label: &str) -> &str {
    let end = label.find(SEPARATORS).filter(|at| *at > 0);
    let end = end.map_or(0, |at| at + 1);
    if end == label.len() {
        return "";
    }
    label.get(..end).unwrap_or_default()
}

/// The groups, in the order of their first queues; last the queues that have no group.
fn groups(queues: &[QueueRow]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places = std::collections::HashMap::<String, usize>::new();
    for queue in queues {
        let label = queue.queue_ref.label();
        let prefix = prefix(&label).to_owned();
        let place = *places.entry(prefix.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group {
                prefix,
                queues: Vec::new(),
                counts: Counts::default(),
            });
        }
        if let Some(group) = groups.get_mut(place) {
            group.counts = group.counts.plus(queue.counts);
            group.queues.push(queue);
        }
    }
    let is_shared = |group: &Group<'_>| !group.prefix.is_empty() && group.queues.len() > 1;
    let (mut shared, single): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_shared);
    let mut others = Group {
        prefix: String::new(),
        queues: Vec::new(),
        counts: Counts::default(),
    };
    for group in single {
        others.counts = others.counts.plus(group.counts);
        others.queues.extend(group.queues);
    }
    if !others.queues.is_empty() {
        shared.push(others);
    }
    shared
}

/// The groups of the queues, which are sorted, and links to other pages.
pub fn list(queues: &[QueueRow], by: Sort, wanted: &QueueFilter, request: &PageRequest) -> AnyView {
    let groups = groups(queues);
    let path = format!("{}&{}={}", address(by, wanted), GROUP.0, GROUP.1);
    let (shown, pages) = paged(request, &path, &groups);
    let (least, most) = LISTED_PER_GROUP.into_inner();
    let per_group = (LISTED_MAX / shown.len().max(1)).clamp(least, most);
    let rows = shown
        .iter()
        .map(|group| group_row(group, by, per_group, request.now));
    view! { <ul class="divide-y divide-line">{rows.collect_view()}</ul> {pages} }.into_any()
}

fn group_row(group: &Group<'_>, by: Sort, per_group: usize, now: i64) -> AnyView {
    let name = match group.prefix.as_str() {
        "" => "Other queues".to_owned(),
        prefix => format!("{prefix}*"),
    };
    let n = number_of(group.queues.len());
    let listed = group.queues.iter().take(per_group).map(|queue| {
        view! {
            <li>
                {queue_link_with_protocol(&queue.queue_ref)} {queue.paused.then(|| pause::chip(&queue.pause, now))} " "
                {counts(&queue.counts)}
            </li>
        }
    });
    let more = group.queues.len().saturating_sub(per_group);
    let more = (more > 0).then(|| {
        let filter = QueueFilter::parse(group.prefix.clone(), "");
        let words = format!("All {}", plural(n, "queue", "queues"));
        view! { <li><a href=address(by, &filter)>{words}</a></li> }
    });
    let paused = group.queues.iter().filter(|queue| queue.paused).count();
    let paused = (paused > 0).then(|| format!(", {paused} paused"));
    let key = name.clone();
    view! {
        <li data-key=key>
            <details class="px-4 py-1.5">
                <summary>
                    <strong class="name">{name}</strong>
                    <span class="text-muted">" " {plural(n, "queue", "queues")} {paused} " "</span>
                    {counts(&group.counts)}
                    {bar(&group.counts)}
                </summary>
                <ul class="py-1 pl-4 *:py-0.5">{listed.collect_view()} {more}</ul>
            </details>
        </li>
    }
    .into_any()
}

/// The numbers of jobs by state, without zeros and complete jobs.
fn counts(counts: &Counts) -> AnyView {
    let shown = EffectiveState::ALL.into_iter();
    let shown = shown.filter(|state| *state != EffectiveState::Complete && counts.of(*state) > 0);
    let shown = shown.map(|state| {
        let text = counted(state, counts.of(state)) + " ";
        view! { <span class=color(state)>{text}</span> }
    });
    shown.collect_view().into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_the_first_separator() {
        for (name, expected) in [
            ("crm.import.daily", "crm."),
            ("crm/import", "crm/"),
            ("a:b", "a:"),
            ("mail", ""),
            (".hidden", ""),
            ("end.", ""),
            ("ü.x", "ü."),
        ] {
            assert_eq!(prefix(name), expected, "{name}");
        }
    }

    #[test]
    fn groups_have_sums_and_the_others_are_last() {
        let waiting = |waiting| Counts {
            waiting,
            ..Counts::default()
        };
        let queue = |name: &str, n| QueueRow::sample(name, waiting(n), None);
        let queues = [
            queue("mail", 1),
            queue("crm.a", 2),
            queue("alone.x", 4),
            queue("crm.b", 8),
            queue("web/1", 16),
            queue("web/2", 32),
        ];
        let groups = groups(&queues);
        let found: Vec<_> = groups
            .iter()
            .map(|group| {
                (
                    group.prefix.as_str(),
                    group.queues.len(),
                    group.counts.waiting,
                )
            })
            .collect();
        assert_eq!(found, [("crm.", 2, 10), ("web/", 2, 48), ("", 2, 5)]);
    }
}
