//! Formats JSON without changing strings and numbers.

/// Maximum nesting; deeper JSON is not formatted.
const DEPTH_MAX: usize = 100;

/// Maximum growth of JSON by formatting; JSON that would grow more is not formatted, unless it is short.
pub const GROWTH_MAX: usize = 4;

pub const SHORT_BYTES: usize = 4_096;

/// A token of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The name of a member.
    Key,
    /// Another string.
    Text,
    /// A number, true, false or null.
    Value,
    /// Brackets, commas and the white space around them.
    Frame,
}

/// Cuts JSON text into pieces and lays it out; the pieces themselves stay as they are. `None` where it is not JSON, is
/// nested too deep, or would become too long. It takes time and memory in proportion to the text.
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

/// Pieces as they are laid out, and how many bytes more they may have.
struct Pieces {
    all: Vec<(Piece, String)>,
    room: usize,
}

impl Pieces {
    /// `None` if there is no room for it.
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

/// Where the string that `text` begins with ends, in bytes.
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
    fn layout_changes_nothing_but_white_space() {
        let exact = r#"{"a":12345678901234567890,"a":1.0,"b":[],"c":{ },"d":"x\" {,:} \\","e":[1e400,-0,null]}"#;
        let shown = laid_out(exact).unwrap();
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(bare(&shown), bare(exact));
        assert!(
            shown.starts_with("{\n  \"a\": 12345678901234567890,\n  \"a\": 1.0,\n  \"b\": [],")
        );
    }

    #[test]
    fn scalars_and_rubbish_are_shown_as_they_are() {
        assert_eq!(laid_out("12").as_deref(), Some("12"));
        assert_eq!(laid_out("\"open"), None);
        assert_eq!(laid_out("]"), None);
        assert_eq!(laid_out("{"), None);
        assert_eq!(laid_out("").as_deref(), Some(""));
    }

    #[test]
    fn what_is_nested_too_deep_is_shown_as_it_is_written() {
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
    fn a_layout_has_a_length_in_proportion_to_the_text() {
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

    /// Each of these grows by one byte with its text, and by the indents of its depth.
    #[test]
    fn a_layout_is_up_to_4_times_as_long_or_4096_bytes() {
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
