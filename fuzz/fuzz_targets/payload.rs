//! Formats the input as a payload on a page. Checks that only whitespace changes and that the result is not much
//! longer.
//!
//! `cargo fuzz run payload` (see `fuzz/Cargo.toml`).
#![no_main]

use formatter::{GROWTH_MAX, SHORT_BYTES, format};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../src/ui/components/payload/formatter.rs"]
mod formatter;

/// The text without whitespace.
fn bare(text: &str) -> String {
    text.split_whitespace().collect()
}

#[path = "../memory.rs"]
mod memory;

fuzz_target!(|data: &[u8]| {
    let _memory = memory::check();
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Some(tokens) = format(text) else {
        return;
    };
    let shown: String = tokens.into_iter().map(|(_, token)| token).collect();
    assert_eq!(bare(&shown), bare(text));
    assert!(shown.len() <= (text.len() * GROWTH_MAX).max(SHORT_BYTES));
    // JSON keeps its value.
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).ok(),
            Some(value)
        );
    }
});
