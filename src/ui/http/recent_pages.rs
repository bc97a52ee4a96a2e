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

/// The response to a refresh.
pub enum Delta {
    /// The differences, which are kept for others.
    Changes(Bytes),
    /// The whole page with this ID, because the browser has none, or one that is not kept.
    Whole(String),
}

impl Delta {
    /// The response that leads to `page`. For a whole page, this copies it. `None` if the page is not text.
    pub fn response(self, page: &Bytes) -> Option<Bytes> {
        match self {
            Delta::Changes(delta) => Some(delta),
            Delta::Whole(id) => Some(delta(&id, "", std::str::from_utf8(page).ok()?).into()),
        }
    }
}

impl RecentPage {
    fn bytes(&self) -> usize {
        let deltas: usize = self.deltas.iter().map(|(_, delta)| delta.len()).sum();
        self.key.len() + self.page.len() + deltas
    }
}

impl RecentPages {
    /// The delta from the rendering `base`, which a browser has, to this page. `None` if the page is not text.
    pub fn delta(&self, key: &str, page: &Bytes, base: &str) -> Option<Delta> {
        let id = self.add(key, page);
        let old = {
            let pages = self.lock();
            let is_page = |it: &&RecentPage| it.key == key && it.id == id;
            let kept = pages.iter().find(is_page).map(|it| &it.deltas);
            let known = kept.and_then(|deltas| deltas.iter().find(|(from, _)| from == base));
            if let Some((_, delta)) = known {
                return Some(Delta::Changes(delta.clone()));
            }
            // Deltas that are not kept would each occupy memory.
            let is_kept = kept.is_some_and(|deltas| deltas.len() < DELTAS_MAX);
            let old = pages.iter().find(|it| it.key == key && it.id == base);
            old.filter(|_| is_kept).map(|it| it.page.clone())
        };
        let Some(old) = old else {
            return Some(Delta::Whole(id));
        };
        let [old, new] = [&old, page].map(|text| std::str::from_utf8(text).ok());
        let made = Bytes::from(delta(&id, old?, new?));
        let mut pages = self.lock();
        let page = pages.iter_mut().find(|it| it.key == key && it.id == id);
        if let Some(page) = page.filter(|page| page.deltas.len() < DELTAS_MAX) {
            page.deltas.push((base.to_owned(), made.clone()));
        }
        Some(Delta::Changes(made))
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

    /// The response to a browser that has the rendering `base`.
    fn respond(pages: &RecentPages, key: &str, page: &Bytes, base: &str) -> String {
        let delta = pages.delta(key, page, base).unwrap();
        String::from_utf8(delta.response(page).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn a_delta_is_only_from_a_rendering_with_the_same_key() {
        let pages = RecentPages::default();
        let [one, two] = [
            "<p>one long paragraph</p><p>1</p>",
            "<p>one long paragraph</p><p>2</p>",
        ]
        .map(Bytes::from);
        let whole = respond(&pages, "vera", &one, "none");
        let (id, rest) = whole.split_once('\n').unwrap();
        assert_eq!(
            rest,
            format!("+{}\n<p>one long paragraph</p><p>1</p>", one.len())
        );
        let changed = respond(&pages, "vera", &two, id);
        assert!(changed.ends_with("\n=0 25\n+8\n<p>2</p>"), "{changed}");
        // Another user's page can contain what this one may not see.
        let other = respond(&pages, "anna", &two, id);
        assert!(
            other.ends_with("<p>one long paragraph</p><p>2</p>"),
            "{other}"
        );
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
            let delta = pages.delta("", &page, &base.to_string());
            assert!(matches!(delta, Some(Delta::Whole(_))));
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
