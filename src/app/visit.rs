//! What a page knows about the request that asks for it, and how names stand in addresses.

mod address;
pub mod to;

use leptos::prelude::use_context;

pub use address::{decode, encode, is_ambiguous, is_ours, name_of, segment};

use super::display::Display;
pub use crate::api::views::AuthMethod;
use crate::api::views::{Api, Asked, Place, Role};
pub use crate::time::iso;

/// The cookie that carries a [`Flash`] from an action to the page after it: `done.<text>` or
/// `refused.<text>`, the text percent-encoded.
pub const FLASH_COOKIE: &str = "switchyard_flash";

/// The cookie that carries the secret of a session.
pub const SESSION_COOKIE: &str = "switchyard_session";

/// The request, as far as pages want to know it. The server puts it into the context.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Visit {
    /// As it was sent, percent-encoded.
    pub path: String,
    /// As it was sent, without `?`.
    pub query: String,
    /// Scheme and host as the client calls them, for curl lines.
    pub origin: String,
    /// The moment at which the page is made, in microseconds.
    pub now: i64,
    pub display: Display,
    pub flash: Option<Flash>,
    /// Whether the live island fetches the page anew. Such a visit leaves a flash to the next page, and is
    /// answered with status 200, for browsers log every other one as an error.
    pub refresh: bool,
    /// Which state of the live feed the page shows at least.
    pub seq: u64,
    /// Who asks, as audits and operations name them.
    pub who: String,
    pub role: Role,
    pub method: AuthMethod,
    /// What the dashboard calls this server; may be empty.
    pub environment: String,
}

/// What the last action did, shown once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flash {
    /// Whether it was done, or refused.
    pub done: bool,
    pub text: String,
}

/// The visit that is being answered.
pub fn visit() -> Visit {
    use_context().unwrap_or_default()
}

impl Visit {
    /// What of the statistics is asked for; see [`to::statistics`].
    pub fn asked(&self) -> Asked {
        let text = |name: &str| self.param(name).unwrap_or_default();
        Asked {
            queue: text("queue"),
            range: text("range"),
            from: text("from"),
            to: text("to"),
            compare: text("compare") == "1",
        }
    }

    /// Whether whoever asks may do what takes this role.
    pub fn may(&self, role: Role) -> bool {
        self.role >= role
    }

    /// The name in the path's `index`th segment, `ui` being the zeroth.
    pub fn name(&self, index: usize) -> String {
        let segment = self.path.split('/').nth(index + 1).unwrap_or_default();
        name_of(segment)
    }

    /// The queue that the path names, and the index of the segment after it. See [`to::queue`].
    pub fn place(&self) -> (Place, usize) {
        if self.name(1) == Api::Lmstfy.as_str() {
            (Place::lmstfy(self.name(2), self.name(3)), 4)
        } else if self.name(1) == Api::Relay.as_str() {
            (Place::relay(self.name(2)), 3)
        } else if self.name(1) == Api::Jobq.as_str() {
            (Place::jobq(self.name(2)), 3)
        } else {
            (Place::qless(self.name(2)), 3)
        }
    }

    /// All parameters of the query, in its order.
    pub fn all_params(&self) -> Vec<(String, String)> {
        let text = |text: &str| decode(&text.replace('+', " "));
        let pairs = self.query.split('&');
        pairs
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (text(name), text(value)))
            .collect()
    }

    /// All values of a parameter of the query, in its order.
    pub fn params(&self, key: &str) -> Vec<String> {
        let all = self.all_params().into_iter();
        all.filter(|(name, _)| name == key)
            .map(|(_, value)| value)
            .collect()
    }

    /// A parameter of the query.
    pub fn param(&self, key: &str) -> Option<String> {
        self.params(key).into_iter().next()
    }

    /// The offset that the query names; 0 if none or nonsense.
    pub fn offset(&self) -> usize {
        self.param("offset")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }

    /// The address of this page, to come back to.
    pub fn here(&self) -> String {
        if self.query.is_empty() {
            self.path.clone()
        } else {
            format!("{}?{}", self.path, self.query)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::views::{RecurringForm, Stand};

    #[test]
    fn a_visit_reads_its_own_address() {
        let visit = Visit {
            path: "/ui/queues/a%2Fb/failed".to_owned(),
            query: "q=a+b%26c&offset=50".to_owned(),
            ..Visit::default()
        };
        assert_eq!(visit.name(2), "a/b");
        assert_eq!(visit.name(3), "failed");
        assert_eq!(visit.name(4), "");
        assert_eq!(visit.param("q").as_deref(), Some("a b&c"));
        assert_eq!(visit.offset(), 50);
        assert_eq!(visit.here(), "/ui/queues/a%2Fb/failed?q=a+b%26c&offset=50");
    }

    #[test]
    fn a_queue_is_found_again_below_its_address() {
        for place in [
            Place::qless("mail"),
            Place::qless("lmstfy"),
            Place::qless("a/b"),
            Place::lmstfy("shop", "mail"),
            Place::lmstfy("..", "a/b"),
            Place::lmstfy("", ""),
            Place::relay("mail"),
            Place::relay("a/b"),
            Place::relay(""),
            Place::jobq("a/b"),
        ] {
            let visit = Visit {
                path: to::stand(&place, Stand::Dead),
                ..Visit::default()
            };
            let (found, next) = visit.place();
            assert_eq!(found, place);
            let is_jobq = place.api == Api::Jobq;
            assert_eq!(visit.name(next), if is_jobq { "" } else { "dead" });
        }
    }

    #[test]
    fn what_is_ticked_comes_as_often_as_it_is() {
        let visit = Visit {
            query: "id=a&n=3&id=b%20c&id=".to_owned(),
            ..Visit::default()
        };
        assert_eq!(visit.params("id"), ["a", "b c", ""]);
        assert!(visit.params("do").is_empty());
    }

    #[test]
    fn a_form_keeps_what_fits_into_its_address() {
        let long = "x".repeat(9_000);
        let form = RecurringForm {
            queue: "a b".to_owned(),
            unit: "1".to_owned(),
            data: long,
            ..RecurringForm::default()
        };
        let address = to::recurring_form(&form);
        assert_eq!(address, "/ui/recurring?to=a%20b&unit=1#new");
        assert!(is_ours(&address));
        let empty = to::recurring_form(&RecurringForm::default());
        assert_eq!(empty, "/ui/recurring#new");
    }
}
