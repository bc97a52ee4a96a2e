//! Finds a text in a payload as the page shows it. Ignores the case of ASCII letters.

use std::ops::Range;

use leptos::prelude::*;

use crate::time;
use crate::ui::components::basics::{number_of, plural};
use crate::ui::page_request::PageRequest;

/// Maximum number of matches that are highlighted; the others are counted.
const HIGHLIGHTS_MAX: usize = 1_000;

/// Maximum length of the text to find, in characters.
const WANTED_CHARS_MAX: usize = 200;

/// Payloads with at least this many bytes have the form.
const LONG_BYTES: usize = 500;

/// The parameter with the text to find.
const PARAMETER: &str = "find";

/// The text that the request wants to find; empty for none.
pub fn wanted(request: &PageRequest) -> String {
    let wanted = request.param(PARAMETER).unwrap_or_default();
    wanted.chars().take(WANTED_CHARS_MAX).collect()
}

/// Where a text was found.
#[derive(Debug, Default, PartialEq)]
pub struct Matches {
    /// The byte ranges of the first matches, in order.
    places: Vec<Range<usize>>,
    total: usize,
}

impl Matches {
    /// The matches in `text`, which do not overlap.
    pub fn of(text: &str, wanted: &str) -> Matches {
        let mut matches = Matches::default();
        if wanted.is_empty() {
            return matches;
        }
        // Lower case in ASCII has the same byte positions as the text.
        let (text, wanted) = (text.to_ascii_lowercase(), wanted.to_ascii_lowercase());
        for (at, found) in text.match_indices(&wanted) {
            if matches.total < HIGHLIGHTS_MAX {
                matches.places.push(at..at + found.len());
            }
            matches.total += 1;
        }
        matches
    }

    /// Highlights the matches in the text, which it is given in parts.
    pub fn highlighter(&self, wanted: &str) -> Highlighter<'_> {
        Highlighter {
            left: &self.places,
            at: 0,
            opens_all: wanted.is_empty(),
        }
    }

    fn describe(&self, is_part: bool) -> String {
        let part = if is_part {
            " in the part that is shown"
        } else {
            ""
        };
        match self.total {
            0 => format!("No matches{part}"),
            n if n > HIGHLIGHTS_MAX => format!(
                "{}{part}; the first {} are highlighted",
                plural(number_of(n), "match", "matches"),
                time::number(number_of(HIGHLIGHTS_MAX))
            ),
            n => format!("{}{part}", plural(number_of(n), "match", "matches")),
        }
    }
}

/// Goes through a text in parts and highlights the matches.
pub struct Highlighter<'m> {
    /// The matches that end after `at`.
    left: &'m [Range<usize>],
    /// The position of the next part.
    at: usize,
    opens_all: bool,
}

impl Highlighter<'_> {
    /// Whether there are no further matches.
    pub fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    /// Whether a fold with the next `length` bytes is open.
    pub fn opens_next(&self, length: usize) -> bool {
        let next = self.left.first();
        self.opens_all || next.is_some_and(|place| place.start < self.at + length)
    }

    /// Splits the next part of the text, and says which parts of it are matches.
    pub fn split<'t>(&mut self, text: &'t str) -> Vec<(&'t str, bool)> {
        let (begin, end) = (self.at, self.at + text.len());
        self.at = end;
        let mut parts = Vec::new();
        let mut push = |from: usize, to: usize, is_match: bool| {
            let part = text.get(from - begin..to - begin).unwrap_or_default();
            if !part.is_empty() {
                parts.push((part, is_match));
            }
        };
        let mut done = begin;
        while let Some(place) = self.left.first().filter(|place| place.start < end) {
            let from = place.start.max(begin);
            push(done, from, false);
            done = place.end.min(end);
            push(from, done, true);
            if place.end > end {
                // The rest of the match is in the next part.
                break;
            }
            self.left = self.left.get(1..).unwrap_or_default();
        }
        push(done, end, false);
        parts
    }
}

/// The form that finds a text in a payload of this many bytes, and how many times it was found. `is_part` says that the
/// page does not show all of the payload.
pub fn find_form(
    bytes: usize,
    matches: &Matches,
    is_part: bool,
    request: &PageRequest,
) -> Option<AnyView> {
    let wanted = wanted(request);
    if bytes < LONG_BYTES && wanted.is_empty() {
        return None;
    }
    let others = request.all_params().into_iter();
    let others = others
        .filter(|(name, _)| name != PARAMETER)
        .map(|(name, value)| view! { <input type="hidden" name=name value=value /> });
    let result = (!wanted.is_empty()).then(|| matches.describe(is_part));
    // The heading of the payload has the ID `data` on all pages.
    let view = view! {
        <form method="get" action=format!("{}#data", request.path) role="search" class="mb-2 flex flex-wrap items-center gap-2">
            {others.collect_view()}
            <label for="find-text">"Find in the payload"</label>
            <input
                id="find-text"
                name=PARAMETER
                type="search"
                value=wanted
                maxlength=WANTED_CHARS_MAX.to_string()
                autocomplete="off"
                autocapitalize="off"
                spellcheck="false"
            />
            <button type="submit" class="btn">"Find"</button>
            <span class="text-muted wrap-anywhere" role="status">{result}</span>
        </form>
    };
    Some(view.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with its matches in brackets, split into parts of these lengths.
    fn marked(text: &str, wanted: &str, lengths: &[usize]) -> String {
        let matches = Matches::of(text, wanted);
        let mut highlighter = matches.highlighter(wanted);
        let (mut rest, mut shown) = (text, String::new());
        for length in lengths {
            let (part, after) = rest.split_at(*length);
            rest = after;
            for (part, is_match) in highlighter.split(part) {
                match is_match {
                    true => shown.push_str(&format!("[{part}]")),
                    false => shown.push_str(part),
                }
            }
            shown.push('|');
        }
        for (part, is_match) in highlighter.split(rest) {
            shown.push_str(&if is_match {
                format!("[{part}]")
            } else {
                part.to_owned()
            });
        }
        shown
    }

    #[test]
    fn matches_are_highlighted_in_any_case() {
        assert_eq!(marked("a Bb b", "B", &[]), "a [B][b] [b]");
        assert_eq!(marked("aaaa", "aa", &[]), "[aa][aa]");
        assert_eq!(marked("äÄß<", "Ä", &[]), "ä[Ä]ß<");
        assert_eq!(marked("none", "x", &[]), "none");
        assert_eq!(marked("none", "", &[]), "none");
    }

    #[test]
    fn a_match_in_several_parts_is_highlighted_in_each() {
        assert_eq!(
            marked("\"n\": 10,", "n\": 1", &[3, 2]),
            "\"[n\"]|[: ]|[1]0,"
        );
        assert_eq!(marked("abcabc", "abc", &[0, 3]), "|[abc]|[abc]");
        assert_eq!(marked("abcd", "bc", &[1, 2]), "a|[bc]|d");
    }

    #[test]
    fn folds_with_matches_are_open() {
        let matches = Matches::of("0123456789", "45");
        let mut highlighter = matches.highlighter("45");
        assert!(!highlighter.opens_next(4));
        assert!(highlighter.opens_next(5));
        // The match begins before the fold and ends in it.
        highlighter.split("01234");
        assert!(highlighter.opens_next(1));
        highlighter.split("5");
        assert!(highlighter.is_done() && !highlighter.opens_next(4));
        assert!(Matches::default().highlighter("").opens_next(1));
    }

    #[test]
    fn the_first_1000_matches_are_highlighted_and_all_are_counted() {
        for (matches, places) in [(999, 999), (1_000, 1_000), (1_001, 1_000)] {
            let found = Matches::of(&"x".repeat(matches), "x");
            assert_eq!((found.total, found.places.len()), (matches, places));
        }
        let describe = |n: usize, is_part| Matches::of(&"x".repeat(n), "x").describe(is_part);
        assert_eq!(describe(0, false), "No matches");
        assert_eq!(describe(1, true), "1 match in the part that is shown");
        assert_eq!(
            describe(1_234, false),
            "1,234 matches; the first 1,000 are highlighted"
        );
    }
}
