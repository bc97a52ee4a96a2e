//! Patterns with `*`.

/// A text in which `*` matches any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The texts between the stars.
    parts: Vec<String>,
}

impl Pattern {
    /// Matches only this text; a `*` in it is literal.
    pub fn literal(text: &str) -> Pattern {
        Pattern {
            parts: vec![text.to_owned()],
        }
    }

    /// A text in which each `*` matches any characters.
    pub fn with_stars(text: &str) -> Pattern {
        Pattern {
            parts: text.split('*').map(str::to_owned).collect(),
        }
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

    /// Whether the pattern matches the text.
    pub fn matches(&self, text: &str) -> bool {
        self.matches_at(text, false, false)
    }

    /// Whether the pattern matches the start of the text.
    pub fn matches_prefix(&self, text: &str) -> bool {
        self.matches_at(text, false, true)
    }

    /// Whether the pattern matches a part of the text.
    pub fn matches_part(&self, text: &str) -> bool {
        self.matches_at(text, true, true)
    }

    /// `before` and `after`: whether further text may precede and follow the match.
    fn matches_at(&self, text: &str, before: bool, after: bool) -> bool {
        let Some((first, others)) = self.parts.split_first() else {
            return true;
        };
        let Some((last, between)) = others.split_last() else {
            return match (before, after) {
                (false, false) => text == first,
                (false, true) => text.starts_with(first.as_str()),
                (true, false) => text.ends_with(first.as_str()),
                (true, true) => text.contains(first.as_str()),
            };
        };
        let behind = |text| str::split_once(text, first.as_str()).map(|(_, rest)| rest);
        let rest = if before {
            behind(text)
        } else {
            text.strip_prefix(first.as_str())
        };
        // The leftmost match leaves the most text for the remaining parts.
        let rest = between.iter().try_fold(rest, |rest, part| {
            let rest = rest?.split_once(part.as_str());
            rest.map(|(_, rest)| Some(rest))
        });
        rest.flatten().is_some_and(|rest| {
            if after {
                rest.contains(last.as_str())
            } else {
                rest.ends_with(last.as_str())
            }
        })
    }

    /// The pattern as text.
    pub fn to_text(&self) -> String {
        self.parts.join("*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(
                Pattern::with_stars(pattern).matches(text),
                fits,
                "{pattern} {text}"
            );
        }
        assert!(!Pattern::literal("a*").matches("ab"));
        assert!(Pattern::literal("a*").matches("a*"));
    }

    #[test]
    fn a_pattern_can_match_a_prefix_or_a_substring() {
        let pattern = Pattern::with_stars("Se*d");
        assert!(pattern.matches_prefix("Send::Mail") && !pattern.matches_prefix("Mail::Send"));
        assert!(pattern.matches_part("Mail::Sends") && !pattern.matches_part("Mail::Sen"));
        assert!(Pattern::with_stars("a*a").matches_part("xaya"));
    }
}
