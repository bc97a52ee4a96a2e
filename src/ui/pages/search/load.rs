//! Runs the search, and loads saved searches.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, Page, Result, SearchLimits};
use crate::search::Search;
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::pages::search::model::{
    Outcome, SavedRow, SearchError, SearchResults, SearchView, SearchesView, Term, in_quotes,
};
use crate::ui::present::queue_refs::queue_names;
use crate::ui::present::rows;

/// A page of matching jobs, newest first, that starts after the job with the number `after`.
#[server(name = RunSearch)]
pub async fn search(text: String, after: Option<i64>) -> Result<SearchView, PageError> {
    read(Role::Viewer, async |context| {
        load_search(&context.engine, text, after).await
    })
    .await
}

/// The saved searches, and suggestions for the search field.
#[server]
pub async fn searches() -> Result<SearchesView, PageError> {
    read(Role::Viewer, async |context| {
        load_searches(&context.engine).await
    })
    .await
}

/// Maximum number of suggested queues, of tags, and of failure groups.
const SUGGESTED: usize = 30;

pub async fn load_searches(engine: &Engine) -> Result<SearchesView> {
    let page = Page {
        offset: 0,
        limit: SUGGESTED,
    };
    let (saved, tags, groups) = futures::try_join!(
        engine.saved_searches(),
        async { Ok(engine.top_tags(1, page).await.unwrap_or_default()) },
        engine.failures()
    )?;
    let words = [
        "state:failed",
        "state:stalled",
        "state:dead",
        "state:scheduled",
        "tracked:yes",
    ];
    let mut suggested: Vec<String> = words.map(str::to_owned).to_vec();
    let queues = queue_names(engine).into_iter().take(SUGGESTED);
    suggested.extend(queues.map(|name| format!("queue:{}", in_quotes(&name))));
    suggested.extend(
        tags.into_iter()
            .map(|(tag, _)| format!("tag:{}", in_quotes(&tag))),
    );
    let groups = groups.into_iter().take(SUGGESTED);
    suggested.extend(groups.map(|group| format!("type:{}", in_quotes(&group.group))));
    Ok(SearchesView {
        saved: saved
            .into_iter()
            .map(|saved| SavedRow {
                name: saved.name,
                text: saved.text,
                who: saved.who,
            })
            .collect(),
        suggested,
    })
}

/// A page of matching jobs, newest first, that starts after the job with the number `after`.
pub async fn load_search(engine: &Engine, text: String, after: Option<i64>) -> Result<SearchView> {
    let outcome = match Search::parse(&text) {
        Err(error) => Outcome::Invalid(SearchError {
            from: error.from,
            to: error.to,
            why: error.why,
        }),
        Ok(search) => Outcome::Found(Box::new(found(engine, &search, after).await?)),
    };
    Ok(SearchView { text, outcome })
}

async fn found(engine: &Engine, search: &Search, after: Option<i64>) -> Result<SearchResults> {
    let found = engine
        .search(search, after, SearchLimits::default(), None)
        .await?;
    let term = |(description, without)| Term {
        description,
        without,
    };
    Ok(SearchResults {
        terms: search.terms().into_iter().map(term).collect(),
        jobs: rows(engine, &found.jobs),
        // Only the first page shows exact ID matches, above the results.
        exact: match after {
            None => rows(engine, &found.exact),
            Some(_) => Vec::new(),
        },
        searched: found.scanned,
        total: found.considered,
        next: found.next,
        is_limited: found.is_cut,
        searched_back_to: found.scanned_down_to.map(|time| time.0),
    })
}
