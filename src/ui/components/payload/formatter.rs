//! Formats JSON without changing strings and numbers.

use std::borrow::Cow;

/// Maximum nesting; deeper JSON is not formatted.
const DEPTH_MAX: usize = 100;

/// Maximum growth of JSON by formatting, as a factor. JSON that would grow more is not formatted, except up to
/// `SHORT_BYTES`.
pub const GROWTH_MAX: usize = 4;

pub const SHORT_BYTES: usize = 4_096;

/// Maximum number of tokens. JSON with more is not formatted: each occupies about 100 bytes until the page is complete.
pub const TOKENS_MAX: usize = 50_000;

/// A token of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// The name of an object member.
    Key,
    /// Another string.
    Text,
    /// A number, true, false or null.
    Value,
    /// Brackets, commas and the whitespace around them.
    Punctuation,
}

/// Splits JSON text into tokens and adds line breaks and indents between them; the tokens do not change. Returns `None`
/// if the text is not JSON, is nested too deeply, has too many tokens, or would grow too much. Takes time and memory
/// linear in the length of the text.
pub fn format(text: &str) -> Option<Vec<(Token, Cow<'_, str>)>> {
    let mut formatter = Formatter {
        tokens: Vec::new(),
        bytes_left: (text.len() * GROWTH_MAX).max(SHORT_BYTES),
    };
    let mut depth = 0_usize;
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        match first {
            '"' => {
                let end = string_end(rest)?;
                let (word, after) = rest.split_at_checked(end)?;
                let is_key = after.trim_start().starts_with(':');
                let token = if is_key { Token::Key } else { Token::Text };
                formatter.push(token, word.into())?;
                rest = after;
            }
            '{' | '[' => {
                let close = if first == '{' { '}' } else { ']' };
                rest = rest.get(1..)?.trim_start();
                if let Some(after) = rest.strip_prefix(close) {
                    let brackets = if first == '{' { "{}" } else { "[]" };
                    formatter.push(Token::Punctuation, brackets.into())?;
                    rest = after;
                } else {
                    depth += 1;
                    if depth > DEPTH_MAX {
                        return None;
                    }
                    formatter.punctuation(first, depth)?;
                }
            }
            '}' | ']' => {
                depth = depth.checked_sub(1)?;
                let end = format!("{}{first}", line(depth));
                formatter.push(Token::Punctuation, end.into())?;
                rest = rest.get(1..)?;
            }
            ',' => {
                formatter.punctuation(',', depth)?;
                rest = rest.get(1..)?;
            }
            ':' => {
                formatter.push(Token::Punctuation, ": ".into())?;
                rest = rest.get(1..)?;
            }
            _ => {
                let end = rest
                    .find(|c: char| c.is_whitespace() || "\"{}[],:".contains(c))
                    .unwrap_or(rest.len());
                let (word, after) = rest.split_at_checked(end)?;
                formatter.push(Token::Value, word.into())?;
                rest = after;
            }
        }
        rest = rest.trim_start();
    }
    (depth == 0).then_some(formatter.tokens)
}

/// The tokens so far, and the number of bytes that may still be added.
struct Formatter<'a> {
    tokens: Vec<(Token, Cow<'a, str>)>,
    bytes_left: usize,
}

impl<'a> Formatter<'a> {
    /// Adds a bracket or comma with the start of the next line.
    fn punctuation(&mut self, sign: char, depth: usize) -> Option<()> {
        self.push(Token::Punctuation, format!("{sign}{}", line(depth)).into())
    }

    /// Adds a token; `None` if a limit is reached.
    fn push(&mut self, token: Token, text: Cow<'a, str>) -> Option<()> {
        self.bytes_left = self.bytes_left.checked_sub(text.len())?;
        let is_full = self.tokens.len() >= TOKENS_MAX;
        match self.tokens.last_mut() {
            Some((Token::Punctuation, before)) if token == Token::Punctuation => {
                before.to_mut().push_str(&text);
            }
            _ if is_full => return None,
            _ => self.tokens.push((token, text)),
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

    fn formatted(text: &str) -> Option<String> {
        Some(format(text)?.into_iter().map(|(_, text)| text).collect())
    }

    #[test]
    fn formatting_changes_only_whitespace() {
        let exact = r#"{"a":12345678901234567890,"a":1.0,"b":[],"c":{ },"d":"x\" {,:} \\","e":[1e400,-0,null]}"#;
        let shown = formatted(exact).unwrap();
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(bare(&shown), bare(exact));
        assert!(
            shown.starts_with("{\n  \"a\": 12345678901234567890,\n  \"a\": 1.0,\n  \"b\": [],")
        );
    }

    #[test]
    fn scalars_and_invalid_json_are_not_formatted() {
        assert_eq!(formatted("12").as_deref(), Some("12"));
        assert_eq!(formatted("\"open"), None);
        assert_eq!(formatted("]"), None);
        assert_eq!(formatted("{"), None);
        assert_eq!(formatted("").as_deref(), Some(""));
    }

    #[test]
    fn deeply_nested_json_is_not_formatted() {
        let long = "long ".repeat(10_000);
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!("{open}{long:?}{close}")
        };
        assert!(formatted(&nested(99)).is_some() && formatted(&nested(100)).is_some());
        for depth in [101, 32_767, 100_000] {
            assert_eq!(formatted(&nested(depth)), None, "{depth}");
        }
    }

    #[test]
    fn formatting_is_linear_in_the_text() {
        let (open, close) = ("[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        let wide = format!("{open}1{}{close}", ",1".repeat(50_000));
        assert_eq!(formatted(&wide), None);
        for text in [
            format!("[1{}]", ",1".repeat(20_000)),
            format!("{open}{:?}{close}", "long ".repeat(10_000)),
            format!("[{{}}{}]", ",{}".repeat(50_000)),
        ] {
            let formatted = formatted(&text).unwrap();
            assert!(formatted.len() <= GROWTH_MAX * text.len());
        }
        let short = formatted("[[[[1]]]]").unwrap();
        assert!(short.starts_with("[\n  [\n    [\n"), "{short}");
    }

    /// In these texts, each extra character adds one byte, and each extra level adds its indents.
    #[test]
    fn formatted_json_grows_up_to_4_times_or_4096_bytes() {
        let formatted = |depth: usize, chars: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            let text = format!("{open}\"{}\"{close}", "x".repeat(chars));
            formatted(&text).map(|formatted| (formatted.len(), text.len()))
        };
        assert_eq!(formatted(44, 45), Some((4_095, 135)));
        assert_eq!(formatted(44, 46), Some((4_096, 136)));
        assert_eq!(formatted(44, 47), None);
        assert_eq!(formatted(50, 1_597), None);
        assert_eq!(formatted(50, 1_598), Some((4 * 1_700, 1_700)));
        assert_eq!(formatted(50, 1_599), Some((6_801, 1_701)));
    }

    #[test]
    fn json_of_50000_tokens_is_formatted() {
        // Brackets, numbers, and a comma between each two.
        for (numbers, expected) in [(24_999, true), (25_000, false)] {
            let text = format!("[1{}]", ",1".repeat(numbers - 1));
            let tokens = format(&text).map(|tokens| tokens.len());
            assert_eq!(tokens.is_some(), expected, "{numbers} {tokens:?}");
        }
    }

    #[test]
    fn keys_differ_from_texts() {
        let tokens = format(r#"{"k" : "t"}"#).unwrap();
        assert_eq!(tokens[1], (Token::Key, "\"k\"".into()));
        assert_eq!(tokens[3], (Token::Text, "\"t\"".into()));
    }
}
