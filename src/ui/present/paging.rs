//! Pages of lists by key.

use crate::engine::{PageOf, PageStart};
use crate::ui::model::paging::{Neighbors, PagePlace};

/// The place of a page; the first page for a text that is not a position.
pub fn place(page: &PagePlace) -> PageStart {
    match (page.after.parse(), page.before.parse()) {
        (Ok(position), _) => PageStart::After(position),
        (_, Ok(position)) => PageStart::Before(position),
        _ => PageStart::First,
    }
}

/// The positions of the pages next to this one.
pub fn neighbors<T>(page: &PageOf<T>) -> Neighbors {
    Neighbors {
        previous: page.previous.map(|position| position.to_string()),
        next: page.next.map(|position| position.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Position;

    #[test]
    fn a_text_that_is_no_position_is_the_first_page() {
        let position = Position::at(5, 7);
        let page = |after: &str, before: &str| {
            place(&PagePlace {
                after: after.to_owned(),
                before: before.to_owned(),
            })
        };
        let text = position.to_string();
        assert_eq!(page(&text, ""), PageStart::After(position));
        assert_eq!(page("", &text), PageStart::Before(position));
        assert_eq!(page("", ""), PageStart::First);
        assert_eq!(page("50", "x"), PageStart::First);
    }
}
