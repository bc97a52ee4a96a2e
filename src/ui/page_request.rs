//! The request for a page.

use std::borrow::Cow;

use leptos::prelude::use_context;

use crate::auth::{AuthMethod, Role};
use crate::ui::display::Display;
use crate::ui::model::paging::PagePlace;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::series::{Compare, StatisticsQuery};
use crate::ui::urls::encoding::{decode, encode, name_of, without_nul};

/// The largest offset of a page.
const OFFSET_MAX: usize = u32::MAX as usize;

/// The request for a page. The router provides it as context.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageRequest {
    /// As sent, percent-encoded.
    pub path: String,
    /// As sent, without `?`.
    pub query: String,
    /// Scheme, host and base path as the client sees them, for curl commands.
    pub origin: String,
    /// The path before `/ui` as the client sees it; can be empty. The router adds it to links (`http/base_path.rs`).
    pub base_path: String,
    /// The time of the rendering, in microseconds since 1970.
    pub now: i64,
    pub display: Display,
    pub flash: Option<Flash>,
    /// Until when the user of the browser has seen the failures, in microseconds since 1970.
    pub failures_seen: Option<i64>,
    /// Whether this is the refresh of a live page. The response to a refresh leaves the flash to the next page, and
    /// always has status 200, because browsers log other statuses as errors.
    pub is_refresh: bool,
    /// The sequence number of the feed's state; the page shows that state or a later one.
    pub seq: u64,
    /// The name of the user.
    pub user: String,
    pub role: Role,
    pub method: AuthMethod,
    /// The name of this server; can be empty.
    pub environment: String,
}

/// The message of the last action, shown once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flash {
    /// Whether the action succeeded.
    pub done: bool,
    pub text: String,
    /// The operation that undoes the action.
    pub undo: Option<i64>,
}

/// The request for the current page.
pub fn page_request() -> PageRequest {
    use_context().unwrap_or_default()
}

impl PageRequest {
    /// A request with only this path, to parse the names in it.
    pub fn at(path: &str) -> PageRequest {
        PageRequest {
            path: path.to_owned(),
            ..PageRequest::default()
        }
    }

    /// A request with only this query, to parse its parameters.
    pub fn with_query(query: impl Into<String>) -> PageRequest {
        PageRequest {
            query: query.into(),
            ..PageRequest::default()
        }
    }

    /// The parameters of the statistics; see [`urls::statistics`](super::urls::statistics).
    pub fn statistics_query(&self) -> StatisticsQuery {
        let text = |name: &str| self.param(name).unwrap_or_default();
        StatisticsQuery {
            queue: text("queue"),
            range: text("range"),
            from: text("from"),
            to: text("to"),
            compare: Compare::parse(&text("compare")),
        }
    }

    /// Whether the user has at least this role.
    pub fn may(&self, role: Role) -> bool {
        self.role >= role
    }

    /// The name in the segment of the path with this index; the segment `ui` has index 0.
    pub fn name(&self, index: usize) -> String {
        let segment = self.path.split('/').nth(index + 1).unwrap_or_default();
        name_of(segment)
    }

    /// The queue in the path, and the index of the next segment. See [`urls::queue`](super::urls::queue).
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

    /// The queue in the path, and the ID of the job below it.
    pub fn queue_and_job(&self) -> (QueueRef, String) {
        let (queue, next) = self.queue();
        // The segment after the queue is `job` or `dead`.
        let id = self.name(next + 1);
        (queue, id)
    }

    /// All parameters of the query, in order.
    pub fn all_params(&self) -> Vec<(String, String)> {
        let all = self.pairs();
        all.map(|(name, value)| {
            (
                text(name).into_owned(),
                without_nul(text(value).into_owned()),
            )
        })
        .collect()
    }

    /// A parameter as the user typed it. It can contain NUL, which its own parser rejects.
    pub fn raw_param(&self, key: &str) -> Option<String> {
        let mut all = self.pairs();
        all.find_map(|(name, value)| (text(name) == key).then(|| text(value).into_owned()))
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.query.split('&');
        pairs.filter_map(|pair| pair.split_once('='))
    }

    /// All values of a parameter of the query, in order.
    pub fn params(&self, key: &str) -> Vec<String> {
        let all = self.pairs().filter(|(name, _)| text(name) == key);
        all.map(|(_, value)| without_nul(text(value).into_owned()))
            .collect()
    }

    /// A parameter of the query.
    pub fn param(&self, key: &str) -> Option<String> {
        self.params(key).into_iter().next()
    }

    /// The page of a list by key: the parameters `after` and `before`.
    pub fn page(&self) -> PagePlace {
        let text = |name: &str| self.param(name).unwrap_or_default();
        PagePlace {
            after: text("after"),
            before: text("before"),
        }
    }

    /// The parameter of the address that names the page of a list by key; none for the first page.
    pub fn page_fields(&self) -> Vec<(&'static str, String)> {
        let page = self.page();
        let fields = [("after", page.after), ("before", page.before)].into_iter();
        fields
            .filter(|(_, position)| !position.is_empty())
            .take(1)
            .collect()
    }

    /// The address of the same page of the list at `path`.
    pub fn page_address(&self, path: &str) -> String {
        let mut address = path.to_owned();
        for (name, position) in self.page_fields() {
            address.push_str(&format!("?{name}="));
            encode(&position, &mut address);
        }
        address
    }

    /// The offset in the query, at most [`OFFSET_MAX`]; 0 if it is missing or invalid.
    pub fn offset(&self) -> usize {
        let offset = self.param("offset").and_then(|text| text.parse().ok());
        offset.unwrap_or(0).min(OFFSET_MAX)
    }

    /// The seconds after which the page refreshes without JavaScript: the parameter `auto`, 5 to 3,600.
    pub fn auto_refresh_s(&self) -> Option<u32> {
        let seconds = self.param("auto")?.parse().ok();
        seconds.filter(|seconds| (5..=3_600).contains(seconds))
    }

    /// The address of this page with this value of `auto`.
    pub fn with_auto_refresh(&self, seconds: Option<u32>) -> String {
        let kept = self.query.split('&');
        let kept = kept.filter(|pair| !pair.is_empty() && !pair.starts_with("auto="));
        let auto = seconds.map(|seconds| format!("auto={seconds}"));
        let pairs: Vec<&str> = kept.chain(auto.as_deref()).collect();
        match pairs.is_empty() {
            true => self.path.clone(),
            false => format!("{}?{}", self.path, pairs.join("&")),
        }
    }

    /// The address of this page.
    pub fn here(&self) -> String {
        if self.query.is_empty() {
            self.path.clone()
        } else {
            format!("{}?{}", self.path, self.query)
        }
    }
}

/// A decoded name or value. A page looks up many parameters, so plain names are not copied.
fn text(encoded: &str) -> Cow<'_, str> {
    if encoded.contains(['+', '%']) {
        return Cow::Owned(decode(&encoded.replace('+', " ")));
    }
    Cow::Borrowed(encoded)
}

/// The queue with this address: the end of the path of its page, see
/// [`urls::queue_param`](crate::ui::urls::queue_param).
pub fn queue_at(address: &str) -> QueueRef {
    PageRequest::at(&format!("/ui/{address}")).queue().0
}

/// The queue and the ID of the job with this address, see [`urls::job_param`](crate::ui::urls::job_param).
pub fn job_at(address: &str) -> (QueueRef, String) {
    PageRequest::at(&format!("/ui/{address}")).queue_and_job()
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
    fn a_request_parses_its_address() {
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
    fn the_address_of_a_list_keeps_its_page() {
        for (query, expected) in [
            ("", "/ui/x"),
            ("offset=50", "/ui/x"),
            ("after=0.5.7&do=delete", "/ui/x?after=0.5.7"),
            ("before=0.5.-7", "/ui/x?before=0.5.-7"),
            ("after=a%26b&before=0.5.7", "/ui/x?after=a%26b"),
        ] {
            let request = PageRequest::with_query(query);
            assert_eq!(request.page_address("/ui/x"), expected, "{query}");
        }
    }

    #[test]
    fn a_page_refreshes_after_5_s_to_an_hour() {
        let request = |query: &str| PageRequest {
            path: "/ui".to_owned(),
            query: query.to_owned(),
            ..PageRequest::default()
        };
        for (query, seconds) in [
            ("", None),
            ("auto=4", None),
            ("auto=5", Some(5)),
            ("q=a&auto=3600", Some(3_600)),
            ("auto=3601", None),
            ("auto=x", None),
        ] {
            assert_eq!(request(query).auto_refresh_s(), seconds, "{query}");
        }
        let address = |query, seconds| request(query).with_auto_refresh(seconds);
        assert_eq!(address("", Some(10)), "/ui?auto=10");
        assert_eq!(address("q=a&auto=5&n=1", Some(10)), "/ui?q=a&n=1&auto=10");
        assert_eq!(address("auto=5", None), "/ui");
    }

    #[test]
    fn a_path_below_a_queue_names_the_queue() {
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
                path: urls::state(&queue_ref, EffectiveState::Dead),
                ..PageRequest::default()
            };
            let (found, next) = request.queue();
            assert_eq!(found, queue_ref);
            let is_jobq = queue_ref.protocol == Protocol::Jobq;
            assert_eq!(request.name(next), if is_jobq { "" } else { "dead" });
        }
    }

    #[test]
    fn repeated_parameters_are_all_read() {
        let request = PageRequest {
            query: "id=a&n=3&id=b%20c&id=".to_owned(),
            ..PageRequest::default()
        };
        assert_eq!(request.params("id"), ["a", "b c", ""]);
        assert!(request.params("do").is_empty());
    }

    #[test]
    fn names_have_no_nul_and_typed_texts_keep_it() {
        let request = PageRequest {
            path: "/ui/queues/a%00b".to_owned(),
            query: "q=x%00y".to_owned(),
            ..PageRequest::default()
        };
        assert_eq!(request.name(2), "a\u{FFFD}b");
        assert_eq!(request.param("q").as_deref(), Some("x\u{FFFD}y"));
        assert_eq!(request.raw_param("q").as_deref(), Some("x\0y"));
    }

    #[test]
    fn a_form_address_omits_fields_that_do_not_fit() {
        let long = "x".repeat(9_000);
        let form = RecurringForm {
            queue: "a b".to_owned(),
            unit: "1".to_owned(),
            data: long,
            ..RecurringForm::default()
        };
        let address = urls::recurring_form(&form);
        assert_eq!(address, "/ui/recurring?to=a%20b&unit=1#new");
        assert!(urls::encoding::is_dashboard_page(&address));
        let empty = urls::recurring_form(&RecurringForm::default());
        assert_eq!(empty, "/ui/recurring#new");
    }
}
