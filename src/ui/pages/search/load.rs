//! Runs the search, and loads saved searches.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, LISTED_TAGS_MAX, OffsetPage, Result, SearchLimits};
use crate::search::Search;
use crate::ui::components::tables::job_list::TAGS_LISTED;
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::PAGE_ROWS;
use crate::ui::pages::search::model::{
    Outcome, SavedRow, SearchError, SearchOrder, SearchPosition, SearchResults, SearchView,
    SearchesView, Term, in_quotes,
};
use crate::ui::present::queue_refs::queue_names;
use crate::ui::present::rows;

/// A page of matching jobs: newest first, after the job with the number `after`; or in another order, from `offset` on.
#[server(name = RunSearch)]
pub async fn search(
    text: String,
    after: Option<i64>,
    #[server(default)] order: SearchOrder,
    #[server(default)] offset: usize,
) -> Result<SearchView, PageError> {
    let position = SearchPosition {
        after,
        order,
        offset,
    };
    read(Role::Viewer, async |context| {
        load_search(&context.engine, text, position).await
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

/// A search loads only the tags that its list shows.
const _: () = assert!(TAGS_LISTED == LISTED_TAGS_MAX);

/// Maximum number of jobs that are sorted: the newest ones.
const SORTED_MAX: usize = 1_000;

/// Maximum number of suggested queues, of tags, and of failure groups.
const SUGGESTED: usize = 30;

pub async fn load_searches(engine: &Engine) -> Result<SearchesView> {
    let page = OffsetPage {
        offset: 0,
        limit: SUGGESTED,
    };
    let (saved, tags, groups) = futures::try_join!(
        engine.saved_searches(),
        async { Ok(engine.top_tags(1, page).await.unwrap_or_default()) },
        engine.failure_counts()
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
    let groups = groups.iter().take(SUGGESTED);
    suggested.extend(groups.map(|(group, _)| format!("group:{}", in_quotes(group))));
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

/// A page of matching jobs.
pub async fn load_search(
    engine: &Engine,
    text: String,
    position: SearchPosition,
) -> Result<SearchView> {
    let outcome = match Search::parse(&text) {
        Err(error) => Outcome::Invalid(SearchError {
            from: error.from,
            to: error.to,
            why: error.why,
        }),
        Ok(search) => Outcome::Found(Box::new(found(engine, &search, position).await?)),
    };
    Ok(SearchView { text, outcome })
}

async fn found(
    engine: &Engine,
    search: &Search,
    position: SearchPosition,
) -> Result<SearchResults> {
    let is_sorted = position.order != SearchOrder::Newest;
    let limits = SearchLimits {
        jobs: if is_sorted { SORTED_MAX } else { PAGE_ROWS },
        ..SearchLimits::default()
    };
    let after = position.after.filter(|_| !is_sorted);
    let found = engine.search(search, after, limits, None).await?;
    let term = |(description, without)| Term {
        description,
        without,
    };
    let mut jobs = rows(engine, &found.jobs);
    let sorted = is_sorted.then_some(jobs.len());
    if is_sorted {
        position.order.sort(&mut jobs);
        jobs.drain(..position.offset.min(jobs.len()));
        jobs.truncate(PAGE_ROWS);
    }
    Ok(SearchResults {
        terms: search.terms().into_iter().map(term).collect(),
        jobs,
        sorted,
        // Only the first page shows exact ID matches, above the results.
        exact: match (after, position.offset) {
            (None, 0) => rows(engine, &found.exact),
            _ => Vec::new(),
        },
        searched: found.scanned,
        total: found.considered,
        next: found.next,
        is_limited: found.is_cut,
        searched_back_to: found.scanned_down_to.map(|time| time.0),
    })
}
