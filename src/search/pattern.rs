//! Patterns with `*`.

use crate::budget::{Budget, BudgetExceeded};

/// A text in which `*` matches any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The texts between the stars. Only the first and the last one may be empty.
    parts: Vec<String>,
}

impl Pattern {
    /// Matches only this text; a `*` in it is literal.
    pub fn literal(text: &str) -> Pattern {
        Pattern {
            parts: vec![text.to_owned()],
        }
    }

    /// A text in which each `*` matches any characters. Several of them in a row match the same as one.
    pub fn with_stars(text: &str) -> Pattern {
        let mut parts: Vec<String> = text.split('*').map(str::to_owned).collect();
        let (mut index, last) = (0, parts.len() - 1);
        parts.retain(|part| {
            let is_end = index == 0 || index == last;
            index += 1;
            is_end || !part.is_empty()
        });
        Pattern { parts }
    }

    /// The pattern with ASCII letters in lower case.
    pub fn lower(mut self) -> Pattern {
        for part in &mut self.parts {
            part.make_ascii_lowercase();
        }
        self
    }

    /// The text, if the pattern has no stars.
    pub fn exact(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [part] => Some(part),
            _ => None,
        }
    }

    /// Whether the pattern consists of stars only and matches everything.
    pub fn is_any(&self) -> bool {
        self.parts.len() > 1 && self.parts.iter().all(String::is_empty)
    }

    /// Whether the pattern matches the text. Like the other two, pays for each byte of the text, and for each part that
    /// it looks for.
    pub fn matches(&self, text: &str, budget: &mut Budget) -> Result<bool, BudgetExceeded> {
        self.matches_at(text, false, false, budget)
    }

    /// Whether the pattern matches the start of the text.
    pub fn matches_prefix(&self, text: &str, budget: &mut Budget) -> Result<bool, BudgetExceeded> {
        self.matches_at(text, false, true, budget)
    }

    /// Whether the pattern matches a part of the text.
    pub fn matches_part(&self, text: &str, budget: &mut Budget) -> Result<bool, BudgetExceeded> {
        self.matches_at(text, true, true, budget)
    }

    /// `before` and `after`: whether further text may precede and follow the match.
    fn matches_at(
        &self,
        text: &str,
        before: bool,
        after: bool,
        budget: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        budget.spend(1 + text.len())?;
        let Some((first, others)) = self.parts.split_first() else {
            return Ok(true);
        };
        let Some((last, between)) = others.split_last() else {
            return Ok(match (before, after) {
                (false, false) => text == first,
                (false, true) => text.starts_with(first.as_str()),
                (true, false) => text.ends_with(first.as_str()),
                (true, true) => text.contains(first.as_str()),
            });
        };
        let rest = if before {
            text_after(text, first)
        } else {
            text.strip_prefix(first.as_str())
        };
        let Some(mut rest) = rest else {
            return Ok(false);
        };
        // The leftmost match leaves the most text for the remaining parts.
        for part in between {
            budget.spend(1)?;
            match text_after(rest, part) {
                Some(after) => rest = after,
                None => return Ok(false),
            }
        }
        Ok(if after {
            rest.contains(last.as_str())
        } else {
            rest.ends_with(last.as_str())
        })
    }

    /// The pattern as text.
    pub fn to_text(&self) -> String {
        self.parts.join("*")
    }
}

/// The text after the first occurrence of `part`. A longer part is not prepared for a search, so that the work depends
/// on the text alone.
fn text_after<'t>(text: &'t str, part: &str) -> Option<&'t str> {
    if part.len() > text.len() {
        return None;
    }
    text.split_once(part).map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &Pattern, text: &str) -> bool {
        pattern.matches(text, &mut Budget::unlimited()).unwrap()
    }

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, text, fits) in [
            ("", "", true),
            ("", "a", false),
            ("mail", "mail", true),
            ("mail", "mails", false),
            ("mail*", "mail", true),
            ("mail*", "mail.de", true),
            ("*mail", "e-mail", true),
            ("*", "", true),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*ab", "aab", true),
            ("日*語", "日本語", true),
            ("**", "x", true),
            ("**", "", true),
            ("a***b", "a-b", true),
            ("a***b", "ab", true),
            ("***b", "ab", true),
            ("***b", "ba", false),
            ("a***", "ab", true),
        ] {
            let compiled = Pattern::with_stars(pattern);
            assert_eq!(matches(&compiled, text), fits, "{pattern} {text}");
        }
        assert!(!matches(&Pattern::literal("a*"), "ab"));
        assert!(matches(&Pattern::literal("a*"), "a*"));
    }

    #[test]
    fn a_pattern_can_match_a_prefix_or_a_substring() {
        let pattern = Pattern::with_stars("Se*d");
        let is_prefix = |text| pattern.matches_prefix(text, &mut Budget::unlimited());
        let is_part = |text| pattern.matches_part(text, &mut Budget::unlimited());
        assert_eq!(is_prefix("Send::Mail"), Ok(true));
        assert_eq!(is_prefix("Mail::Send"), Ok(false));
        assert_eq!(is_part("Mail::Sends"), Ok(true));
        assert_eq!(is_part("Mail::Sen"), Ok(false));
        let pattern = Pattern::with_stars("a*a");
        let is_part = pattern.matches_part("xaya", &mut Budget::unlimited());
        assert_eq!(is_part, Ok(true));
    }

    #[test]
    fn each_part_and_each_byte_is_paid_for() {
        let spent = |pattern: &str, text: &str| {
            let mut budget = Budget::new(10_000);
            Pattern::with_stars(pattern)
                .matches(text, &mut budget)
                .unwrap();
            10_000 - budget.remaining()
        };
        assert_eq!(spent("mail", "mail"), 5);
        assert_eq!(spent("*a*b*c*", "abc"), 7);
        assert_eq!(spent(&"a*".repeat(500), &"a".repeat(1_000)), 1_500);
        // Many stars in a row are one.
        assert_eq!(spent(&"*".repeat(1_000), ""), 1);
        assert_eq!(spent(&format!("{}a", "*".repeat(999)), ""), 1);
        let mut budget = Budget::new(5);
        let matches = Pattern::with_stars("*a*b*c*").matches("abc", &mut budget);
        assert_eq!(matches, Err(BudgetExceeded::Work));
    }
}
