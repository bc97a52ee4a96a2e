//! Uses the input as a name, an address and a path. Checks that names survive encoding in an address, and that an
//! accepted dashboard address leads to no other site.
//!
//! `cargo fuzz run addresses` (see `fuzz/Cargo.toml`).
#![no_main]

use encoding::{decode, is_ambiguous, is_dashboard_page, name_of, segment};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../src/ui/urls/encoding.rs"]
mod encoding;

#[path = "../memory.rs"]
mod memory;

fuzz_target!(|data: &[u8]| {
    let _memory = memory::check();
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let segment = segment(text);
    // Names cannot contain NUL.
    assert_eq!(name_of(&segment), text.replace('\0', "\u{FFFD}"));
    assert!(!segment.contains(['/', '?', '#', '\\']) && !is_ambiguous(&segment));
    assert!(is_dashboard_page(&format!("/ui/jobs/{segment}")));
    assert!(decode(text).len() <= text.len() * 3);
    if is_dashboard_page(text) {
        // A browser resolves the address against this server and stays below `/ui`.
        assert!(text == "/ui" || text.starts_with("/ui/") || text.starts_with("/ui?"));
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
        let path = text.split(['?', '#']).next().unwrap_or_default();
        assert!(
            path.split('/')
                .all(|part| !matches!(decode(part).as_str(), "." | ".."))
        );
    }
});
