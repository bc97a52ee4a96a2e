//! Patterns of channels and keys.

/// Maximum length of a pattern, in bytes, which bounds the time of a comparison.
pub const PATTERN_BYTES_MAX: usize = 128;

/// Whether a pattern with `*` and `?` matches a name. It needs at most the product of their lengths.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to continue if the last `*` must take one more byte.
    let mut retry = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                retry = Some((p, n));
            }
            Some(byte) if *byte == b'?' || name.get(n) == Some(byte) => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after, taken)) => {
                    retry = Some((after, taken + 1));
                    p = after;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    let rest = pattern.get(p..).unwrap_or_default();
    rest.iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_matches_any_text_and_a_question_mark_one_byte() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*", "ab", true),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("*a*a*", "banana", true),
            ("?", "a", true),
            ("?", "", false),
            ("ql:w:*", "ql:w:me", true),
            ("[a]", "a", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
