//! A Markdown summary of a failure group, for the notes of an incident.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::basics::plural;
use crate::ui::components::commands::{copy, escape_textarea};
use crate::ui::page_request::PageRequest;
use crate::ui::pages::failures::model::FailureGroupView;
use crate::ui::urls;

/// Maximum number of kinds of messages in the summary.
const KINDS_SHOWN: usize = 5;

/// The summary in a field, to copy it from.
pub fn incident(view: &FailureGroupView, request: &PageRequest) -> AnyView {
    let text = markdown(view, &request.origin, request.now);
    let rows = (text.lines().count() + 1).min(24);
    view! {
        <details>
            <summary>"Incident report (Markdown)"</summary>
            <div>
                <p class="flex flex-wrap items-center gap-2">{copy("incident".to_owned(), "Copy the Markdown".to_owned())}</p>
                <label for="incident" class="sr-only">"Markdown"</label>
                <textarea id="incident" rows=rows.to_string() readonly spellcheck="false">{escape_textarea(&text)}</textarea>
            </div>
        </details>
    }
    .into_any()
}

fn markdown(view: &FailureGroupView, origin: &str, now: i64) -> String {
    let group = &view.group;
    let moment = |moment: Option<i64>| moment.map_or("unknown".to_owned(), time::utc);
    let fingerprint = view
        .selected_kind
        .as_ref()
        .map_or("", |kind| kind.hash.as_str());
    let mut lines = vec![
        format!(
            "## {}: {}",
            plain(&group.group),
            plural(group.count, "failed job", "failed jobs")
        ),
        String::new(),
        format!(
            "- As of {}; first {}, last {}",
            time::utc(now),
            moment(group.first),
            moment(group.last)
        ),
    ];
    let list = |names: Vec<String>| names.join(", ");
    let queues = view.queues.iter().map(|(queue_ref, n)| {
        format!(
            "{} ({}) {}",
            code(&queue_ref.label()),
            queue_ref.protocol.as_str(),
            time::number(*n)
        )
    });
    lines.push(format!("- Queues: {}", list(queues.collect())));
    let workers = view
        .workers
        .iter()
        .map(|(name, n)| format!("{} {}", code(name), time::number(*n)));
    lines.push(format!("- Workers: {}", list(workers.collect())));
    lines.push(format!(
        "- Messages of the newest {}:",
        plural(view.analyzed, "job", "jobs")
    ));
    for kind in view.message_kinds.iter().take(KINDS_SHOWN) {
        let n = time::number(kind.count);
        lines.push(format!(
            "  - {n} × {} (`fp:{}`)",
            code(&kind.text),
            kind.hash
        ));
    }
    lines.push(format!(
        "- {origin}{}",
        urls::filtered_failure(&group.group, &view.range, fingerprint)
    ));
    let failure = view
        .sample
        .as_ref()
        .and_then(|job| Some((job, job.failure.as_ref()?)));
    if let Some((job, failure)) = failure {
        let fence = "`".repeat(longest_run(&failure.message).max(2) + 1);
        lines.push(String::new());
        lines.push(format!(
            "Job {}, {}:",
            code(&job.id),
            time::utc(failure.when)
        ));
        lines.extend([String::new(), fence.clone(), failure.message.clone(), fence]);
    }
    lines.join("\n") + "\n"
}

/// The length of the longest run of backquotes in a text.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or_default()
}

/// A text as a Markdown code span.
fn code(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let fence = "`".repeat(longest_run(&text) + 1);
    match fence.len() == 1 && !text.trim().is_empty() {
        true => format!("`{text}`"),
        false => format!("{fence} {text} {fence}"),
    }
}

/// A text with Markdown syntax escaped.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '.' | ',' | ':' | '-' | '/') {
            plain.push('\\');
        }
        plain.push(if c.is_control() { ' ' } else { c });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_escaped_in_markdown() {
        assert_eq!(code("a b"), "`a b`");
        assert_eq!(code("a ``b``"), "``` a ``b`` ```");
        assert_eq!(longest_run("``` x ````"), 4);
        assert_eq!(plain("A::B <b>*x*"), "A::B \\<b\\>\\*x\\*");
    }
}
