//! Folds the long objects and arrays of formatted JSON, without changing its text.

use std::borrow::Cow;

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
    Text(&'a [Piece<'a>]),
    /// The first line of an object or array, and what is inside. The last line is after it.
    Fold(&'a [Piece<'a>], Vec<Part<'a>>),
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

/// A line: the end of its pieces, and its depth.
struct Line {
    end: usize,
    depth: usize,
}

/// The pieces of formatted JSON by line.
pub struct Lines<'a> {
    pieces: Vec<Piece<'a>>,
    lines: Vec<Line>,
}

impl<'a> Lines<'a> {
    /// Splits formatted JSON at the ends of its lines.
    pub fn of(tokens: &'a [(Token, Cow<'a, str>)]) -> Lines<'a> {
        let mut all = Lines {
            pieces: Vec::with_capacity(tokens.len()),
            lines: Vec::new(),
        };
        let mut start = 0;
        for (token, text) in tokens {
            if *token != Token::Punctuation {
                all.pieces.push((*token, text));
                continue;
            }
            for part in text.split_inclusive('\n') {
                all.pieces.push((*token, part));
                if part.ends_with('\n') {
                    start = all.end_line(start);
                }
            }
        }
        if start < all.pieces.len() {
            all.end_line(start);
        }
        all
    }

    /// Ends the line that begins with the piece `start`. Returns the start of the next one.
    fn end_line(&mut self, start: usize) -> usize {
        let indent = self.pieces.get(start).map_or(0, |(_, text)| {
            text.len() - text.trim_start_matches(' ').len()
        });
        let end = self.pieces.len();
        self.lines.push(Line {
            end,
            depth: indent / 2,
        });
        end
    }

    /// The parts of the text; `None` if it has nothing to fold.
    pub fn fold(&self) -> Option<Vec<Part<'_>>> {
        if self.lines.len() <= UNFOLDED_LINES_MAX {
            return None;
        }
        let mut left = FOLDS_MAX;
        let parts = self.parts(0, self.lines.len(), LEVELS, &mut left);
        (left < FOLDS_MAX).then_some(parts)
    }

    /// The pieces of the lines from `first` to before `end`.
    fn pieces(&self, first: usize, end: usize) -> &[Piece<'a>] {
        let end_of = |line: Option<usize>| {
            let line = line.and_then(|line| self.lines.get(line));
            line.map_or(0, |line| line.end)
        };
        let range = end_of(first.checked_sub(1))..end_of(end.checked_sub(1));
        self.pieces.get(range).unwrap_or_default()
    }

    /// The parts of these lines.
    fn parts(&self, first: usize, end: usize, levels: usize, left: &mut usize) -> Vec<Part<'_>> {
        let (mut parts, mut start, mut at) = (Vec::new(), first, first);
        while let Some(line) = self.lines.get(at).filter(|_| at < end) {
            let after = self.lines.get(at + 1..end).unwrap_or_default();
            let inside = after.iter().take_while(|it| it.depth > line.depth).count();
            at += 1;
            // The outermost brackets are not a fold.
            if line.depth > 0 && inside >= FOLD_LINES && levels > 0 && *left > 0 {
                *left -= 1;
                if start < at - 1 {
                    parts.push(Part::Text(self.pieces(start, at - 1)));
                }
                let parts_inside = self.parts(at, at + inside, levels - 1, left);
                parts.push(Part::Fold(self.pieces(at - 1, at), parts_inside));
                at += inside;
                start = at;
            }
        }
        if start < end {
            parts.push(Part::Text(self.pieces(start, end)));
        }
        parts
    }
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
        let json = json(40);
        let tokens = format(&json).unwrap();
        let whole: String = tokens.iter().map(|(_, text)| &**text).collect();
        let lines = Lines::of(&tokens);
        let parts = lines.fold().unwrap();
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
        assert_eq!(Lines::of(&format(&json(5)).unwrap()).fold(), None);
        let flat: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        let flat = format!("[{}]", flat.join(","));
        assert_eq!(Lines::of(&format(&flat).unwrap()).fold(), None);
    }

    #[test]
    fn a_text_has_at_most_300_folds() {
        let inner: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let rows = vec![format!("[{}]", inner.join(",")); 400];
        let json = format!("[{}]", rows.join(","));
        let tokens = format(&json).unwrap();
        let lines = Lines::of(&tokens);
        let parts = lines.fold().unwrap();
        let folds = parts.iter().filter(|part| matches!(part, Part::Fold(..)));
        assert_eq!(folds.count(), FOLDS_MAX);
        let whole: String = tokens.iter().map(|(_, text)| &**text).collect();
        assert_eq!(text(&parts), whole);
    }
}
