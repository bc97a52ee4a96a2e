//! Folds the long objects and arrays of formatted JSON, without changing its text.

use crate::ui::components::payload::formatter::Token;

/// JSON with more lines has folds.
const UNFOLDED_LINES_MAX: usize = 50;

/// An object or array with at least this many lines inside can be folded.
const FOLD_LINES: usize = 10;

/// Maximum depth of folds inside each other.
const LEVELS: usize = 3;

/// Maximum number of folds in a text.
const FOLDS_MAX: usize = 300;

/// A part of a line.
pub type Piece<'a> = (Token, &'a str);

/// Formatted JSON in parts, whose texts together are the whole text.
#[derive(Debug, PartialEq)]
pub enum Part<'a> {
    Text(Vec<Piece<'a>>),
    /// The first line of an object or array, and what is inside. The last line is after it.
    Fold(Vec<Piece<'a>>, Vec<Part<'a>>),
}

/// The length of the text of these parts, in bytes.
pub fn length(parts: &[Part<'_>]) -> usize {
    let pieces = |pieces: &[Piece<'_>]| pieces.iter().map(|(_, text)| text.len()).sum::<usize>();
    let part = |part: &Part<'_>| match part {
        Part::Text(found) => pieces(found),
        Part::Fold(first, inside) => pieces(first) + length(inside),
    };
    parts.iter().map(part).sum()
}

/// A line with its end, and its depth.
struct Line<'a> {
    pieces: Vec<Piece<'a>>,
    depth: usize,
}

/// The parts of formatted JSON; `None` if it has nothing to fold.
pub fn fold(tokens: &[(Token, String)]) -> Option<Vec<Part<'_>>> {
    let lines = lines(tokens);
    if lines.len() <= UNFOLDED_LINES_MAX {
        return None;
    }
    let mut left = FOLDS_MAX;
    let parts = parts(&lines, LEVELS, &mut left);
    (left < FOLDS_MAX).then_some(parts)
}

fn lines(tokens: &[(Token, String)]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut pieces = Vec::new();
    for (token, text) in tokens {
        if *token != Token::Punctuation {
            pieces.push((*token, text.as_str()));
            continue;
        }
        for part in text.split_inclusive('\n') {
            pieces.push((*token, part));
            if part.ends_with('\n') {
                lines.push(line(std::mem::take(&mut pieces)));
            }
        }
    }
    if !pieces.is_empty() {
        lines.push(line(pieces));
    }
    lines
}

fn line(pieces: Vec<Piece<'_>>) -> Line<'_> {
    let indent = pieces.first().map_or(0, |(_, text)| {
        text.len() - text.trim_start_matches(' ').len()
    });
    Line {
        pieces,
        depth: indent / 2,
    }
}

fn parts<'a>(lines: &[Line<'a>], levels: usize, left: &mut usize) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let mut rest = lines;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let inside = after.iter().take_while(|line| line.depth > first.depth);
        let inside = inside.count();
        // The outermost brackets are not a fold.
        let folds = first.depth > 0 && inside >= FOLD_LINES && levels > 0 && *left > 0;
        match after.split_at_checked(inside) {
            Some((inside, after)) if folds => {
                *left -= 1;
                let inside = self::parts(inside, levels - 1, left);
                parts.push(Part::Fold(first.pieces.clone(), inside));
                rest = after;
            }
            _ => match parts.last_mut() {
                Some(Part::Text(text)) => text.extend(&first.pieces),
                _ => parts.push(Part::Text(first.pieces.clone())),
            },
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::components::payload::formatter::format;

    fn text(parts: &[Part<'_>]) -> String {
        let pieces =
            |pieces: &[Piece<'_>]| -> String { pieces.iter().map(|(_, text)| *text).collect() };
        let part = |part: &Part<'_>| match part {
            Part::Text(found) => pieces(found),
            Part::Fold(first, inside) => pieces(first) + &text(inside),
        };
        parts.iter().map(part).collect()
    }

    fn json(rows: usize) -> String {
        let rows: Vec<String> = (0..rows).map(|n| format!("{{\"n\":{n}}}")).collect();
        format!(
            "{{\"name\":\"x\",\"rows\":[{}],\"end\":{{}}}}",
            rows.join(",")
        )
    }

    #[test]
    fn the_text_of_folded_json_is_unchanged() {
        let tokens = format(&json(40)).unwrap();
        let whole: String = tokens.iter().map(|(_, text)| text.as_str()).collect();
        let parts = fold(&tokens).unwrap();
        assert_eq!(text(&parts), whole);
        assert_eq!(length(&parts), whole.len());
        let [Part::Text(_), Part::Fold(first, inside), Part::Text(last)] = &parts[..] else {
            panic!("{parts:?}");
        };
        let join = |pieces: &[Piece<'_>]| -> String { pieces.iter().map(|(_, it)| *it).collect() };
        assert_eq!(join(first), "  \"rows\": [\n");
        assert!(text(inside).starts_with("    {\n      \"n\": 0\n    },\n"));
        assert_eq!(join(last), "  ],\n  \"end\": {}\n}");
    }

    #[test]
    fn short_json_and_flat_json_have_no_folds() {
        assert_eq!(fold(&format(&json(5)).unwrap()), None);
        let flat: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        let flat = format!("[{}]", flat.join(","));
        assert_eq!(fold(&format(&flat).unwrap()), None);
    }

    #[test]
    fn a_text_has_at_most_300_folds() {
        let inner: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let rows = vec![format!("[{}]", inner.join(",")); 400];
        let tokens = format(&format!("[{}]", rows.join(","))).unwrap();
        let parts = fold(&tokens).unwrap();
        let folds = parts.iter().filter(|part| matches!(part, Part::Fold(..)));
        assert_eq!(folds.count(), FOLDS_MAX);
        let whole: String = tokens.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(text(&parts), whole);
    }
}
