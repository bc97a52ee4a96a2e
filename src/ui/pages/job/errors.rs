//! The errors of a job's attempts, newest first, from its history.

use leptos::prelude::*;

use crate::ui::components::links::worker_link;
use crate::ui::components::styles::{CARD_PADDED, PAYLOAD};
use crate::ui::components::time::ago;
use crate::ui::model::job::{Entry, EventKind, FailureNote, JobRow};
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::PageRequest;
use crate::ui::urls;

/// Maximum number of attempts that are shown.
const SHOWN: usize = 20;

/// How an attempt ended without completing the job.
#[derive(Clone, Debug, PartialEq)]
struct AttemptError {
    /// Counted from 1.
    attempt: usize,
    when: i64,
    worker: Option<String>,
    /// `None` if the lease expired or was timed out, or if the worker retried the job without a reason.
    group: Option<String>,
    /// `None` if it is not stored.
    message: Option<String>,
}

/// The failed attempts, newest first. The newest has the whole message of the last failure.
fn errors(history: &[Entry], last: Option<&FailureNote>) -> Vec<AttemptError> {
    let (mut attempt, mut worker) = (0, None);
    let mut errors = Vec::new();
    for entry in history {
        let group = match entry.what {
            EventKind::Popped => {
                attempt += 1;
                worker = entry.subject.clone().filter(|name| !name.is_empty());
                continue;
            }
            EventKind::Failed | EventKind::Retried => entry.subject.clone(),
            EventKind::TimedOut => None,
            _ => continue,
        };
        // If no retries are left, the server's failure follows the end of the lease, and replaces it here.
        let is_same = |error: &AttemptError| error.attempt == attempt && error.group.is_none();
        if entry.what == EventKind::Failed && errors.last().is_some_and(is_same) {
            errors.pop();
        }
        errors.push(AttemptError {
            attempt: attempt.max(1),
            when: entry.when,
            worker: entry.detail.clone().or_else(|| worker.clone()),
            group,
            message: entry.message.clone(),
        });
    }
    if let Some(last) = last {
        let of_last = |error: &&mut AttemptError| {
            error.when == last.when && error.group.as_ref() == Some(&last.group)
        };
        match errors.iter_mut().rev().find(of_last) {
            Some(error) => error.message = Some(last.message.clone()),
            // The history was shortened.
            None => errors.push(AttemptError {
                attempt: attempt.max(1),
                when: last.when,
                worker: Some(last.worker.clone()).filter(|name| !name.is_empty()),
                group: Some(last.group.clone()),
                message: Some(last.message.clone()),
            }),
        }
    }
    errors.reverse();
    errors
}

/// The words of `new` that differ from `old`: the text before them, these words, and the text after them.
fn difference<'t>(old: &str, new: &'t str) -> (&'t str, &'t str, &'t str) {
    let words = |text: &'t str| text.split_inclusive(char::is_whitespace);
    let same = |ours: &[&str], theirs: &[&str]| -> usize {
        let both = ours.iter().zip(theirs).take_while(|(a, b)| a == b);
        both.map(|(word, _)| word.len()).sum()
    };
    let theirs: Vec<&str> = old.split_inclusive(char::is_whitespace).collect();
    let mut ours: Vec<&str> = words(new).collect();
    let before = same(&ours, &theirs);
    let rest = new.get(before..).unwrap_or_default();
    ours = words(rest).rev().collect();
    let theirs_rest = old.get(before..).unwrap_or_default();
    let theirs: Vec<&str> = theirs_rest
        .split_inclusive(char::is_whitespace)
        .rev()
        .collect();
    let after = new.len() - same(&ours, &theirs);
    let part = |from: usize, to: usize| new.get(from..to).unwrap_or_default();
    let changed = part(before, after).trim_end();
    let end = before + changed.len();
    (part(0, before), changed, part(end, new.len()))
}

/// The errors of all attempts; nothing if there are none.
pub fn errors_card(job: &JobRow, history: &[Entry], request: &PageRequest) -> Option<AnyView> {
    let errors = errors(history, job.failure.as_ref());
    let newest = errors.first()?;
    let title = match (job.state, errors.len()) {
        (EffectiveState::Failed, 1) => "Failure",
        (_, 1) => "Last failure",
        _ => "Failures, newest first",
    };
    let is_whole = |error: &AttemptError| std::ptr::eq(error, newest);
    let items = errors.iter().enumerate().take(SHOWN).map(|(at, error)| {
        let older = errors.get(at + 1);
        view! { <li>{error_view(error, older, is_whole(error), request)}</li> }
    });
    let more = errors.len().saturating_sub(SHOWN);
    let view = view! {
        <section class=format!("{CARD_PADDED} border-l-3 border-l-failed") aria-labelledby="failure">
            <h2 id="failure">{title}</h2>
            <ol class="flex flex-col gap-3 [&_a]:underline">{items.collect_view()}</ol>
            {(more > 0).then(|| view! { <p class="text-muted wrap-anywhere">{format!("Older attempts in the timeline: {more}.")}</p> })}
        </section>
    };
    Some(view.into_any())
}

fn error_view(
    error: &AttemptError,
    older: Option<&AttemptError>,
    is_newest: bool,
    request: &PageRequest,
) -> AnyView {
    let what = match &error.group {
        Some(group) => {
            view! { <a class="name" href=urls::failure(group)>{group.clone()}</a> }.into_any()
        }
        None => "no failure reported: the lease expired, or the job was timed out or retried without a reason".into_any(),
    };
    let older_message = older.and_then(|older| older.message.as_deref());
    let message = error
        .message
        .as_deref()
        .filter(|message| !message.is_empty());
    let shown = message.map(|message| {
        if !is_newest && older_message == Some(message) {
            return view! { <p class="text-muted wrap-anywhere">"Same message as the attempt before."</p> }.into_any();
        }
        let (before, changed, after) = match older_message {
            Some(older) if older != message => difference(older, message),
            _ => (message, "", ""),
        };
        let changed = changed.to_owned();
        view! {
            <pre class=PAYLOAD tabindex="0" aria-label="Message">
                {before.to_owned()}{(!changed.is_empty()).then(|| view! { <mark>{changed}</mark> })}{after.to_owned()}
            </pre>
        }
        .into_any()
    });
    view! {
        <p class="flex flex-wrap items-baseline justify-between gap-x-3 gap-y-1">
            <span><strong>{format!("Attempt {}", error.attempt)}</strong> " · " {what}</span>
            <span class="text-muted wrap-anywhere">
                {ago(error.when, request.now)}
                {error.worker.as_deref().map(|worker| view! { " on " {worker_link(worker)} })}
            </span>
        </p>
        {shown}
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(what: EventKind, when: i64, subject: Option<&str>, message: Option<&str>) -> Entry {
        Entry {
            what,
            when,
            subject: subject.map(str::to_owned),
            detail: None,
            message: message.map(str::to_owned),
        }
    }

    #[test]
    fn each_attempt_keeps_its_error_newest_first() {
        let history = [
            entry(EventKind::Put, 0, Some("q"), None),
            entry(EventKind::Popped, 1, Some("a"), None),
            entry(EventKind::Retried, 2, Some("Timeout"), Some("after 5 s")),
            entry(EventKind::Popped, 3, Some("b"), None),
            entry(EventKind::TimedOut, 4, None, None),
            entry(EventKind::Popped, 5, Some("c"), None),
            entry(EventKind::TimedOut, 6, None, None),
            entry(
                EventKind::Failed,
                6,
                Some("failed-retries-q"),
                Some("exhausted"),
            ),
            entry(EventKind::Popped, 7, Some("d"), None),
            entry(EventKind::Done, 8, None, None),
        ];
        let found = errors(&history, None);
        let shape: Vec<_> = found
            .iter()
            .map(|error| {
                (
                    error.attempt,
                    error.worker.as_deref(),
                    error.group.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            shape,
            [
                (3, Some("c"), Some("failed-retries-q")),
                (2, Some("b"), None),
                (1, Some("a"), Some("Timeout")),
            ]
        );
        assert_eq!(found[2].message.as_deref(), Some("after 5 s"));
    }

    #[test]
    fn the_last_failure_is_whole_even_if_the_history_lacks_it() {
        let last = FailureNote {
            group: "Timeout".to_owned(),
            message: "long".to_owned(),
            worker: "a".to_owned(),
            when: 2,
        };
        let history = [
            entry(EventKind::Popped, 1, Some("a"), None),
            entry(EventKind::Failed, 2, Some("Timeout"), Some("lo")),
        ];
        let found = errors(&history, Some(&last));
        assert_eq!(
            (found.len(), found[0].message.as_deref()),
            (1, Some("long"))
        );
        let found = errors(&history[..1], Some(&last));
        assert_eq!((found.len(), found[0].worker.as_deref()), (1, Some("a")));
    }

    #[test]
    fn the_difference_between_messages_is_the_words_in_the_middle() {
        for (old, new, expected) in [
            ("after 5 s", "after 12 s", ("after ", "12", " s")),
            ("same", "same", ("same", "", "")),
            ("", "new", ("", "new", "")),
            ("a b", "a b c", ("a ", "b c", "")),
            ("é x", "é y", ("é ", "y", "")),
        ] {
            assert_eq!(difference(old, new), expected, "{old} → {new}");
        }
    }
}
