//! The difference between two renderings of a page, so that a refresh sends only what has changed.
//!
//! A delta is text: the ID of the new rendering on a line, then operations. `=FROM LENGTH` on a line copies a part of
//! the rendering that the browser has, and `+LENGTH` on a line inserts the text that follows. Positions and lengths are
//! bytes of UTF-8. `islands/live/patch.rs` applies it.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// The shortest part that is worth a copy, in bytes.
const COPY_MIN: usize = 16;

/// Maximum size of a page of which a delta is sent, in bytes; longer ones are sent completely.
const COMPARED_MAX: usize = 1 << 20;

/// The delta from `base` to `page`, which has this ID.
pub fn delta(id: &str, base: &str, page: &str) -> String {
    let mut delta = Delta::new(id);
    if base.len().max(page.len()) > COMPARED_MAX {
        delta.insert(page);
        return delta.finish();
    }
    let (old, new) = (parts(base), parts(page));
    let mut places: HashMap<[&str; 2], usize, RandomState> = HashMap::default();
    for (place, ((_, part), (_, next))) in old.iter().zip(old.iter().skip(1)).enumerate() {
        places.entry([*part, *next]).or_insert(place);
    }
    let length_at = |mut place: usize, mut at: usize| {
        let mut length = 0;
        while let (Some((_, one)), Some((_, other))) = (old.get(place), new.get(at))
            && one == other
        {
            length += one.len();
            (place, at) = (place + 1, at + 1);
        }
        (length, at)
    };
    let (mut at, mut expected) = (0, 0);
    while let Some((_, part)) = new.get(at) {
        let mut found = (length_at(expected, at), expected);
        if found.0.0 < COPY_MIN
            && let Some((_, next)) = new.get(at + 1)
            && let Some(place) = places.get(&[*part, *next])
        {
            found = (length_at(*place, at), *place);
        }
        let ((length, end), place) = found;
        match old.get(place) {
            Some((from, _)) if length >= COPY_MIN => {
                delta.copy(*from, length);
                (expected, at) = (place + (end - at), end);
            }
            _ => {
                delta.insert(part);
                (expected, at) = (expected + 1, at + 1);
            }
        }
    }
    delta.finish()
}

/// The text in parts that begin with a tag, each with its position.
fn parts(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, _) in text.match_indices('<').filter(|(at, _)| *at > 0) {
        parts.extend(text.get(begin..at).map(|part| (begin, part)));
        begin = at;
    }
    parts.extend(text.get(begin..).map(|part| (begin, part)));
    parts
}

/// A delta to which operations are added.
struct Delta {
    text: String,
    /// The part that the last operation copies: its position and length.
    copied: Option<(usize, usize)>,
    inserted: String,
}

impl Delta {
    fn new(id: &str) -> Delta {
        Delta {
            text: format!("{id}\n"),
            copied: None,
            inserted: String::new(),
        }
    }

    fn copy(&mut self, from: usize, length: usize) {
        match &mut self.copied {
            Some((begin, copied)) if self.inserted.is_empty() && *begin + *copied == from => {
                *copied += length;
            }
            _ => {
                self.write();
                self.copied = Some((from, length));
            }
        }
    }

    fn insert(&mut self, part: &str) {
        if self.inserted.is_empty() {
            self.write();
        }
        self.inserted.push_str(part);
    }

    /// Writes the last operation.
    fn write(&mut self) {
        if let Some((from, length)) = self.copied.take() {
            self.text.push_str(&format!("={from} {length}\n"));
        }
        if !self.inserted.is_empty() {
            let length = self.inserted.len();
            self.text.push_str(&format!("+{length}\n{}", self.inserted));
            self.inserted.clear();
        }
    }

    fn finish(mut self) -> String {
        self.write();
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::islands::patch;

    /// The page that the browser makes of a delta.
    fn applied(delta: &str, base: &str) -> String {
        patch::applied(delta, base).unwrap().1
    }

    fn row(n: usize, count: usize) -> String {
        format!("<tr data-key=\"queue-{n}\"><th>queue {n} ü</th><td>{count}</td></tr>")
    }

    #[test]
    fn a_delta_has_only_what_has_changed() {
        let page = |changed: &[usize], new: bool| {
            let rows = (0..200).map(|n| row(n, usize::from(changed.contains(&n))));
            let first = if new { row(999, 7) } else { String::new() };
            format!(
                "<!DOCTYPE html><table>{first}{}</table>",
                rows.collect::<String>()
            )
        };
        let base = page(&[], false);
        for (changed, new, most) in [
            (&[][..], false, 30),
            (&[3, 150][..], false, 250),
            (&[199][..], true, 250),
        ] {
            let page = page(changed, new);
            let delta = delta("id", &base, &page);
            assert_eq!(applied(&delta, &base), page);
            assert!(delta.len() < most, "{changed:?}: {delta}");
        }
    }

    #[test]
    fn any_two_texts_have_a_delta() {
        let texts = [
            "",
            "<",
            "<<<",
            "a",
            "no tags at all, but a long text",
            "<p>ä</p>",
            "<p>ä</p><p>ä</p><p>ä</p><p>ä</p>",
            "=1 2\n+3\n<b>",
        ];
        for base in texts {
            for page in texts {
                assert_eq!(
                    applied(&delta("id", base, page), base),
                    page,
                    "{base} {page}"
                );
            }
        }
        let long = "<p>".repeat(COMPARED_MAX / 2);
        assert_eq!(applied(&delta("id", &long, &long), &long), long);
    }
}
