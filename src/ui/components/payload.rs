//! Payloads as text. JSON is indented and colored; strings and numbers are not changed.

pub mod folding;
pub mod formatter;

use leptos::prelude::*;

use crate::ui::components::payload::folding::{Part, Piece, fold};
use crate::ui::components::payload::formatter::{Token, format};
use crate::ui::components::styles;

/// Maximum number of bytes of a payload that a page shows.
const SHOWN_BYTES: usize = 200_000;

/// Maximum size in bytes, and maximum number of tokens, of a payload that is colored.
const COLORED_BYTES: usize = 30_000;

const COLORED_TOKENS: usize = 5_000;

/// In lists, JSON longer than this many characters is collapsed.
const INLINE_CHARS_MAX: usize = 120;

const ALL_BY_API: &str = "The API returns all of it.";

/// The ID and the accessible name of the element that contains a text.
type Frame = (&'static str, &'static str);

const PAYLOAD: Frame = ("payload", "Payload");

/// The payload of a job.
pub fn payload(body: &str) -> AnyView {
    json(body, ALL_BY_API)
}

/// The state of a job.
pub fn state(text: &str) -> AnyView {
    json_in(("state", "State"), text, ALL_BY_API)
}

/// A text, formatted if it is JSON. If it is too long, it is cut, and `rest` says where to find the rest.
pub fn json(text: &str, rest: &str) -> AnyView {
    json_in(PAYLOAD, text, rest)
}

fn json_in(frame: Frame, text: &str, rest: &str) -> AnyView {
    framed(
        frame,
        styles::PAYLOAD,
        formatted(text),
        part(first(text), text, rest),
    )
}

/// JSON text, formatted unless it is cut.
fn formatted(text: &str) -> AnyView {
    let shown = first(text);
    if shown.len() < text.len() {
        return shown.to_owned().into_any();
    }
    match format(text) {
        Some(tokens) => {
            let is_colored = is_colored(text.len(), tokens.len());
            match fold(&tokens) {
                Some(parts) => folded(&parts, is_colored),
                None => {
                    let pieces = tokens.iter().map(|(token, text)| (*token, text.as_str()));
                    pieces_view(pieces, is_colored)
                }
            }
        }
        None => text.to_owned().into_any(),
    }
}

fn is_colored(bytes: usize, tokens: usize) -> bool {
    bytes <= COLORED_BYTES && tokens <= COLORED_TOKENS
}

/// JSON text in a list: in full if it is short, otherwise collapsed after its beginning.
pub fn collapsed(text: &str) -> AnyView {
    let Some((cut, _)) = text.char_indices().nth(INLINE_CHARS_MAX) else {
        return view! { <code class="col-start-2 text-muted wrap-anywhere in-[td]:ml-1.5">{text.to_owned()}</code> }.into_any();
    };
    let beginning = text.get(..cut).unwrap_or_default().to_owned();
    let rest = part(first(text), text, ALL_BY_API);
    view! {
        <details class="inline-block max-w-full align-top [&_summary]:wrap-anywhere">
            <summary><code>{beginning} "…"</code></summary>
            <pre class=styles::PAYLOAD tabindex="0" aria-label="Full text">{formatted(text)}</pre>
            {rest.map(|rest| view! { <p class="text-muted wrap-anywhere">{rest}</p> })}
        </details>
    }
    .into_any()
}

/// A text without formatting. If it is too long, it is cut, and `rest` says where to find the rest.
pub fn plain(text: &str, rest: &str) -> AnyView {
    let shown = first(text);
    pre(
        styles::PAYLOAD,
        shown.to_owned().into_any(),
        part(shown, text, rest),
    )
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

fn first(text: &str) -> &str {
    let cut = text.floor_char_boundary(SHOWN_BYTES.min(text.len()));
    text.get(..cut).unwrap_or_default()
}

fn part(shown: &str, all: &str, rest: &str) -> Option<String> {
    (shown.len() < all.len()).then(|| {
        format!(
            "Showing the first {} of {} bytes. {rest}",
            shown.len(),
            all.len()
        )
    })
}

/// Parts with folds, which are open.
fn folded(parts: &[Part<'_>], is_colored: bool) -> AnyView {
    let parts = parts.iter().map(|part| match part {
        Part::Text(pieces) => pieces_view(pieces.iter().copied(), is_colored),
        Part::Fold(first, inside) => {
            let first = pieces_view(first.iter().copied(), is_colored);
            view! { <details open><summary>{first}</summary><div class="mt-0">{folded(inside, is_colored)}</div></details> }
                .into_any()
        }
    });
    parts.collect_view().into_any()
}

fn pieces_view<'a>(pieces: impl Iterator<Item = Piece<'a>>, is_colored: bool) -> AnyView {
    if !is_colored {
        return pieces.map(|(_, text)| text).collect::<String>().into_any();
    }
    pieces
        .map(|(token, text)| {
            let text = text.to_owned();
            let class = match token {
                Token::Key => "text-accent",
                Token::Text => "text-complete",
                Token::Value => "text-scheduled",
                Token::Punctuation => return text.into_any(),
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
    fn the_first_200000_bytes_of_a_payload_are_shown() {
        for (bytes, expected) in [(199_999, 199_999), (200_000, 200_000), (200_001, 200_000)] {
            let text = "x".repeat(bytes);
            let shown = first(&text);
            assert_eq!(shown.len(), expected, "{bytes} bytes");
            assert_eq!(part(shown, &text, "").is_some(), bytes > 200_000);
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
