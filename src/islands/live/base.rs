//! The rendering of the page that the server sent last, and how the next one differs from it (`ui/http/delta.rs`).

use std::cell::RefCell;

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

/// The page that the server sent: a whole page, or a delta. `None` if it does not fit; then the next request gets a whole
/// page.
pub fn page(answer: String) -> Option<String> {
    if answer.starts_with('<') {
        return Some(answer);
    }
    let new = BASE.take();
    let (_, base) = &new;
    let (id, mut rest) = answer.split_once('\n')?;
    let mut page = String::new();
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        if let Some(length) = line.strip_prefix('+') {
            let (text, after) = rest.split_at_checked(length.parse().ok()?)?;
            page.push_str(text);
            rest = after;
        } else {
            let (from, length) = line.strip_prefix('=')?.split_once(' ')?;
            let from: usize = from.parse().ok()?;
            let end = from.checked_add(length.parse().ok()?)?;
            page.push_str(base.get(from..end)?);
        }
    }
    BASE.set((id.to_owned(), page.clone()));
    Some(page)
}
