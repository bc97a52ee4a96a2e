//! JSON texts: parsing, removal of whitespace, and comparison.
//!
//! A text is parsed once, without recursion, into a flat list of entries that refer to positions in the text. Numbers,
//! escapes and the order of keys therefore stay as they were written.

use std::borrow::Cow;
use std::ops::Range;

use crate::budget::{Budget, BudgetExceeded};

mod equality;
mod number;
mod reader;

pub use equality::are_equal;
use reader::Reader;

/// Maximum nesting depth of SQLite's JSON functions; they treat deeper JSON as malformed.
pub const SQL_DEPTH_MAX: usize = 1_000;

/// The text is not JSON. `at` is the byte offset of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not valid JSON (byte {at})")]
pub struct Malformed {
    pub at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Null,
    True,
    False,
    Integer,
    Real,
    /// Whether the text contains escapes.
    Text(bool),
    Array,
    Object,
}

/// A value or a key: its text from `start` to `end` (without the quotes of a string), and the index of the entry after
/// its contents. In 32 bits, because a text has an entry for each two bytes at worst.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub kind: Kind,
    start: u32,
    end: u32,
    next: u32,
}

impl Entry {
    fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn next(&self) -> usize {
        self.next as usize
    }
}

/// Bytes that [`Json::read`] occupies at most for a text, beside the text.
pub fn parsed_bytes(text: &str) -> usize {
    reader::entries_max(text.as_bytes()) * size_of::<Entry>()
}

/// A parsed JSON text. In an object, each key is followed by its value.
#[derive(Debug)]
pub struct Json<'t> {
    text: Cow<'t, str>,
    entries: Vec<Entry>,
    /// Whether the text has no whitespace between tokens.
    is_minified: bool,
}

impl<'t> Json<'t> {
    /// Parses a JSON text (RFC 8259) with a nesting depth of at most `depth_max`.
    pub fn read(text: impl Into<Cow<'t, str>>, depth_max: usize) -> Result<Json<'t>, Malformed> {
        let text = text.into();
        let Reader {
            entries,
            is_minified,
            ..
        } = Reader::read(&text, true, depth_max)?;
        Ok(Json {
            text,
            entries,
            is_minified,
        })
    }

    pub fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)
    }

    /// A part of the text, borrowed if possible. A copy spends the budget.
    fn cut(
        &self,
        range: Range<usize>,
        budget: &mut Budget,
    ) -> Result<Cow<'t, str>, BudgetExceeded> {
        Ok(match &self.text {
            Cow::Borrowed(text) => Cow::Borrowed(text.get(range).unwrap_or_default()),
            Cow::Owned(text) => {
                budget.spend(range.len())?;
                Cow::Owned(text.get(range).unwrap_or_default().to_owned())
            }
        })
    }

    /// The source text of a number, string or key.
    pub fn source(&self, index: usize) -> &str {
        let entry = self.entry(index);
        let text = entry.and_then(|entry| self.text.get(entry.range()));
        text.unwrap_or_default()
    }

    fn is_escaped(&self, index: usize) -> bool {
        let entry = self.entry(index);
        entry.is_some_and(|entry| entry.kind == Kind::Text(true))
    }

    /// The value of a string, without escapes.
    pub fn string_value(
        &self,
        index: usize,
        budget: &mut Budget,
    ) -> Result<Cow<'t, str>, BudgetExceeded> {
        if self.is_escaped(index) {
            let source = self.source(index);
            budget.spend(source.len())?;
            let text = String::from_utf8(unescaped(source));
            let text = text.unwrap_or_else(|broken| replaced(broken.as_bytes()));
            return Ok(Cow::Owned(text));
        }
        match self.entry(index) {
            Some(entry) => self.cut(entry.range(), budget),
            None => Ok(Cow::Borrowed("")),
        }
    }

    /// Whether the value of a key is `wanted`.
    pub fn key_is(
        &self,
        index: usize,
        wanted: &str,
        budget: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        if self.is_escaped(index) {
            return Ok(self.string_value(index, budget)? == wanted);
        }
        let source = self.source(index);
        if source.len() == wanted.len() {
            budget.spend(source.len())?;
        }
        Ok(source == wanted)
    }

    /// The direct children of an array or object.
    pub fn children(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.entry(index).map_or(0, Entry::next);
        let mut at = index + 1;
        std::iter::from_fn(move || {
            let child = at;
            let entry = self.entry(child).filter(|_| child < end)?;
            at = entry.next();
            Some(child)
        })
    }

    /// The JSON text of an entry, without whitespace.
    pub fn minified(
        &self,
        index: usize,
        budget: &mut Budget,
    ) -> Result<Cow<'t, str>, BudgetExceeded> {
        let Some(entry) = self.entry(index) else {
            return Ok(Cow::Borrowed(""));
        };
        let Range { start, end } = entry.range();
        let range = match entry.kind {
            Kind::Text(_) => start.saturating_sub(1)..end + 1,
            _ => start..end,
        };
        let text = self.cut(range, budget)?;
        if self.is_minified {
            return Ok(text);
        }
        budget.spend(text.len())?;
        Ok(Cow::Owned(strip_whitespace(&text)))
    }
}

/// Removes whitespace outside of strings.
fn strip_whitespace(text: &str) -> String {
    let mut is_inside = false;
    let mut is_escaped = false;
    let is_kept = |sign: &char| {
        if is_inside {
            is_inside = is_escaped || *sign != '"';
            is_escaped = !is_escaped && *sign == '\\';
            return true;
        }
        is_inside = *sign == '"';
        !matches!(sign, ' ' | '\t' | '\n' | '\r')
    };
    text.chars().filter(is_kept).collect()
}

/// Decodes the bytes of [`unescaped`]; each unpaired surrogate becomes U+FFFD.
fn replaced(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        // The three bytes of a surrogate are three invalid chunks, of which only the first begins with 0xed.
        if chunk.invalid().first() == Some(&0xed) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

/// Resolves escapes. An unpaired surrogate becomes three bytes, as in WTF-8.
fn unescaped(source: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let mut chars = after.chars();
        let plain = match chars.next() {
            Some('b') => 0x08,
            Some('f') => 0x0c,
            Some('n') => b'\n',
            Some('r') => b'\r',
            Some('t') => b'\t',
            Some('u') => {
                rest = unicode(chars.as_str(), &mut bytes);
                continue;
            }
            Some(other) => u8::try_from(other).unwrap_or_default(),
            None => break,
        };
        bytes.push(plain);
        rest = chars.as_str();
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Decodes the four digits of a `\u` escape, or the two escapes of a surrogate pair. Returns the rest.
fn unicode<'t>(digits: &'t str, bytes: &mut Vec<u8>) -> &'t str {
    let unit = |at: usize| {
        let digits = digits.get(at..at + 4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let first = unit(0).unwrap_or_default();
    let second = digits.get(4..6).filter(|between| *between == "\\u");
    let second = second.and_then(|_| unit(6));
    if let (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) = (first, second) {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        push_char(code, bytes);
        return digits.get(10..).unwrap_or_default();
    }
    push_char(first, bytes);
    digits.get(4..).unwrap_or_default()
}

fn push_char(code: u32, bytes: &mut Vec<u8>) {
    if let Some(char) = char::from_u32(code) {
        bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        return;
    }
    let part = |shift: u32| u8::try_from((code >> shift) & 0x3f).unwrap_or_default();
    bytes.extend_from_slice(&[0xe0 | part(12), 0x80 | part(6), 0x80 | part(0)]);
}

/// A JSON text without whitespace between tokens. Everything else is unchanged, including numbers of any size. The
/// depth is not limited.
pub fn minified(text: &str) -> Result<String, Malformed> {
    if Reader::read(text, false, usize::MAX)?.is_minified {
        return Ok(text.to_owned());
    }
    Ok(strip_whitespace(text))
}
