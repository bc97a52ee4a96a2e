//! Splits the input at the first line break into a search and a payload. Checks that nothing panics or takes long.
//!
//! `cargo fuzz run search` (see `fuzz/Cargo.toml`).
#![no_main]

use budget::Budget;
use libfuzzer_sys::fuzz_target;
use source::search::{Body, Search, JobFacts};

#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../src/budget.rs"]
mod budget;

#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../src"]
mod source {
    pub mod search;
}

const NOW: i64 = 1_793_500_000_000_000;

#[path = "../memory.rs"]
mod memory;

fuzz_target!(|data: &[u8]| {
    let _memory = memory::check();
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (query, payload) = text.split_once('\n').unwrap_or((text, r#"{"a":[1,{"b":"c"}]}"#));
    let Ok(search) = Search::parse(query) else {
        return;
    };
    let tags = [payload.chars().take(20).collect()];
    for body in [Body::Json(payload), Body::Base64(payload)] {
        let job = JobFacts {
            id: "Letter-1",
            state: "failed",
            api: "qless",
            namespace: "",
            queue: "mail",
            class: Some("Mail::Send"),
            tags: &tags,
            is_tracked: false,
            worker: Some("host-1"),
            failure: Some(("TimeoutError", payload)),
            priority: Some(5.0),
            retries_left: Some(0),
            created: NOW - 60_000_000,
            updated: NOW,
            body,
        };
        let mut work = Budget::new(1_000_000);
        search.matches(&job, NOW, &mut work).ok();
    }
    for (_, without) in search.terms() {
        assert!(Search::parse(&without).is_ok());
    }
});
