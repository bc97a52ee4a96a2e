//! Parses a search and reports the position of the first error.

use super::fingerprint::is_hash;
use super::json::Number;
use super::time_condition::TimeCondition;
use super::{
    CHARS_MAX, Compare, Condition, PROTOCOLS, Pattern, STATES, Search, SyntaxError, TERMS_MAX,
    Term, ValueCondition, YES_OR_NO,
};

/// Maximum number of steps in a path.
const PATH_MAX: usize = 32;

/// Maximum nesting depth of parentheses.
const DEPTH_MAX: usize = 8;

/// The keys, for error messages.
const KEYS: &str = "state, queue, class, tag, worker, group, error, fp, tracked, payload, data.path, priority, retries, created, updated, api, ns";

const DATA_HELP: &str = "write data.user.id:42, data.total:>100, or data.total:* for any value";
const TIME_HELP: &str = "an age with > or <, like >2h or <30m (units s, m, h, d, w), or a UTC date, like >2026-11-01 or <2026-11-01T10:00";

pub fn parse(text: &str) -> Result<Search, SyntaxError> {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() > CHARS_MAX {
        let why = format!("the search is too long; the limit is {CHARS_MAX} characters");
        return Err(syntax_error(CHARS_MAX, chars.len(), &why));
    }
    let odd = |c: &char| c.is_control() && !c.is_whitespace();
    if let Some(at) = chars.iter().position(odd) {
        return Err(syntax_error(
            at,
            at + 1,
            "this character is not allowed in a search",
        ));
    }
    let mut reader = Reader {
        chars: &chars,
        at: 0,
        depth: 0,
        terms: 0,
    };
    reader.alternatives()
}

fn syntax_error(from: usize, to: usize, why: &str) -> SyntaxError {
    let why = why.to_owned();
    SyntaxError { from, to, why }
}

struct Reader<'c> {
    chars: &'c [char],
    at: usize,
    /// The number of open parentheses.
    depth: usize,
    /// The number of terms so far, including groups.
    terms: usize,
}

/// The value after a colon.
struct Value {
    text: String,
    quoted: bool,
    from: usize,
    to: usize,
}

impl Value {
    fn error(&self, why: &str) -> SyntaxError {
        syntax_error(self.from, self.to, why)
    }

    fn pattern(&self) -> Pattern {
        if self.quoted {
            Pattern::literal(&self.text)
        } else {
            Pattern::with_stars(&self.text)
        }
    }

    /// The comparison operator before a number or a time, and the rest.
    fn compared(&self) -> (Compare, bool, &str) {
        let signs = [
            (">=", Compare::GreaterEqual),
            ("<=", Compare::LessEqual),
            (">", Compare::Greater),
            ("<", Compare::Less),
        ];
        let found = signs.into_iter().find_map(|(sign, compare)| {
            let rest = self.text.strip_prefix(sign).filter(|_| !self.quoted)?;
            Some((compare, true, rest))
        });
        found.unwrap_or((Compare::Is, false, &self.text))
    }

    fn number(&self, example: &str) -> Result<(Compare, Number), SyntaxError> {
        let (compare, _, rest) = self.compared();
        let why = format!("expected a number, like {example}");
        let number = Number::read(rest).ok_or_else(|| self.error(&why))?;
        Ok((compare, number))
    }

    fn time(&self) -> Result<TimeCondition, SyntaxError> {
        let (compare, signed, rest) = self.compared();
        match TimeCondition::read(compare, rest) {
            Some(TimeCondition::Age(..)) if !signed => {
                let why = format!(
                    "missing > or <. Write >{rest} for more than {rest} ago, or <{rest} for less"
                );
                Err(self.error(&why))
            }
            Some(condition) => Ok(condition),
            None => Err(self.error(&format!("expected {TIME_HELP}"))),
        }
    }
}

impl Reader<'_> {
    /// Parses searches with `OR` between them, up to the end or a closing parenthesis.
    fn alternatives(&mut self) -> Result<Search, SyntaxError> {
        self.skip_whitespace();
        let (start, mut all) = (self.at, Vec::new());
        loop {
            let search = self.all_terms()?;
            let (at, is_or) = (self.at, self.eat_or());
            if search.terms.is_empty() && (is_or || !all.is_empty()) {
                let why =
                    "OR needs a term before and after it. To search for the word, write \"OR\"";
                return Err(syntax_error(at, self.at, why));
            }
            all.push(search);
            if !is_or {
                break;
            }
        }
        if all.len() == 1 {
            return Ok(all.swap_remove(0));
        }
        let text = self.text(start, self.at).trim_end().to_owned();
        let condition = Condition::Any(all);
        Ok(Search {
            terms: vec![Term {
                text,
                is_negated: false,
                condition,
            }],
        })
    }

    /// Parses terms up to the end, `OR`, or a closing parenthesis.
    fn all_terms(&mut self) -> Result<Search, SyntaxError> {
        let mut terms = Vec::new();
        loop {
            self.skip_whitespace();
            let start = self.at;
            if self.is_at_end() || self.is_at_word("OR") {
                return Ok(Search { terms });
            }
            if self.terms == TERMS_MAX {
                let why = format!("too many terms; the limit is {TERMS_MAX}");
                return Err(syntax_error(start, self.chars.len(), &why));
            }
            self.terms += 1;
            if self.is_at_word("AND") {
                let why = "AND is implied: write the terms one after the other. To search for the word, write \"AND\"";
                return Err(syntax_error(start, start + 3, why));
            }
            let is_negated = self.eat('-');
            if is_negated && self.is_at_term_end() {
                let why = "write the minus directly before a term, like -state:complete. To search for a minus, write \"-\"";
                return Err(syntax_error(start, self.at, why));
            }
            let condition = match self.peek() {
                Some('(') => self.group()?,
                _ => self.condition()?,
            };
            terms.push(Term {
                text: self.text(start, self.at),
                is_negated,
                condition,
            });
        }
    }

    /// Parses a search in parentheses.
    fn group(&mut self) -> Result<Condition, SyntaxError> {
        let start = self.at;
        self.at += 1;
        if self.depth == DEPTH_MAX {
            let why = format!("parentheses are nested too deeply; the limit is {DEPTH_MAX} levels");
            return Err(syntax_error(start, self.at, &why));
        }
        self.depth += 1;
        let inner = self.alternatives()?;
        if !self.eat(')') {
            let why = "this parenthesis is not closed. To search for it, put the text in quotes";
            return Err(syntax_error(start, start + 1, why));
        }
        self.depth -= 1;
        if inner.terms.is_empty() {
            return Err(syntax_error(start, self.at, "the parentheses are empty"));
        }
        if !self.is_at_term_end() {
            let why = "expected a space after the parenthesis";
            return Err(syntax_error(self.at, self.at + 1, why));
        }
        Ok(Condition::Any(match inner.terms.as_slice() {
            [
                Term {
                    is_negated: false,
                    condition: Condition::Any(all),
                    ..
                },
            ] => all.clone(),
            _ => vec![inner],
        }))
    }

    /// Whether the text or the open parenthesis ends here.
    fn is_at_end(&self) -> bool {
        self.peek().is_none_or(|c| c == ')' && self.depth > 0)
    }

    /// Whether the next word is this one.
    fn is_at_word(&self, word: &str) -> bool {
        let mut next = self.chars.get(self.at..).unwrap_or_default().iter();
        word.chars().all(|c| next.next() == Some(&c))
            && next
                .next()
                .is_none_or(|c| c.is_whitespace() || (*c == ')' && self.depth > 0))
    }

    fn eat_or(&mut self) -> bool {
        let is_or = self.is_at_word("OR");
        if is_or {
            self.at += 2;
        }
        is_or
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.at += 1;
        }
        is_there
    }

    /// Whether a term ends here.
    fn is_at_term_end(&self) -> bool {
        self.is_at_end() || self.peek().is_some_and(char::is_whitespace)
    }

    fn skip_whitespace(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn text(&self, from: usize, to: usize) -> String {
        let chars = self.chars.iter().take(to).skip(from);
        chars.collect()
    }

    /// Consumes the characters before the next space or one of `ends`.
    fn until(&mut self, ends: &[char]) -> String {
        let from = self.at;
        while !self.is_at_term_end() && self.peek().is_some_and(|c| !ends.contains(&c)) {
            self.at += 1;
        }
        self.text(from, self.at)
    }

    /// Parses a term after its optional minus.
    fn condition(&mut self) -> Result<Condition, SyntaxError> {
        let from = self.at;
        if self.peek() == Some('"') {
            let word = self.value("a word")?;
            if word.text.is_empty() {
                return Err(word.error("the quotes are empty"));
            }
            return Ok(a_word(word));
        }
        let key = self.until(&[':']);
        if key.strip_prefix("data.").is_some() {
            self.at = from + "data.".len();
            return self.data();
        }
        let key_end = self.at;
        let is_word = key.is_empty() || !self.eat(':');
        let key = key.to_ascii_lowercase();
        if !is_word && let Some(condition) = self.condition_of_key(&key)? {
            return Ok(condition);
        }
        // `Mail::Send` is a word.
        if is_word || self.peek() == Some(':') {
            self.at = from;
            let text = self.until(&[]);
            return Ok(a_word(Value {
                text,
                quoted: false,
                from,
                to: self.at,
            }));
        }
        let word = self.until(&[]);
        let why = format!(
            "unknown term “{key}:”. Terms are {KEYS}. To search for this text itself, put it in quotes: \"{key}:{}\"",
            word.replace('"', "\\\"")
        );
        Err(syntax_error(from, key_end + 1, &why))
    }

    /// The condition of a key and its value; `None` if the key is unknown.
    fn condition_of_key(&mut self, key: &str) -> Result<Option<Condition>, SyntaxError> {
        let condition = match key {
            "state" => Condition::State(self.words("state:failed,stalled", "state", &STATES)?),
            "api" => Condition::Api(self.words("api:lmstfy", "protocol", &PROTOCOLS)?),
            "ns" | "namespace" => Condition::Namespace(self.value("ns:billing")?.pattern()),
            "queue" => Condition::Queue(self.value("queue:mail")?.pattern()),
            "klass" | "class" => Condition::Class(self.value("class:Send*")?.pattern()),
            "tag" => Condition::Tag(self.value("tag:vip")?.pattern()),
            "worker" => Condition::Worker(self.value("worker:host*")?.pattern()),
            "tracked" => Condition::Tracked(self.words("tracked:yes", "value", &YES_OR_NO)?),
            "group" | "type" => Condition::FailureGroup(self.value("group:Timeout")?.pattern()),
            "error" => {
                let value = self.value("error:\"connection reset\"")?;
                if value.text.is_empty() {
                    return Err(value.error("the quotes are empty"));
                }
                Condition::FailureMessage(value.pattern().lower())
            }
            "fp" => {
                let value = self.value("fp:1a2b3c4d")?;
                if !is_hash(&value.text) {
                    let why = "expected a message fingerprint of 8 hexadecimal digits, like fp:1a2b3c4d. The page of a failure group shows it";
                    return Err(value.error(why));
                }
                Condition::Fingerprint(value.text.to_ascii_lowercase())
            }
            "payload" => {
                let value = self.value("payload:\"order 17\"")?;
                if value.text.is_empty() {
                    return Err(value.error("the quotes are empty"));
                }
                Condition::Payload(value.pattern().lower())
            }
            "data" => {
                let why = format!("the payload path is missing: {DATA_HELP}");
                return Err(syntax_error(self.at.saturating_sub(1), self.at, &why));
            }
            "priority" => {
                let (compare, number) = self.value("priority:>=5")?.number("5 or >=5")?;
                Condition::Priority(compare, number)
            }
            "retries" | "tries" => {
                let (compare, number) = self.value("retries:0")?.number("0 or <3")?;
                Condition::RetriesLeft(compare, number)
            }
            "created" => Condition::Created(self.value("created:>2h")?.time()?),
            "updated" => Condition::Updated(self.value("updated:<30m")?.time()?),
            _ => return Ok(None),
        };
        Ok(Some(condition))
    }

    /// Parses the value after a colon: up to a space, or in quotes.
    fn value(&mut self, example: &str) -> Result<Value, SyntaxError> {
        let from = self.at;
        if !self.eat('"') {
            let text = self.until(&[]);
            if text.is_empty() {
                let why = format!(
                    "a value is missing. Write it like {example}, or \"\" for an empty value"
                );
                return Err(syntax_error(from, from, &why));
            }
            return Ok(Value {
                text,
                quoted: false,
                from,
                to: self.at,
            });
        }
        let text = self.quoted(from)?;
        if !self.is_at_term_end() {
            let why = "expected a space after the quote. Write a quote inside quotes as \\\"";
            return Err(syntax_error(self.at, self.at + 1, why));
        }
        Ok(Value {
            text,
            quoted: true,
            from,
            to: self.at,
        })
    }

    /// Parses the rest of a quoted text and the closing quote.
    fn quoted(&mut self, from: usize) -> Result<String, SyntaxError> {
        let mut text = String::new();
        loop {
            let Some(c) = self.peek() else {
                return Err(syntax_error(from, self.at, "this quote is not closed"));
            };
            self.at += 1;
            match (c, self.peek()) {
                ('"', _) => return Ok(text),
                ('\\', Some(next @ ('"' | '\\'))) => {
                    self.at += 1;
                    text.push(next);
                }
                _ => text.push(c),
            }
        }
    }

    /// Parses a comma-separated list of words from `known`.
    fn words(
        &mut self,
        example: &str,
        kind: &str,
        known: &[&'static str],
    ) -> Result<Vec<&'static str>, SyntaxError> {
        let value = self.value(example)?;
        let mut at = value.from + usize::from(value.quoted);
        let mut found = Vec::new();
        for word in value.text.split(',') {
            let lower = word.to_ascii_lowercase();
            // A former name of the state on the dashboard.
            let lower = if lower == "depending" {
                "depends"
            } else {
                &lower
            };
            let length = word.chars().count();
            let Some(name) = known.iter().find(|name| **name == lower) else {
                let why = format!("unknown {kind} “{word}”. Use one of {}", known.join(", "));
                return Err(syntax_error(at, at + length, &why));
            };
            if !found.contains(name) {
                found.push(*name);
            }
            at += length + 1;
        }
        Ok(found)
    }

    /// Parses a path after `data.` and the condition on its value.
    fn data(&mut self) -> Result<Condition, SyntaxError> {
        let mut path = Vec::new();
        loop {
            let from = self.at;
            let name = if self.eat('"') {
                self.quoted(from)?
            } else {
                let name = self.until(&['.', ':', '"']);
                if name.is_empty() {
                    let why = format!("a name is missing in the path: {DATA_HELP}");
                    return Err(syntax_error(from, from, &why));
                }
                name
            };
            path.push(name);
            if path.len() > PATH_MAX {
                let why = format!("the path is too long; the limit is {PATH_MAX} names");
                return Err(syntax_error(from, self.at, &why));
            }
            if self.eat(':') {
                break;
            }
            if !self.eat('.') {
                let why = format!("the value is missing after the path: {DATA_HELP}");
                return Err(syntax_error(self.at, self.at, &why));
            }
        }
        let value = self.value("data.total:>100")?;
        let (compare, signed, rest) = value.compared();
        let condition = if signed {
            let why = "expected a number after the sign, like >100. To search for text that starts with the sign, put it in quotes";
            let number = Number::read(rest).ok_or_else(|| value.error(why))?;
            ValueCondition::Number(compare, number)
        } else {
            ValueCondition::of(value.pattern())
        };
        Ok(Condition::Data(path, condition))
    }
}

fn a_word(word: Value) -> Condition {
    let pattern = word.pattern().lower();
    Condition::Word {
        text: word.text,
        pattern,
    }
}
