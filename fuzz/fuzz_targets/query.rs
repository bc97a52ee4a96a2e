//! Uses the input as a query, as one side of a term, as JSON and as a job. Checks that nothing panics or takes long.
//!
//! `cargo fuzz run query` (see `fuzz/Cargo.toml`).
#![no_main]

use budget::Budget;
use libfuzzer_sys::fuzz_target;
use source::query::{Query, Record, minified, are_equal};

#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../src/budget.rs"]
mod budget;

#[path = "../../src"]
mod source {
    pub mod query;
}

#[path = "../memory.rs"]
mod memory;

fuzz_target!(|data: &[u8]| {
    let _memory = memory::check();
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let record = Record {
        id: 42,
        payload: r#"{"msg":"hello","a":[1,2.5,{"b":null}],"é":"\u00e9","n":12345678901234567890}"#,
        state: Some(r#"["ASSIGNED",{"node":1}]"#),
        events: r#"[["job_created",{"timestamp":"1699999000"}]]"#,
        modified: 1_699_999_939,
    };
    let same_text = Record {
        payload: text,
        state: Some(text),
        events: text,
        ..record
    };
    let term = serde_json::json!([["=", text, "state"]]).to_string();
    for query in [text, term.as_str()] {
        if let Ok(query) = Query::parse(query) {
            for record in [&record, &same_text] {
                let mut work = Budget::new(1_000_000);
                query.matches(record, 1_700_000_000, &mut work).ok();
            }
            let _ = (query.hint(), query.used_columns());
        }
    }
    if let Ok(kept) = minified(text) {
        assert!(are_equal(&kept, text));
    }
});
