//! What a page knows about the request that asks for it, and how names stand in addresses.

use leptos::prelude::use_context;

use crate::auth::{AuthMethod, Role};
use crate::ui::display::Display;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::series::Asked;
use crate::ui::urls::encoding::{decode, name_of};

/// The request, as far as pages want to know it. The server puts it into the context.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageRequest {
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
    pub is_refresh: bool,
    /// Which state of the live feed the page shows at least.
    pub seq: u64,
    /// Who asks, as audits and operations name them.
    pub user: String,
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
pub fn page_request() -> PageRequest {
    use_context().unwrap_or_default()
}

impl PageRequest {
    /// A request with only this path, to read the names in it.
    pub fn at(path: &str) -> PageRequest {
        PageRequest {
            path: path.to_owned(),
            ..PageRequest::default()
        }
    }

    /// A request with only this query, to read its parameters.
    pub fn with_query(query: impl Into<String>) -> PageRequest {
        PageRequest {
            query: query.into(),
            ..PageRequest::default()
        }
    }

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
    pub fn queue(&self) -> (QueueRef, usize) {
        if self.name(1) == Protocol::Lmstfy.as_str() {
            (QueueRef::lmstfy(self.name(2), self.name(3)), 4)
        } else if self.name(1) == Protocol::Relay.as_str() {
            (QueueRef::relay(self.name(2)), 3)
        } else if self.name(1) == Protocol::Jobq.as_str() {
            (QueueRef::jobq(self.name(2)), 3)
        } else {
            (QueueRef::qless(self.name(2)), 3)
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
    use crate::ui::model::queue_ref::Protocol;
    use crate::ui::model::queue_ref::QueueRef;
    use crate::ui::model::recurring::RecurringForm;
    use crate::ui::model::state::EffectiveState;
    use crate::ui::urls;

    #[test]
    fn a_visit_reads_its_own_address() {
        let request = PageRequest {
            path: "/ui/queues/a%2Fb/failed".to_owned(),
            query: "q=a+b%26c&offset=50".to_owned(),
            ..PageRequest::default()
        };
        assert_eq!(request.name(2), "a/b");
        assert_eq!(request.name(3), "failed");
        assert_eq!(request.name(4), "");
        assert_eq!(request.param("q").as_deref(), Some("a b&c"));
        assert_eq!(request.offset(), 50);
        assert_eq!(
            request.here(),
            "/ui/queues/a%2Fb/failed?q=a+b%26c&offset=50"
        );
    }

    #[test]
    fn a_queue_is_found_again_below_its_address() {
        for queue_ref in [
            QueueRef::qless("mail"),
            QueueRef::qless("lmstfy"),
            QueueRef::qless("a/b"),
            QueueRef::lmstfy("shop", "mail"),
            QueueRef::lmstfy("..", "a/b"),
            QueueRef::lmstfy("", ""),
            QueueRef::relay("mail"),
            QueueRef::relay("a/b"),
            QueueRef::relay(""),
            QueueRef::jobq("a/b"),
        ] {
            let request = PageRequest {
                path: urls::stand(&queue_ref, EffectiveState::Dead),
                ..PageRequest::default()
            };
            let (found, next) = request.queue();
            assert_eq!(found, queue_ref);
            let is_jobq = queue_ref.protocol == Protocol::Jobq;
            assert_eq!(request.name(next), if is_jobq { "" } else { "dead" });
        }
    }

    #[test]
    fn what_is_ticked_comes_as_often_as_it_is() {
        let request = PageRequest {
            query: "id=a&n=3&id=b%20c&id=".to_owned(),
            ..PageRequest::default()
        };
        assert_eq!(request.params("id"), ["a", "b c", ""]);
        assert!(request.params("do").is_empty());
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
        let address = urls::recurring_form(&form);
        assert_eq!(address, "/ui/recurring?to=a%20b&unit=1#new");
        assert!(urls::encoding::is_ours(&address));
        let empty = urls::recurring_form(&RecurringForm::default());
        assert_eq!(empty, "/ui/recurring#new");
    }
}
