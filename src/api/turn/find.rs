//! What the palette finds: queues, workers, failure groups and tags by a part of their name, and jobs by their id.

use std::collections::BTreeSet;

use serde::Serialize;

use super::places::place;
use super::rows;
use crate::app::visit::to;
use crate::engine::{Engine, NAME_BYTES_MAX, Result};

/// How many are found of each kind; together at most 20.
const JOBS_MAX: usize = 4;
const QUEUES_MAX: usize = 7;
const OTHERS_MAX: usize = 3;

/// What was found of one kind.
#[derive(Debug, Serialize)]
pub struct Group {
    pub kind: &'static str,
    pub items: Vec<Item>,
}

/// One thing with a page of its own.
#[derive(Debug, Serialize)]
pub struct Item {
    /// Any text: it is escaped by whoever shows it.
    pub name: String,
    /// What tells it from others of the same name.
    pub about: String,
    /// The address of its page.
    pub to: String,
}

/// Whatever has `typed` in its name, whether in upper or lower case, and the jobs with exactly that id. What begins with
/// it comes first. A text that is longer than any name finds nothing.
pub async fn find(engine: &Engine, typed: &str) -> Result<Vec<Group>> {
    let typed = typed.trim();
    if typed.is_empty() || typed.len() > NAME_BYTES_MAX || typed.contains('\0') {
        return Ok(Vec::new());
    }
    let (jobs, names) = futures::try_join!(
        engine.jobs_with_id(typed, None),
        engine.matching_names(typed, None)
    )?;
    let jobs = rows(engine, &jobs).into_iter().map(|job| Item {
        to: to::row(&job),
        about: format!("{}, queue {}", job.stand.as_str(), job.place.label()),
        name: job.id,
    });
    let named = |names: Vec<String>, to: fn(&str) -> String| {
        let names = best(names, typed, OTHERS_MAX).into_iter();
        let item = |name: String| Item {
            to: to(&name),
            about: String::new(),
            name,
        };
        names.map(item).collect()
    };
    let groups = [
        ("Jobs", jobs.take(JOBS_MAX).collect()),
        ("Queues", queues(engine, typed)),
        ("Workers", named(names.workers, to::worker)),
        ("Failures", named(names.failures, to::failure)),
        ("Tags", named(names.tags, to::tag)),
    ];
    let groups = groups
        .into_iter()
        .map(|(kind, items)| Group { kind, items });
    Ok(groups.filter(|group| !group.items.is_empty()).collect())
}

fn queues(engine: &Engine, typed: &str) -> Vec<Item> {
    let known = engine.known_queues().all().into_iter();
    let places = known
        .filter(|queue| !queue.forgotten)
        .map(|queue| place(&queue.key));
    let fitting = Fitting::new(typed);
    let mut found: Vec<_> = places
        .filter_map(|place| Some((fitting.rank(&place.label())?, place.label(), place)))
        .collect();
    found.sort_by(|a, b| (a.0, &a.1, a.2.api).cmp(&(b.0, &b.1, b.2.api)));
    found.truncate(QUEUES_MAX);
    let item = |(_, name, place)| Item {
        to: to::queue(&place),
        about: place.api.as_str().to_owned(),
        name,
    };
    found.into_iter().map(item).collect()
}

/// The names that fit best, each once.
fn best(names: Vec<String>, typed: &str, most: usize) -> Vec<String> {
    let fitting = Fitting::new(typed);
    let names: BTreeSet<_> = names
        .into_iter()
        .filter_map(|name| Some((fitting.rank(&name)?, name)))
        .collect();
    names.into_iter().take(most).map(|(_, name)| name).collect()
}

/// What has been typed, in lower case.
struct Fitting(String);

impl Fitting {
    fn new(typed: &str) -> Self {
        Self(typed.to_lowercase())
    }

    /// How well a name fits: 0 is best, nothing not at all.
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
    fn what_begins_with_it_comes_first_and_nothing_twice() {
        let names = ["remail", "Mailer", "mail", "post", "mail", "e-mail"];
        let names = names.map(str::to_owned).to_vec();
        let all = best(names.clone(), "MAIL", 9);
        assert_eq!(all, ["mail", "Mailer", "e-mail", "remail"]);
        assert_eq!(best(names, "mail", 2), ["mail", "Mailer"]);
    }
}
