//! Actions on saved searches, which all users share.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::{Action, Target, act};
use crate::auth::Role;
use crate::engine::Engine;
use crate::search::{CHARS_MAX, Search};
use crate::ui::error::PageError;

/// Maximum length of the name of a search, in characters.
const NAME_CHARS_MAX: usize = 80;

fn target(form: &super::Form) -> Target {
    Target::new(
        format!("search {}", form.field("name")),
        "/ui/jobs".to_owned(),
    )
}

pub static SAVE_SEARCH: Action =
    Action::new("save_search", SaveSearch::PATH, Role::Operator, target);

/// Saves a search under a name; replaces an existing search with that name.
#[server]
pub async fn save_search(name: String, text: String, back: String) -> Result<(), PageError> {
    act(&SAVE_SEARCH, &back, async |context| {
        save(&context.engine, &name, &text, &context.user).await?;
        Ok(format!("Search saved as “{}”.", name.trim()).into())
    })
    .await
}

async fn save(engine: &Engine, name: &str, text: &str, user: &str) -> Result<(), String> {
    let (name, text) = (name.trim(), text.trim());
    let is_name = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
    if !is_name || name.chars().any(char::is_control) {
        return Err(format!(
            "a search name must have 1 to {NAME_CHARS_MAX} characters and no control characters"
        ));
    }
    if text.is_empty() {
        return Err("the search is empty; there is nothing to save".to_owned());
    }
    if text.chars().count() > CHARS_MAX {
        return Err(format!("the search has more than {CHARS_MAX} characters"));
    }
    if let Err(mistake) = Search::parse(text) {
        return Err(format!("the search is invalid: {}", mistake.why));
    }
    let saved = engine.save_search(name, text, user).await;
    saved.map_err(|error| error.to_string())
}

pub static DELETE_SEARCH: Action =
    Action::new("delete_search", DeleteSearch::PATH, Role::Operator, target);

/// Deletes a saved search. The path is that of earlier versions.
#[server(endpoint = "forget_search")]
pub async fn delete_search(name: String, back: String) -> Result<(), PageError> {
    act(&DELETE_SEARCH, &back, async |context| {
        context.engine.delete_search(&name).await?;
        Ok(format!("Saved search “{name}” deleted.").into())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::engine_without_tasks;

    #[tokio::test]
    async fn a_search_name_has_1_to_80_characters() {
        let engine = engine_without_tasks().await;
        for (chars, is_saved) in [(0, false), (1, true), (79, true), (80, true), (81, false)] {
            let saved = save(&engine, &"é".repeat(chars), "a", "ada").await;
            assert_eq!(saved.is_ok(), is_saved, "{chars} characters");
        }
        for (chars, is_saved) in [(999, true), (1_000, true), (1_001, false)] {
            let saved = save(&engine, "name", &"é".repeat(chars), "ada").await;
            assert_eq!(saved.is_ok(), is_saved, "a text of {chars} characters");
        }
        engine.close().await;
    }
}
