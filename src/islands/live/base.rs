//! The rendering of the page that the server sent last, and how the next one differs from it (`ui/http/delta.rs`).

use std::cell::RefCell;

use super::patch::applied;

thread_local! {
    /// The rendering, and its ID.
    static BASE: RefCell<(String, String)> = const { RefCell::new((String::new(), String::new())) };
}

/// The ID of the rendering.
pub fn id() -> String {
    BASE.with_borrow(|(id, _)| match id.as_str() {
        "" => "none".to_owned(),
        id => id.to_owned(),
    })
}

/// The page that the server sent: a whole page, or a delta. `None` if it does not fit; then the next request gets a
/// whole page.
pub fn page(answer: String) -> Option<String> {
    if answer.starts_with('<') {
        return Some(answer);
    }
    let (_, base) = BASE.take();
    let (id, page) = applied(&answer, &base)?;
    BASE.set((id.to_owned(), page.clone()));
    Some(page)
}
