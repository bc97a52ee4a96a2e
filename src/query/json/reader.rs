//! The parser of JSON texts: one pass, without recursion.

use super::{Entry, Kind, Malformed};

/// The most entries that a text can have: one for each value and each key. Signs within strings count, too.
pub fn entries_max(text: &[u8]) -> usize {
    let begins = |sign: &&u8| matches!(**sign, b',' | b':' | b'[' | b'{');
    1 + text.iter().filter(begins).count()
}

/// A position or an index; texts are shorter than 4 GiB.
fn short(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// The state of the pass, and its result.
pub struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
    /// Whether the entries are wanted. Without them, a text needs no more memory than its depth.
    keeps_entries: bool,
    pub entries: Vec<Entry>,
    /// The arrays and objects that are still open: their entries, and the signs that close them.
    open: Vec<usize>,
    closers: Vec<u8>,
    /// Whether the text has no whitespace between tokens.
    pub is_minified: bool,
}

impl Reader<'_> {
    /// Reads a JSON text with a nesting depth of at most `depth_max`.
    ///
    /// # Errors
    /// Where it is not JSON, or too deep.
    pub fn read(
        text: &str,
        keeps_entries: bool,
        depth_max: usize,
    ) -> Result<Reader<'_>, Malformed> {
        let mut reader = Reader {
            bytes: text.as_bytes(),
            at: 0,
            keeps_entries,
            // At once, because a list that grows is copied to one of twice the size.
            entries: match keeps_entries {
                true => Vec::with_capacity(entries_max(text.as_bytes())),
                false => Vec::new(),
            },
            open: Vec::new(),
            closers: Vec::new(),
            is_minified: true,
        };
        match reader.document(depth_max) {
            Some(()) => Ok(reader),
            None => Err(Malformed { at: reader.at }),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
            self.is_minified = false;
        }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        if !self.keeps_entries {
            return;
        }
        self.entries.push(Entry {
            kind,
            start: short(start),
            end: short(end),
            next: short(self.entries.len() + 1),
        });
    }

    fn document(&mut self, depth_max: usize) -> Option<()> {
        self.skip_whitespace();
        loop {
            // Expects a value.
            let open = self.peek().filter(|sign| matches!(sign, b'[' | b'{'));
            match open {
                Some(_) if self.closers.len() >= depth_max => return None,
                Some(open) => {
                    self.begin(open);
                    if !self.is_closing() {
                        if open == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                }
                None => self.scalar()?,
            }
            if self.close_and_continue(open.is_some())? {
                return Some(());
            }
        }
    }

    fn begin(&mut self, open: u8) {
        let (kind, closer) = match open {
            b'[' => (Kind::Array, b']'),
            _ => (Kind::Object, b'}'),
        };
        self.closers.push(closer);
        if self.keeps_entries {
            self.open.push(self.entries.len());
        }
        self.push(kind, self.at, self.at);
        self.at += 1;
        self.skip_whitespace();
    }

    fn is_closing(&self) -> bool {
        self.closers
            .last()
            .is_some_and(|closer| self.peek() == Some(*closer))
    }

    /// After a value: closes the arrays and objects that end here and consumes the comma. True if the document is
    /// complete. With `closes`, an array or object has just begun and is empty, so it must close first.
    fn close_and_continue(&mut self, mut closes: bool) -> Option<bool> {
        loop {
            if !closes {
                self.skip_whitespace();
            }
            let Some(closer) = self.closers.last().copied() else {
                return (self.at == self.bytes.len()).then_some(true);
            };
            if !closes && self.take(b',') {
                self.skip_whitespace();
                if closer == b'}' {
                    self.key()?;
                }
                return Some(false);
            }
            if !self.is_closing() {
                return None;
            }
            self.at += 1;
            closes = false;
            self.closers.pop();
            let (end, next) = (self.at, self.entries.len());
            let index = self.open.pop();
            if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
                entry.end = short(end);
                entry.next = short(next);
            }
        }
    }

    fn key(&mut self) -> Option<()> {
        self.string()?;
        self.skip_whitespace();
        let is_followed = self.take(b':');
        self.skip_whitespace();
        is_followed.then_some(())
    }

    fn scalar(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'n' => self.word("null", Kind::Null),
            b't' => self.word("true", Kind::True),
            b'f' => self.word("false", Kind::False),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, kind: Kind) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        if !rest.starts_with(word.as_bytes()) {
            return None;
        }
        let start = self.at;
        self.at += word.len();
        self.push(kind, start, self.at);
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        if !self.take(b'"') {
            return None;
        }
        let start = self.at;
        let mut is_escaped = false;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    is_escaped = true;
                    self.at += 1;
                    self.escape()?;
                }
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
        self.push(Kind::Text(is_escaped), start, self.at);
        self.at += 1;
        Some(())
    }

    /// Parses an escape after its backslash.
    fn escape(&mut self) -> Option<()> {
        let digits = match self.peek()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 0,
            b'u' => 4,
            _ => return None,
        };
        self.at += 1;
        for _ in 0..digits {
            if !self.peek()?.is_ascii_hexdigit() {
                return None;
            }
            self.at += 1;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        let mut kind = Kind::Integer;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            kind = Kind::Real;
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            kind = Kind::Real;
            if !self.take(b'-') {
                self.take(b'+');
            }
            self.digits()?;
        }
        self.push(kind, start, self.at);
        Some(())
    }
}
