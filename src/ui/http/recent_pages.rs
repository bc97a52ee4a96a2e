//! Renderings that browsers have, so that a refresh can be answered with the difference (`delta.rs`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::secret::Hash;
use crate::ui::http::delta::delta;

/// Limits of the renderings that are kept. A browser that has an older one gets the whole page.
const BYTES_MAX: usize = 16 << 20;
const PAGES_MAX: usize = 256;

/// Deltas that are kept with a rendering, for all tabs with the same one.
const DELTAS_MAX: usize = 8;

/// The latest renderings, oldest first.
#[derive(Clone, Default)]
pub struct RecentPages(Arc<Mutex<VecDeque<RecentPage>>>);

struct RecentPage {
    /// Determines who may see it; see `rendered_pages.rs`.
    key: String,
    /// A hash of the page, so that several servers have the same one.
    id: String,
    page: Bytes,
    /// The deltas to this page: the ID of the base, and the delta.
    deltas: Vec<(String, Bytes)>,
}

impl RecentPage {
    fn bytes(&self) -> usize {
        let deltas: usize = self.deltas.iter().map(|(_, delta)| delta.len()).sum();
        self.key.len() + self.page.len() + deltas
    }
}

impl RecentPages {
    /// The response to a browser that has the rendering `base`: the delta to this page. `None` if the page is not text.
    pub fn delta(&self, key: &str, page: &Bytes, base: &str) -> Option<Bytes> {
        let id = self.add(key, page);
        let old = {
            let pages = self.lock();
            let is_page = |it: &&RecentPage| it.key == key && it.id == id;
            let known = pages.iter().find(is_page);
            let known = known.and_then(|it| it.deltas.iter().find(|(from, _)| from == base));
            if let Some((_, delta)) = known {
                return Some(delta.clone());
            }
            let old = pages.iter().find(|it| it.key == key && it.id == base);
            old.map(|it| it.page.clone())
        };
        let is_known = old.is_some();
        let old = old.unwrap_or_default();
        let [old, new] = [&old, page].map(|text| std::str::from_utf8(text).ok());
        let made = Bytes::from(delta(&id, old?, new?));
        if !is_known {
            // The whole page, for a browser that has none or an older one.
            return Some(made);
        }
        let mut pages = self.lock();
        let page = pages.iter_mut().find(|it| it.key == key && it.id == id);
        if let Some(page) = page.filter(|page| page.deltas.len() < DELTAS_MAX) {
            page.deltas.push((base.to_owned(), made.clone()));
        }
        Some(made)
    }

    /// Keeps a rendering, unless it is kept. Returns its ID.
    fn add(&self, key: &str, page: &Bytes) -> String {
        let same = |it: &&RecentPage| it.key == key && it.page.as_ptr() == page.as_ptr();
        if let Some(known) = self.lock().iter().rev().find(same) {
            return known.id.clone();
        }
        let id = Hash::of(page).hex();
        let mut pages = self.lock();
        // An equal page may have been rendered again; then it is kept once.
        pages.retain(|it| it.key != key || it.id != id);
        pages.push_back(RecentPage {
            key: key.to_owned(),
            id: id.clone(),
            page: page.clone(),
            deltas: Vec::new(),
        });
        let mut bytes: usize = pages.iter().map(RecentPage::bytes).sum();
        while bytes > BYTES_MAX || pages.len() > PAGES_MAX {
            let Some(oldest) = pages.pop_front() else {
                break;
            };
            bytes -= oldest.bytes();
        }
        id
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<RecentPage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &Bytes) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn a_delta_is_only_from_a_rendering_with_the_same_key() {
        let pages = RecentPages::default();
        let [one, two] = [
            "<p>one long paragraph</p><p>1</p>",
            "<p>one long paragraph</p><p>2</p>",
        ]
        .map(Bytes::from);
        let whole = text(&pages.delta("vera", &one, "none").unwrap());
        let (id, rest) = whole.split_once('\n').unwrap();
        assert_eq!(rest, format!("+{}\n{}", one.len(), text(&one)));
        let changed = text(&pages.delta("vera", &two, id).unwrap());
        assert!(changed.ends_with("\n=0 25\n+8\n<p>2</p>"), "{changed}");
        // Another user's page can contain what this one may not see.
        let other = text(&pages.delta("anna", &two, id).unwrap());
        assert!(other.ends_with(&text(&two)), "{other}");
    }

    #[test]
    fn the_renderings_are_limited() {
        let pages = RecentPages::default();
        for n in 0..40 {
            let page = Bytes::from(format!("{n} {}", "x".repeat(1 << 20)));
            pages.delta("", &page, "none").unwrap();
        }
        assert!(pages.lock().len() <= 16);
        // Invented bases take no memory.
        let page = Bytes::from("y".repeat(1 << 20));
        for base in 0..DELTAS_MAX {
            pages.delta("", &page, &base.to_string()).unwrap();
        }
        let bytes: usize = pages.lock().iter().map(RecentPage::bytes).sum();
        assert!(bytes <= BYTES_MAX, "{bytes}");
        for n in 0..2 * PAGES_MAX {
            pages
                .delta("", &Bytes::from(n.to_string()), "none")
                .unwrap();
        }
        assert_eq!(pages.lock().len(), PAGES_MAX);
    }
}
