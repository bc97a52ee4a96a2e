//! Payloads as text. JSON is indented and colored; strings and numbers are not changed. A form finds a text in a long
//! payload (`?find=`).

pub mod find;
pub mod folding;
pub mod formatter;

use std::cell::Cell;

use leptos::prelude::*;

use crate::blocking;
use crate::budget::Budget;
use crate::ui::components::payload::find::{Highlighter, Matches, find_form, wanted};
use crate::ui::components::payload::folding::{Lines, Part, Piece, length};
use crate::ui::components::payload::formatter::{Token, format};
use crate::ui::components::styles;
use crate::ui::page_request::PageRequest;

/// Maximum number of bytes of a payload that a page shows.
const SHOWN_BYTES: usize = 200_000;

/// Maximum size in bytes, and maximum number of tokens, of a payload that is colored.
const COLORED_BYTES: usize = 30_000;

const COLORED_TOKENS: usize = 5_000;

/// Formatting a longer text takes milliseconds, so other tasks of the thread continue on another one.
const LONG_BYTES: usize = 16 << 10;

/// Bytes of JSON that the texts of one list together format and color. Each colored token is an element of the page.
const LIST_FORMATTED_BYTES: usize = 30_000;

/// In lists, JSON longer than this many characters is collapsed.
const INLINE_CHARS_MAX: usize = 120;

const ALL_BY_API: &str = "The API returns all of it.";

/// The ID and the accessible name of the element that contains a text.
type Frame = (&'static str, &'static str);

const PAYLOAD: Frame = ("payload", "Payload");

/// The payload of a job, in which the request can find a text.
pub fn payload(body: &str, request: &PageRequest) -> AnyView {
    beginning(body, body.len(), request)
}

/// A payload of this many bytes, of which `body` is what a page shows ([`first`]).
pub fn beginning(body: &str, bytes: usize, request: &PageRequest) -> AnyView {
    let wanted = wanted(request);
    let (inner, matches) = match body.len() < bytes {
        true => highlighted(body, &wanted),
        false => formatted(body, &wanted),
    };
    searched((body, bytes), ALL_BY_API, inner, &matches, request)
}

/// The state of a job.
pub fn state(text: &str) -> AnyView {
    framed(
        ("state", "State"),
        styles::PAYLOAD,
        formatted(text, "").0,
        part(first(text), text.len(), ALL_BY_API),
    )
}

/// A text, formatted if it is JSON. If it is too long, it is cut, and `rest` says where to find the rest.
pub fn json(text: &str, rest: &str, request: &PageRequest) -> AnyView {
    let wanted = wanted(request);
    let (inner, matches) = formatted(text, &wanted);
    searched((text, text.len()), rest, inner, &matches, request)
}

/// A text without formatting. If it is too long, it is cut, and `rest` says where to find the rest.
pub fn plain(text: &str, rest: &str, request: &PageRequest) -> AnyView {
    let (inner, matches) = highlighted(first(text), &wanted(request));
    searched((text, text.len()), rest, inner, &matches, request)
}

/// The text, of which there are `bytes` bytes, with the form that finds a part of it.
fn searched(
    (text, bytes): (&str, usize),
    rest: &str,
    inner: AnyView,
    matches: &Matches,
    request: &PageRequest,
) -> AnyView {
    let part = part(first(text), bytes, rest);
    let form = find_form(bytes, matches, part.is_some(), request);
    view! { {form} {framed(PAYLOAD, styles::PAYLOAD, inner, part)} }.into_any()
}

/// JSON text, formatted unless it is cut, and what was found in it. Without a text to find, all folds are open.
fn formatted(text: &str, wanted: &str) -> (AnyView, Matches) {
    match text.len() > LONG_BYTES {
        true => blocking::block_in_place(|| formatted_at_once(text, wanted)),
        false => formatted_at_once(text, wanted),
    }
}

fn formatted_at_once(text: &str, wanted: &str) -> (AnyView, Matches) {
    let shown = first(text);
    let tokens = match shown.len() < text.len() {
        true => None,
        false => format(text),
    };
    let Some(tokens) = tokens else {
        return highlighted(shown, wanted);
    };
    let pieces = || tokens.iter().map(|(token, text)| (*token, &**text));
    let matches = match wanted {
        "" => Matches::default(),
        _ => Matches::of(&pieces().map(|(_, text)| text).collect::<String>(), wanted),
    };
    let mut found = matches.highlighter(wanted);
    let is_colored = is_colored(text.len(), tokens.len());
    let view = match Lines::of(&tokens).fold() {
        Some(parts) => folded(&parts, is_colored, &mut found),
        None => pieces_view(pieces(), is_colored, &mut found),
    };
    (view, matches)
}

/// A text as it is, with the matches highlighted.
fn highlighted(shown: &str, wanted: &str) -> (AnyView, Matches) {
    let matches = Matches::of(shown, wanted);
    (marked(shown, &mut matches.highlighter(wanted)), matches)
}

fn marked(text: &str, found: &mut Highlighter<'_>) -> AnyView {
    if found.is_done() {
        return text.to_owned().into_any();
    }
    let parts = found.split(text).into_iter().map(|(text, is_match)| {
        let text = text.to_owned();
        if is_match {
            view! { <mark>{text}</mark> }.into_any()
        } else {
            text.into_any()
        }
    });
    parts.collect_view().into_any()
}

fn is_colored(bytes: usize, tokens: usize) -> bool {
    bytes <= COLORED_BYTES && tokens <= COLORED_TOKENS
}

/// The bytes of JSON that a list may still format.
pub struct FormatBudget(Cell<Budget>);

impl Default for FormatBudget {
    fn default() -> FormatBudget {
        FormatBudget(Cell::new(Budget::new(LIST_FORMATTED_BYTES as u64)))
    }
}

impl FormatBudget {
    /// Whether the budget is enough for a text of this size, which it then pays for.
    fn pays_for(&self, bytes: usize) -> bool {
        let mut budget = self.0.get();
        let is_enough = budget.spend(bytes).is_ok();
        self.0.set(budget);
        is_enough
    }
}

/// JSON text in a list: in full if it is short, otherwise collapsed after its beginning, and formatted if the budget of
/// the list is enough.
pub fn collapsed(text: &str, budget: &FormatBudget) -> AnyView {
    let Some((cut, _)) = text.char_indices().nth(INLINE_CHARS_MAX) else {
        return view! { <code class="col-start-2 text-muted wrap-anywhere in-[td]:ml-1.5">{text.to_owned()}</code> }.into_any();
    };
    let beginning = text.get(..cut).unwrap_or_default().to_owned();
    let rest = part(first(text), text.len(), ALL_BY_API);
    let whole = match budget.pays_for(text.len()) {
        true => formatted(text, "").0,
        false => first(text).to_owned().into_any(),
    };
    view! {
        <details class="inline-block max-w-full align-top [&_summary]:wrap-anywhere">
            <summary><code>{beginning} "…"</code></summary>
            <pre class=styles::PAYLOAD tabindex="0" aria-label="Full text">{whole}</pre>
            {rest.map(|rest| view! { <p class="text-muted wrap-anywhere">{rest}</p> })}
        </details>
    }
    .into_any()
}

/// A `<pre>` element with `inner`, and the note `part` if the content is not complete.
pub fn pre(class: &'static str, inner: AnyView, part: Option<String>) -> AnyView {
    framed(PAYLOAD, class, inner, part)
}

fn framed(
    (id, label): Frame,
    class: &'static str,
    inner: AnyView,
    part: Option<String>,
) -> AnyView {
    view! {
        <pre id=id class=class tabindex="0" aria-label=label>{inner}</pre>
        {part.map(|part| view! { <p class="text-muted wrap-anywhere">{part}</p> })}
    }
    .into_any()
}

/// The beginning of a text that a page shows: at most `SHOWN_BYTES`.
pub fn first(text: &str) -> &str {
    let cut = text.floor_char_boundary(SHOWN_BYTES.min(text.len()));
    text.get(..cut).unwrap_or_default()
}

/// The note below a text of which only a part is shown; `rest` says where to find the rest.
fn part(shown: &str, bytes: usize, rest: &str) -> Option<String> {
    (shown.len() < bytes).then(|| {
        let shown = shown.len();
        format!("Showing the first {shown} of {bytes} bytes. {rest}")
    })
}

/// Parts with folds. Folds in which something was found are open. If no text is searched for, all folds are open.
fn folded(parts: &[Part<'_>], is_colored: bool, found: &mut Highlighter<'_>) -> AnyView {
    let parts = parts.iter().map(|part| match part {
        Part::Text(pieces) => pieces_view(pieces.iter().copied(), is_colored, found),
        Part::Fold(first, inside) => {
            let first = pieces_view(first.iter().copied(), is_colored, found);
            let open = found.opens_next(length(inside));
            let inside = folded(inside, is_colored, found);
            view! { <details open=open><summary>{first}</summary><div class="mt-0">{inside}</div></details> }
                .into_any()
        }
    });
    let parts: Vec<AnyView> = parts.collect();
    parts.into_any()
}

fn pieces_view<'a>(
    pieces: impl Iterator<Item = Piece<'a>>,
    is_colored: bool,
    found: &mut Highlighter<'_>,
) -> AnyView {
    if !is_colored {
        let text: String = pieces.map(|(_, text)| text).collect();
        return marked(&text, found);
    }
    pieces
        .map(|(token, text)| {
            let text = marked(text, found);
            let class = match token {
                Token::Key => "text-accent",
                Token::Text => "text-complete",
                Token::Value => "text-scheduled",
                Token::Punctuation => return text,
            };
            view! { <span class=class>{text}</span> }.into_any()
        })
        .collect_view()
        .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_a_list_have_few_colored_tokens_together() {
        let text = format!("[{}1]", "1,".repeat(2_400));
        let spans = |texts: usize| {
            let budget = FormatBudget::default();
            let shown = (0..texts).map(|_| collapsed(&text, &budget).to_html());
            shown.collect::<String>().matches("<span").count()
        };
        assert!(spans(1) > 2_000);
        assert!(spans(200) <= LIST_FORMATTED_BYTES, "{}", spans(200));
        assert_eq!(spans(200), spans(20));
    }

    #[test]
    fn the_first_200000_bytes_of_a_payload_are_shown() {
        for (bytes, expected) in [(199_999, 199_999), (200_000, 200_000), (200_001, 200_000)] {
            let text = "x".repeat(bytes);
            let shown = first(&text);
            assert_eq!(shown.len(), expected, "{bytes} bytes");
            assert_eq!(part(shown, bytes, "").is_some(), bytes > 200_000);
        }
    }

    #[test]
    fn a_payload_of_30000_bytes_and_5000_tokens_is_colored() {
        for (bytes, tokens, expected) in [
            (29_999, 4_999, true),
            (30_000, 5_000, true),
            (30_001, 5_000, false),
            (30_000, 5_001, false),
        ] {
            assert_eq!(is_colored(bytes, tokens), expected, "{bytes} {tokens}");
        }
    }
}
