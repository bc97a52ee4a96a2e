//! Names with `*` in them.

/// A text in which `*` may stand for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// What stands between the stars.
    parts: Vec<String>,
}

impl Pattern {
    /// Just this text.
    pub fn literal(text: &str) -> Pattern {
        Pattern {
            parts: vec![text.to_owned()],
        }
    }

    /// A text whose stars stand for anything.
    pub fn with_stars(text: &str) -> Pattern {
        Pattern {
            parts: text.split('*').map(str::to_owned).collect(),
        }
    }

    /// In lower case, as far as ASCII goes.
    pub fn lower(mut self) -> Pattern {
        for part in &mut self.parts {
            part.make_ascii_lowercase();
        }
        self
    }

    /// The only text that is meant.
    pub fn exact(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [part] => Some(part),
            _ => None,
        }
    }

    /// Whether anything is meant.
    pub fn is_any(&self) -> bool {
        self.parts.len() > 1 && self.parts.iter().all(String::is_empty)
    }

    /// Whether the text is meant.
    pub fn is(&self, text: &str) -> bool {
        self.fits(text, false, false)
    }

    /// Whether the text begins with what is meant.
    pub fn begins(&self, text: &str) -> bool {
        self.fits(text, false, true)
    }

    /// Whether a part of the text is meant.
    pub fn is_in(&self, text: &str) -> bool {
        self.fits(text, true, true)
    }

    /// `before` and `after`: whether the text may have more at its ends.
    fn fits(&self, text: &str, before: bool, after: bool) -> bool {
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
        // The leftmost place leaves the most to the others.
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

    /// As it is written.
    pub fn shown(&self) -> String {
        self.parts.join("*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
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
                Pattern::with_stars(pattern).is(text),
                fits,
                "{pattern} {text}"
            );
        }
        assert!(!Pattern::literal("a*").is("ab"));
        assert!(Pattern::literal("a*").is("a*"));
    }

    #[test]
    fn a_part_is_enough_where_that_is_asked() {
        let pattern = Pattern::with_stars("Se*d");
        assert!(pattern.begins("Send::Mail") && !pattern.begins("Mail::Send"));
        assert!(pattern.is_in("Mail::Sends") && !pattern.is_in("Mail::Sen"));
        assert!(Pattern::with_stars("a*a").is_in("xaya"));
    }
}
