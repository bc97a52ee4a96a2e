//! Formats JSON without changing strings and numbers.

/// Maximum nesting; deeper JSON is not formatted.
const DEPTH_MAX: usize = 100;

/// Maximum growth of JSON by formatting, as a factor. JSON that would grow more is not formatted, except up to
/// `SHORT_BYTES`.
pub const GROWTH_MAX: usize = 4;

pub const SHORT_BYTES: usize = 4_096;

/// A token of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The name of an object member.
    Key,
    /// Another string.
    Text,
    /// A number, true, false or null.
    Value,
    /// Brackets, commas and the white space around them.
    Frame,
}

/// Splits JSON text into tokens and adds line breaks and indents between them; the tokens do not change. Returns `None`
/// if the text is not JSON, is nested too deeply, or would grow too much. Takes time and memory linear in the length of
/// the text.
pub fn pieces(text: &str) -> Option<Vec<(Piece, String)>> {
    let mut pieces = Pieces {
        all: Vec::new(),
        room: (text.len() * GROWTH_MAX).max(SHORT_BYTES),
    };
    let mut depth = 0_usize;
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        match first {
            '"' => {
                let end = string_end(rest)?;
                let (word, after) = rest.split_at_checked(end)?;
                let is_key = after.trim_start().starts_with(':');
                pieces.push(if is_key { Piece::Key } else { Piece::Text }, word)?;
                rest = after;
            }
            '{' | '[' => {
                let close = if first == '{' { '}' } else { ']' };
                rest = rest.get(1..)?.trim_start();
                if let Some(after) = rest.strip_prefix(close) {
                    pieces.push(Piece::Frame, if first == '{' { "{}" } else { "[]" })?;
                    rest = after;
                } else {
                    depth += 1;
                    if depth > DEPTH_MAX {
                        return None;
                    }
                    pieces.push(Piece::Frame, &format!("{first}{}", line(depth)))?;
                }
            }
            '}' | ']' => {
                depth = depth.checked_sub(1)?;
                pieces.push(Piece::Frame, &format!("{}{first}", line(depth)))?;
                rest = rest.get(1..)?;
            }
            ',' => {
                pieces.push(Piece::Frame, &format!(",{}", line(depth)))?;
                rest = rest.get(1..)?;
            }
            ':' => {
                pieces.push(Piece::Frame, ": ")?;
                rest = rest.get(1..)?;
            }
            _ => {
                let end = rest
                    .find(|c: char| c.is_whitespace() || "\"{}[],:".contains(c))
                    .unwrap_or(rest.len());
                let (word, after) = rest.split_at_checked(end)?;
                pieces.push(Piece::Value, word)?;
                rest = after;
            }
        }
        rest = rest.trim_start();
    }
    (depth == 0).then_some(pieces.all)
}

/// The tokens so far, and the number of bytes that may still be added.
struct Pieces {
    all: Vec<(Piece, String)>,
    room: usize,
}

impl Pieces {
    /// Adds a token; `None` if the limit of bytes is reached.
    fn push(&mut self, piece: Piece, text: &str) -> Option<()> {
        self.room = self.room.checked_sub(text.len())?;
        match self.all.last_mut() {
            Some((Piece::Frame, before)) if piece == Piece::Frame => before.push_str(text),
            _ => self.all.push((piece, text.to_owned())),
        }
        Some(())
    }
}

fn line(depth: usize) -> String {
    format!("\n{}", "  ".repeat(depth))
}

/// The byte position after the end of the string at the start of `text`.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_out(text: &str) -> Option<String> {
        Some(pieces(text)?.into_iter().map(|(_, text)| text).collect())
    }

    #[test]
    fn formatting_changes_only_white_space() {
        let exact = r#"{"a":12345678901234567890,"a":1.0,"b":[],"c":{ },"d":"x\" {,:} \\","e":[1e400,-0,null]}"#;
        let shown = laid_out(exact).unwrap();
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(bare(&shown), bare(exact));
        assert!(
            shown.starts_with("{\n  \"a\": 12345678901234567890,\n  \"a\": 1.0,\n  \"b\": [],")
        );
    }

    #[test]
    fn scalars_and_invalid_json_are_not_formatted() {
        assert_eq!(laid_out("12").as_deref(), Some("12"));
        assert_eq!(laid_out("\"open"), None);
        assert_eq!(laid_out("]"), None);
        assert_eq!(laid_out("{"), None);
        assert_eq!(laid_out("").as_deref(), Some(""));
    }

    #[test]
    fn deeply_nested_json_is_not_formatted() {
        let long = "long ".repeat(10_000);
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!("{open}{long:?}{close}")
        };
        assert!(laid_out(&nested(99)).is_some() && laid_out(&nested(100)).is_some());
        for depth in [101, 32_767, 100_000] {
            assert_eq!(laid_out(&nested(depth)), None, "{depth}");
        }
    }

    #[test]
    fn formatting_is_linear_in_the_text() {
        let (open, close) = ("[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        let wide = format!("{open}1{}{close}", ",1".repeat(50_000));
        assert_eq!(laid_out(&wide), None);
        for text in [
            format!("[1{}]", ",1".repeat(50_000)),
            format!("{open}{:?}{close}", "long ".repeat(10_000)),
            format!("[{{}}{}]", ",{}".repeat(50_000)),
        ] {
            let laid_out = laid_out(&text).unwrap();
            assert!(laid_out.len() <= GROWTH_MAX * text.len());
        }
        let short = laid_out("[[[[1]]]]").unwrap();
        assert!(short.starts_with("[\n  [\n    [\n"), "{short}");
    }

    /// In these texts, each extra character adds one byte, and each extra level adds its indents.
    #[test]
    fn formatted_json_grows_up_to_4_times_or_4096_bytes() {
        let laid_out = |depth: usize, chars: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            let text = format!("{open}\"{}\"{close}", "x".repeat(chars));
            laid_out(&text).map(|laid_out| (laid_out.len(), text.len()))
        };
        assert_eq!(laid_out(44, 45), Some((4_095, 135)));
        assert_eq!(laid_out(44, 46), Some((4_096, 136)));
        assert_eq!(laid_out(44, 47), None);
        assert_eq!(laid_out(50, 1_597), None);
        assert_eq!(laid_out(50, 1_598), Some((4 * 1_700, 1_700)));
        assert_eq!(laid_out(50, 1_599), Some((6_801, 1_701)));
    }

    #[test]
    fn keys_differ_from_texts() {
        let pieces = pieces(r#"{"k" : "t"}"#).unwrap();
        assert_eq!(pieces[1], (Piece::Key, "\"k\"".to_owned()));
        assert_eq!(pieces[3], (Piece::Text, "\"t\"".to_owned()));
    }
}
