//! Addresses of the pages that tell of the past.

use super::{Visit, encode, to};
use crate::api::views::{Asked, Place};

impl Visit {
    /// What of the statistics is asked for; see [`to::statistics`].
    pub fn asked(&self) -> Asked {
        let text = |name: &str| self.param(name).unwrap_or_default();
        Asked {
            queue: text("queue"),
            range: text("range"),
            from: text("from"),
            to: text("to"),
            compare: text("compare") == "1",
        }
    }
}

/// How a queue is named where it is not the page's own: by its address without `/ui/`.
pub fn handle(place: &Place) -> String {
    to::queue(place).trim_start_matches("/ui/").to_owned()
}

/// Statistics over hours, days and weeks.
pub fn statistics(asked: &Asked) -> String {
    let compare = if asked.compare { "1" } else { "" };
    let fields = [
        ("queue", asked.queue.as_str()),
        ("range", &asked.range),
        ("from", &asked.from),
        ("to", &asked.to),
        ("compare", compare),
    ];
    fields_after("/ui/stats", &fields)
}

/// An address with those fields of a form that are filled in.
pub fn fields_after(path: &str, fields: &[(&str, &str)]) -> String {
    let mut address = path.to_owned();
    let mut mark = '?';
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        address.push_str(&format!("{mark}{name}="));
        encode(value, &mut address);
        mark = '&';
    }
    address
}

/// The jobs of a failure group: those that failed in a range of time, and say what has this fingerprint.
pub fn failing(group: &str, range: &str, fingerprint: &str) -> String {
    let range = if range == "all" { "" } else { range };
    fields_after(
        &to::failure(group),
        &[("range", range), ("fp", fingerprint)],
    )
}

/// What a search over all jobs finds.
pub fn search(text: &str) -> String {
    fields_after("/ui/jobs", &[("q", text)])
}
