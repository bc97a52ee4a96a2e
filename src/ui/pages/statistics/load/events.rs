//! The events that the charts mark: pauses, changes of options, and bulk operations.

use crate::engine::{Engine, Result, Time};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::pages::statistics::load::window::{MINUTE_US, Window};
use crate::ui::pages::statistics::model::ChartEvent;
use crate::ui::urls;
use crate::ui::urls::encoding::is_dashboard_page;

/// Maximum number of events that the charts mark.
const EVENTS_MAX: usize = 40;

/// Maximum number of events that are read to find those of one queue.
const EVENTS_READ_MAX: i64 = 400;

/// The actions, by their current and former names in the audit log, and what the page calls them.
const ACTIONS: [(&str, &str); 11] = [
    ("pause_queue", "Pause"),
    ("pause_queues", "Pause"),
    ("unpause_queue", "Resume"),
    ("resume_queues", "Resume"),
    ("set_option", "Change"),
    ("set_queue_option", "Change"),
    ("unset_option", "Reset"),
    ("start_operation", "Operation"),
    ("operate", "Operation"),
    ("retry_group", "Retry"),
    ("undo_operation", "Undo"),
];

/// The newest events of the period, newest first, and whether there are more. With a queue, events of other queues are
/// left out; an operation or a pause of several queues can concern any queue.
pub async fn load(
    engine: &Engine,
    queue: Option<&QueueRef>,
    window: Window,
) -> Result<(Vec<ChartEvent>, bool)> {
    let time = |minute: i64| Time(minute.saturating_mul(MINUTE_US));
    let names = ACTIONS.map(|(name, _)| name);
    let found = engine
        .chart_actions(
            &names,
            (time(window.from), time(window.end())),
            EVENTS_READ_MAX,
        )
        .await?;
    let event = |action: crate::engine::ChartAction| {
        let (_, word) = ACTIONS
            .into_iter()
            .find(|(name, _)| *name == action.action)?;
        let is_of_queue = queue.is_none_or(|queue| concerns(queue, &action.link));
        // Earlier versions have stored other addresses.
        (is_of_queue && is_dashboard_page(&action.link)).then(|| ChartEvent {
            at: action.at.0,
            text: format!("{word}: {}", action.target),
            link: action.link,
        })
    };
    let mut events: Vec<ChartEvent> = found.into_iter().filter_map(event).collect();
    let has_more = events.len() > EVENTS_MAX;
    events.truncate(EVENTS_MAX);
    Ok((events, has_more))
}

/// Whether an action with this link can concern the queue: unless it leads to another queue, or to its options.
fn concerns(queue: &QueueRef, link: &str) -> bool {
    let options = urls::config(&queue.name);
    let is_of_another = match link.strip_prefix("/ui/config?") {
        Some(_) => link != options,
        None => {
            let pages = ["/ui/queues/", "/ui/lmstfy/", "/ui/relay/", "/ui/jobq/"];
            pages.iter().any(|page| link.starts_with(page)) && link != urls::queue(queue)
        }
    };
    !is_of_another
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::actions::{current_name, is_stored_name};

    #[test]
    fn every_marked_action_exists() {
        for (name, _) in ACTIONS {
            assert!(is_stored_name(current_name(name)), "{name}");
        }
    }

    #[test]
    fn events_of_other_queues_are_left_out() {
        let mail = QueueRef::qless("mail");
        for link in [
            urls::queue(&mail),
            urls::config("mail"),
            "/ui/config".to_owned(),
            "/ui/queues".to_owned(),
            urls::operation(7),
        ] {
            assert!(concerns(&mail, &link), "{link}");
        }
        let others = [
            QueueRef::qless("mail2"),
            QueueRef::lmstfy("shop", "mail"),
            QueueRef::relay("mail"),
        ];
        for other in others {
            assert!(!concerns(&mail, &urls::queue(&other)), "{other:?}");
        }
        assert!(!concerns(&mail, &urls::config("mail2")));
    }
}
