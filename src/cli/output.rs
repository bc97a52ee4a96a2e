//! What commands print: aligned tables for people, and JSON. Texts of jobs and queues cannot control the terminal.

use serde::de::IgnoredAny;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Maximum width of a cell, in columns of the terminal.
const CELL_WIDTH_MAX: usize = 60;

/// Whether a terminal could act on the character, or show it as nothing or in another place: control characters,
/// directional marks, line separators, invisible characters.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text in one line, with escapes for everything that a terminal could act on.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            c if is_unsafe(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}

/// The same with line breaks kept.
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(printable).collect();
    lines.join("\n")
}

/// A JSON value as one line, in which the same characters are escaped.
pub fn json_line(value: &Value) -> String {
    json_line_with(value, &[])
}

/// An object as one line, with further fields whose values are JSON texts. These stay as they are, because parsing
/// could change their numbers. A text that is not JSON becomes a string.
pub fn json_line_with(object: &Value, fields: &[(&str, &str)]) -> String {
    let mut text = object.to_string();
    for (name, value) in fields {
        text.truncate(text.len().saturating_sub(1));
        let value = match serde_json::from_str::<IgnoredAny>(value) {
            // Outside of strings, line breaks are whitespace, and inside they are escaped.
            Ok(_) => value.replace(['\n', '\r'], " "),
            Err(_) => Value::from(*value).to_string(),
        };
        text.push_str(&format!(",\"{name}\":{value}}}"));
    }
    let mut line = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Outside of strings JSON has none of them.
        if is_unsafe(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                line.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line
}

/// The beginning of a text that fits into `width` columns; an ellipsis replaces the rest.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    short
}

/// A table with a line of titles.
#[derive(Debug)]
pub struct Table {
    titles: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(titles: &[&'static str]) -> Table {
        Table {
            titles: titles.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Its cells can be any texts.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        let cell = |cell: String| cut(&printable(&cell), CELL_WIDTH_MAX);
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text. Columns of numbers are aligned to the right; the last column is not padded at its end.
    pub fn render(&self) -> String {
        let columns = 0..self.titles.len();
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let widths: Vec<usize> = columns
            .clone()
            .map(|column| {
                let title = self.titles.get(column).map_or(0, |title| title.width());
                cells(column)
                    .map(|cell| cell.width())
                    .fold(title, usize::max)
            })
            .collect();
        let numeric: Vec<bool> = columns
            .map(|column| {
                let is_number = |cell: &String| {
                    cell.bytes()
                        .all(|byte| byte.is_ascii_digit() || byte == b',')
                };
                self.rows
                    .iter()
                    .any(|row| row.get(column).is_some_and(|it| !it.is_empty()))
                    && cells(column).all(is_number)
            })
            .collect();
        let titles: Vec<String> = self
            .titles
            .iter()
            .map(|title| (*title).to_owned())
            .collect();
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, width), is_number) in row.iter().zip(&widths).zip(&numeric) {
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                let (before, after) = if *is_number {
                    (padding.as_str(), "")
                } else {
                    ("", padding.as_str())
                };
                line.push_str(&format!("{before}{cell}{after}  "));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Names and values, aligned; values can be any texts. Rows with an empty value are left out.
pub fn fields<const N: usize>(rows: [(&str, String); N]) -> String {
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    let rows: Vec<(&str, String)> = rows.collect();
    let width = rows.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in rows {
        let value = printable(&value);
        text.push_str(&format!("{name:<width$}  {value}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_cannot_control_the_terminal() {
        let hostile = "a\u{1b}[2Jb\nc\u{9b}31m\u{202e}d\u{7f}";
        assert_eq!(
            printable(hostile),
            r"a\u{1b}[2Jb\nc\u{9b}31m\u{202e}d\u{7f}"
        );
        let line = json_line(&json!({ "id": hostile, "tag": "\u{e0041}日" }));
        assert!(!line.trim_end().chars().any(is_unsafe), "{line}");
        let back: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back, json!({ "id": hostile, "tag": "\u{e0041}日" }));
    }

    #[test]
    fn json_texts_stay_as_they_are() {
        let line = json_line_with(
            &json!({ "id": 1 }),
            &[("a", "{\n\"n\": 12345678901234567890.0}"), ("b", "no")],
        );
        assert_eq!(
            line,
            "{\"id\":1,\"a\":{ \"n\": 12345678901234567890.0},\"b\":\"no\"}\n"
        );
    }

    #[test]
    fn tables_are_aligned_by_the_width_on_the_terminal() {
        let mut table = Table::new(&["queue", "waiting", "state"]);
        table.row(["日本".to_owned(), "7".to_owned(), "ok".to_owned()]);
        table.row(["mail".to_owned(), "1,200".to_owned(), String::new()]);
        assert_eq!(
            table.render(),
            "queue  waiting  state\n日本         7  ok\nmail     1,200\n"
        );
    }

    #[test]
    fn long_cells_are_cut_with_an_ellipsis() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 5), "abcd…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
    }

    #[test]
    fn fields_without_a_value_are_left_out() {
        let text = fields([
            ("id", "a".to_owned()),
            ("class", String::new()),
            ("state", "x\ty".to_owned()),
        ]);
        assert_eq!(text, "id     a\nstate  x\\ty\n");
    }
}
