//! Fingerprints of error messages: messages that differ only in numbers, IDs and quoted texts have the same one.

/// Maximum number of characters of a message that its fingerprint depends on.
pub const MESSAGE_CHARS_MAX: usize = 1_000;
/// Maximum length of the text of a fingerprint, in characters.
const TEXT_CHARS_MAX: usize = 200;

/// Minimum length of a hexadecimal ID without decimal digits; shorter ones count as words.
const HEX_MIN: usize = 7;

/// Replaces the variable parts of a message.
const PLACEHOLDER: char = '·';

/// A kind of message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// Eight hexadecimal digits: a hash of `text` that is stable across servers and versions.
    pub hash: String,
    /// The message on one line, with `·` for numbers, hexadecimal IDs and quoted texts.
    pub text: String,
}

impl Fingerprint {
    /// The fingerprint of the first [`MESSAGE_CHARS_MAX`] characters of a message.
    pub fn of(message: &str) -> Fingerprint {
        let chars: Vec<char> = message.chars().take(MESSAGE_CHARS_MAX).collect();
        let text = normalized(&chars);
        Fingerprint {
            hash: format!("{:08x}", hash(&text)),
            text,
        }
    }
}

/// Whether a text has the form of a fingerprint's hash.
pub fn is_hash(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn normalized(chars: &[char]) -> String {
    let (mut out, mut unclosed) = (Normalizer::default(), Vec::new());
    let mut rest = chars;
    while let Some((&first, after)) = rest.split_first() {
        let (length, variable) = match first {
            '"' | '\'' | '`' | '“' | '‘' | '«' => match quoted(chars, rest, &mut unclosed) {
                Some(length) => (length, true),
                None => (1, false),
            },
            c if c.is_alphanumeric() => {
                let length = word(rest);
                (length, is_variable(rest.get(..length).unwrap_or_default()))
            }
            _ => (1, false),
        };
        if variable {
            out.push_placeholder();
        } else {
            rest.iter().take(length).for_each(|c| out.push(*c));
        }
        rest = rest.get(length..).unwrap_or(after);
    }
    out.text()
}

/// The length of the quoted text at the start of `rest`, in characters, if there is one. The quote must be closed; an
/// apostrophe after a letter or digit is not a quote. A quote without a closing one is added to `unclosed`, so that the
/// rest is searched only once for each kind of quote.
fn quoted(all: &[char], rest: &[char], unclosed: &mut Vec<char>) -> Option<usize> {
    let open = *rest.first()?;
    let before = all.get(..all.len() - rest.len())?.last();
    if open == '\'' && before.is_some_and(|c| c.is_alphanumeric()) {
        return None;
    }
    let close = match open {
        '“' => '”',
        '‘' => '’',
        '«' => '»',
        same => same,
    };
    if unclosed.contains(&close) {
        return None;
    }
    let mut escaped = false;
    for (at, c) in rest.iter().enumerate().skip(1) {
        if *c == close && !escaped {
            let is_inside = |c: &char| c.is_alphanumeric();
            let is_apostrophe = close == '\'' && rest.get(at + 1).is_some_and(is_inside);
            if !is_apostrophe {
                return Some(at + 1);
            }
        }
        escaped = *c == '\\' && !escaped;
    }
    unclosed.push(close);
    None
}

/// The length of the word at the start, in characters: letters, digits, and the separators inside an ID or a number.
fn word(rest: &[char]) -> usize {
    let (mut length, mut last, mut is_all_hex) = (0, None, true);
    while let Some(c) = rest.get(length) {
        let next = rest.get(length + 1);
        let in_number =
            last.is_some_and(char::is_ascii_digit) && next.is_some_and(char::is_ascii_digit);
        let in_id = is_all_hex && next.is_some_and(char::is_ascii_hexdigit);
        let joins = matches!(c, '-' | '.' | ':' | ',') && (in_number || in_id);
        if !(c.is_alphanumeric() || joins) {
            break;
        }
        is_all_hex = is_all_hex && is_hex(std::slice::from_ref(c));
        last = Some(c);
        length += 1;
    }
    length
}

fn is_hex(word: &[char]) -> bool {
    word.iter()
        .all(|c| c.is_ascii_hexdigit() || matches!(c, '-' | '.' | ':' | ','))
}

/// Whether a word is variable: it contains a digit, or is a long hexadecimal ID.
fn is_variable(word: &[char]) -> bool {
    word.iter().any(char::is_ascii_digit) || word.len() >= HEX_MIN && is_hex(word)
}

/// Builds the text. Merges consecutive whitespace and consecutive `·`.
#[derive(Default)]
struct Normalizer {
    chars: Vec<char>,
    space: bool,
}

impl Normalizer {
    fn push(&mut self, c: char) {
        if c.is_whitespace() || c.is_control() {
            self.space = true;
            return;
        }
        if std::mem::take(&mut self.space) && !self.chars.is_empty() {
            self.chars.push(' ');
        }
        self.chars.push(c);
    }

    fn push_placeholder(&mut self) {
        if self.space || self.chars.last() != Some(&PLACEHOLDER) {
            self.push(PLACEHOLDER);
        }
    }

    fn text(self) -> String {
        self.chars.into_iter().take(TEXT_CHARS_MAX).collect()
    }
}

/// FNV-1a, 32 bits. The algorithm must not change, because searches (`fp:`) contain hashes.
fn hash(text: &str) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for byte in text.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(message: &str) -> String {
        Fingerprint::of(message).text
    }

    #[test]
    fn what_differs_each_time_is_left_out() {
        for (message, expected) in [
            ("no stamp on letter 4711", "no stamp on letter ·"),
            ("timeout after 30.5s", "timeout after ·"),
            ("user 12,406 of 1-2-3", "user · of ·"),
            ("at 2026-11-20T13:22:05.123Z", "at ·"),
            ("host 10.0.0.1:8080 refused", "host · refused"),
            ("id 550e8400-e29b-41d4-a716-446655440000!", "id ·!"),
            ("commit deadbeef, face it", "commit ·, face it"),
            ("pointer 0x7ffe1234abcd", "pointer ·"),
            ("no file \"a b\\\" c\" in 'home'", "no file · in ·"),
            ("can't open “x”, don't 'ask'", "can't open ·, don't ·"),
            ("an open \" quote", "an open \" quote"),
            ("  two\n\t words  ", "two words"),
            ("worker-3 lost job_9", "worker-· lost job_·"),
            ("HTTP 502", "HTTP ·"),
            ("Ada: no 日本 7", "Ada: no 日本 ·"),
            ("", ""),
            ("a: b, c. d", "a: b, c. d"),
        ] {
            assert_eq!(text(message), expected, "{message}");
        }
        assert_eq!(text("1 and 2"), text("30 and 4"));
        assert_ne!(Fingerprint::of("a b"), Fingerprint::of("a c"));
    }

    #[test]
    fn hashes_are_stable() {
        assert_eq!(Fingerprint::of("").hash, "811c9dc5");
        assert_eq!(Fingerprint::of("a").hash, "e40c292c");
        assert_eq!(Fingerprint::of("foobar").hash, "bf9cf968");
        assert!(is_hash("bf9cf968") && !is_hash("bf9cf96") && !is_hash("bf9cf96g"));
    }

    #[test]
    fn only_the_beginning_of_a_long_message_is_fingerprinted() {
        let long = "word ".repeat(1_000);
        assert_eq!(text(&long).chars().count(), TEXT_CHARS_MAX);
        let begins = "x".repeat(MESSAGE_CHARS_MAX);
        assert_eq!(
            Fingerprint::of(&begins),
            Fingerprint::of(&format!("{begins}y"))
        );
    }

    proptest! {
        #[test]
        fn any_text_has_a_short_fingerprint_on_one_line(message in "\\PC*|[a-f0-9 '\"\\\\·\n-]*") {
            let found = Fingerprint::of(&message);
            prop_assert!(found.text.chars().count() <= TEXT_CHARS_MAX);
            prop_assert!(!found.text.contains(['\n', '\t']));
            prop_assert!(is_hash(&found.hash));
        }

        #[test]
        fn numbers_do_not_change_a_fingerprint(a in 0_u64.., b in 0_u64..) {
            prop_assert_eq!(text(&format!("job {a} failed")), text(&format!("job {b} failed")));
        }
    }
}
