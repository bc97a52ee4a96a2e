//! Saved searches, and what the box suggests.

use super::super::views::{SavedRow, SearchesView, in_quotes};
use super::queue_names;
use crate::engine::{Engine, Page, Result};
use crate::search::{CHARS_MAX, Search};

/// Queues, tags and failure groups that are suggested, of each so many.
const SUGGESTED: usize = 30;

/// The longest name of a search, in characters.
const NAME_CHARS_MAX: usize = 80;

pub async fn searches(engine: &Engine) -> Result<SearchesView> {
    let page = Page {
        offset: 0,
        limit: SUGGESTED,
    };
    let (saved, tags, groups) = futures::try_join!(
        engine.saved_searches(),
        engine.top_tags(1, page),
        engine.failures()
    )?;
    let words = [
        "state:failed",
        "state:stalled",
        "state:dead",
        "state:scheduled",
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

/// Saves a search that is one.
pub async fn save_search(engine: &Engine, name: &str, text: &str, who: &str) -> Result<(), String> {
    let (name, text) = (name.trim(), text.trim());
    let is_name = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
    if !is_name || name.chars().any(char::is_control) {
        return Err(format!(
            "a search name must have 1 to {NAME_CHARS_MAX} characters and no control characters"
        ));
    }
    if text.is_empty() || text.chars().count() > CHARS_MAX {
        return Err("the search is empty; there is nothing to save".to_owned());
    }
    if let Err(mistake) = Search::parse(text) {
        return Err(format!("the search is invalid: {}", mistake.why));
    }
    let saved = engine.save_search(name, text, who).await;
    saved.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Options;

    #[tokio::test]
    async fn the_name_of_a_search_has_up_to_80_characters() {
        let options = Options {
            database: "sqlite::memory:".to_owned(),
            brief: true,
            ..Options::default()
        };
        let engine = Engine::open(&options).await.unwrap();
        for (chars, is_saved) in [(0, false), (1, true), (79, true), (80, true), (81, false)] {
            let saved = save_search(&engine, &"é".repeat(chars), "a", "ada").await;
            assert_eq!(saved.is_ok(), is_saved, "{chars} characters");
        }
        for (chars, is_saved) in [(999, true), (1_000, true), (1_001, false)] {
            let saved = save_search(&engine, "name", &"é".repeat(chars), "ada").await;
            assert_eq!(saved.is_ok(), is_saved, "a text of {chars} characters");
        }
        engine.close().await;
    }
}
