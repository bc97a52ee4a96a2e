//! The search over all jobs.

use super::super::views::{Chip, Finds, Mistaken, Outcome, SearchView};
use super::rows;
use crate::engine::{Engine, Result, SearchLimits};
use crate::search::Search;

/// A page of the jobs that are meant, newest first: those before the one with the number `after`, or the first.
pub async fn search(engine: &Engine, text: String, after: Option<i64>) -> Result<SearchView> {
    let outcome = match Search::parse(&text) {
        Err(mistake) => Outcome::Mistaken(Mistaken {
            from: mistake.from,
            to: mistake.to,
            why: mistake.why,
        }),
        Ok(search) => Outcome::Found(Box::new(found(engine, &search, after).await?)),
    };
    Ok(SearchView { text, outcome })
}

async fn found(engine: &Engine, search: &Search, after: Option<i64>) -> Result<Finds> {
    let found = engine
        .search(search, after, SearchLimits::default(), None)
        .await?;
    let chip = |(told, without)| Chip { told, without };
    Ok(Finds {
        chips: search.terms().into_iter().map(chip).collect(),
        jobs: rows(engine, &found.jobs),
        // They stand above the first page.
        exact: match after {
            None => rows(engine, &found.exact),
            Some(_) => Vec::new(),
        },
        looked_at: found.looked_at,
        among: found.among,
        next: found.next,
        is_cut: found.is_cut,
        down_to: found.down_to.map(|time| time.0),
    })
}
