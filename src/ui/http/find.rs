//! `GET /ui/find`: the search of the palette, as JSON. Finds queues, workers, failure groups and tags by a part of
//! their name, and jobs by their ID.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Extension, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, NAME_BYTES_MAX, Result};
use crate::ui::http::authentication::Principal;
use crate::ui::http::{Dashboard, unavailable};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::present::queue_refs::queue_ref;
use crate::ui::present::rows;
use crate::ui::urls;

/// Maximum number of results of each kind; 20 in total.
const JOBS_MAX: usize = 4;

const QUEUES_MAX: usize = 7;

const OTHERS_MAX: usize = 3;

/// Queues that are compared before other requests run.
const QUEUES_AT_ONCE: usize = 2_000;

/// The results of one kind.
#[derive(Debug, Serialize)]
pub struct Group {
    pub kind: &'static str,
    pub items: Vec<Item>,
}

/// A result.
#[derive(Debug, Serialize)]
pub struct Item {
    /// Any text; the script escapes it.
    pub name: String,
    /// Distinguishes results with the same name.
    pub about: String,
    /// The address of its page.
    pub to: String,
}

/// The parameters of the search.
#[derive(Deserialize)]
pub struct Parameters {
    #[serde(default)]
    q: String,
}

/// `GET /ui/find?q=…`
pub async fn find(
    State(dashboard): State<Dashboard>,
    Extension(user): Extension<Principal>,
    Query(query): Query<Parameters>,
) -> Response {
    match results(&dashboard.engine_for(user.method), &query.q).await {
        Ok(groups) => ([(header::CACHE_CONTROL, "no-store")], Json(groups)).into_response(),
        Err(error) => unavailable(&error, "failed to read names for search"),
    }
}

/// The objects whose name contains `text`, ignoring case, and the jobs with that ID. Names that start with the text
/// come first.
async fn results(engine: &Engine, text: &str) -> Result<Vec<Group>> {
    let text = text.trim();
    if text.is_empty() || text.len() > NAME_BYTES_MAX || text.contains('\0') {
        return Ok(Vec::new());
    }
    let (jobs, names) = futures::try_join!(
        engine.jobs_with_id(text, None),
        engine.matching_names(text, None)
    )?;
    let jobs = rows(engine, &jobs).into_iter().map(|job| Item {
        to: urls::listed_job(&job),
        about: format!("{}, queue {}", job.state.as_str(), job.queue_ref.label()),
        name: job.id,
    });
    let named = |names: Vec<String>, to: fn(&str) -> String| {
        let names = best(names, text, OTHERS_MAX).into_iter();
        let item = |name: String| Item {
            to: to(&name),
            about: String::new(),
            name,
        };
        names.map(item).collect()
    };
    let groups = [
        ("Jobs", jobs.take(JOBS_MAX).collect()),
        ("Queues", queues(engine, text).await),
        ("Workers", named(names.workers, urls::worker)),
        ("Failures", named(names.failures, urls::failure)),
        ("Tags", named(names.tags, urls::tag)),
    ];
    let groups = groups
        .into_iter()
        .map(|(kind, items)| Group { kind, items });
    Ok(groups.filter(|group| !group.items.is_empty()).collect())
}

async fn queues(engine: &Engine, text: &str) -> Vec<Item> {
    let matcher = Matcher::new(text);
    let mut found: Vec<(u8, String, QueueRef)> = Vec::new();
    for part in engine.known_queues().unordered().chunks(QUEUES_AT_ONCE) {
        let queues = part.iter().filter(|queue| !queue.forgotten);
        found.extend(queues.filter_map(|queue| {
            let queue_ref = queue_ref(&queue.key);
            let label = queue_ref.label();
            Some((matcher.rank(&label)?, label, queue_ref))
        }));
        found.sort_by(|a, b| (a.0, &a.1, a.2.protocol).cmp(&(b.0, &b.1, b.2.protocol)));
        found.truncate(QUEUES_MAX);
        // Other requests run in between.
        tokio::task::yield_now().await;
    }
    let item = |(_, name, queue_ref): (u8, String, QueueRef)| Item {
        to: urls::queue(&queue_ref),
        about: queue_ref.protocol.as_str().to_owned(),
        name,
    };
    found.into_iter().map(item).collect()
}

/// The best matches, without duplicates.
fn best(names: Vec<String>, text: &str, most: usize) -> Vec<String> {
    let matcher = Matcher::new(text);
    let names: BTreeSet<_> = names
        .into_iter()
        .filter_map(|name| Some((matcher.rank(&name)?, name)))
        .collect();
    names.into_iter().take(most).map(|(_, name)| name).collect()
}

/// A text to match names against, in lower case.
struct Matcher(String);

impl Matcher {
    fn new(text: &str) -> Self {
        Self(text.to_lowercase())
    }

    /// The rank of a match; 0 is best.
    fn rank(&self, name: &str) -> Option<u8> {
        let name = name.to_lowercase();
        match name.find(&self.0)? {
            0 if name.len() == self.0.len() => Some(0),
            0 => Some(1),
            _ => Some(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_start_with_the_text_come_first_without_duplicates() {
        let names = ["remail", "Mailer", "mail", "post", "mail", "e-mail"];
        let names = names.map(str::to_owned).to_vec();
        let all = best(names.clone(), "MAIL", 9);
        assert_eq!(all, ["mail", "Mailer", "e-mail", "remail"]);
        assert_eq!(best(names, "mail", 2), ["mail", "Mailer"]);
    }
}
