//! Patterns of channels and keys.

/// Maximum length of a pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 128;

/// A pattern with `*` and `?`. A comparison reads each byte of a name once. It follows all possible matches of the `*`
/// at the same time, with one bit for each.
#[derive(Debug)]
pub struct Pattern {
    /// Number of symbols: the bytes of the pattern that are not `*`.
    symbols: usize,
    /// The symbols that each byte matches.
    of_byte: Box<[u128; 256]>,
    /// The symbols that follow a `*`; the bit after the last symbol stands for a `*` at the end.
    after_star: u128,
}

impl Pattern {
    /// The pattern in `text`; `None` if it exceeds [`PATTERN_BYTES_MAX`].
    pub fn new(text: &str) -> Option<Pattern> {
        if text.len() > PATTERN_BYTES_MAX {
            return None;
        }
        let mut pattern = Pattern {
            symbols: 0,
            of_byte: Box::new([0; 256]),
            after_star: 0,
        };
        for byte in text.bytes() {
            // A pattern with a `*` has at most 127 symbols, so there is a bit for each of them and the end.
            let bit = 1_u128.checked_shl(u32::try_from(pattern.symbols).ok()?)?;
            match byte {
                b'*' => pattern.after_star |= bit,
                b'?' => pattern.of_byte.iter_mut().for_each(|its| *its |= bit),
                _ => *pattern.of_byte.get_mut(usize::from(byte))? |= bit,
            }
            pattern.symbols += usize::from(byte != b'*');
        }
        Some(pattern)
    }

    /// Whether it matches a name. Adds the number of compared bytes, at most the name's length, to `steps`.
    pub fn matches(&self, name: &str, steps: &mut usize) -> bool {
        if self.after_star == 0 {
            return self.equals(name, steps);
        }
        let end = 1 << self.symbols;
        // Bit n: the name so far matches the first n symbols.
        let mut matched: u128 = 1;
        for byte in name.bytes() {
            if matched & self.after_star & end != 0 {
                return true;
            }
            *steps += 1;
            matched = (matched & self.of(byte)) << 1 | matched & self.after_star;
            if matched == 0 {
                return false;
            }
        }
        matched & end != 0
    }

    /// Whether a pattern without `*` matches a name.
    fn equals(&self, name: &str, steps: &mut usize) -> bool {
        if name.len() != self.symbols {
            return false;
        }
        *steps += name.len();
        let mut bytes = name.bytes().enumerate();
        bytes.all(|(symbol, byte)| self.of(byte) >> symbol & 1 == 1)
    }

    fn of(&self, byte: u8) -> u128 {
        let its = self.of_byte.get(usize::from(byte));
        its.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        let (pattern, mut steps) = (Pattern::new(pattern).unwrap(), 0);
        let found = pattern.matches(name, &mut steps);
        assert!(steps <= name.len(), "{steps} steps");
        found
    }

    #[test]
    fn a_star_matches_any_text_and_a_question_mark_one_byte() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "ab", true),
            ("**", "", true),
            ("a*", "ab", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("*a*a*", "banana", true),
            ("*a?a*", "banana", true),
            ("*n?n*", "banana", true),
            ("*n?n", "banana", false),
            ("?", "a", true),
            ("?", "", false),
            ("*?", "", false),
            ("*??*", "a", false),
            ("ab", "ab", true),
            ("ab", "abc", false),
            ("ql:w:*", "ql:w:me", true),
            ("[a]", "a", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_has_up_to_128_bytes() {
        let name = "a".repeat(128);
        for (pattern, other) in [
            ("a".repeat(128), "a".repeat(127) + "b"),
            ("?".repeat(128), "a".repeat(127)),
            ("a".repeat(127) + "*", "a".repeat(126) + "b"),
            ("*".to_owned() + &"a".repeat(127), "a".repeat(127) + "b"),
        ] {
            assert!(matches(&pattern, &name), "{pattern}");
            assert!(!matches(&pattern, &other), "{pattern}");
        }
        assert!(Pattern::new(&"a".repeat(129)).is_none());
    }

    /// If a comparison tried one `*` after the other, the number of steps would be the product of the lengths.
    #[test]
    fn a_comparison_looks_at_each_byte_once() {
        let name = "a".repeat(2_048);
        for pattern in [
            "*".to_owned() + &"a".repeat(126) + "b",
            "*a".repeat(63) + "b",
            "*?".repeat(64) + "",
        ] {
            let (compiled, mut steps) = (Pattern::new(&pattern).unwrap(), 0);
            assert_eq!(compiled.matches(&name, &mut steps), !pattern.contains('b'));
            assert!(steps <= name.len(), "{pattern}: {steps} steps");
        }
    }
}
