//! Parses the input as commands of the Redis protocol: whole, and byte by byte, with the same outcome. Checks patterns.
//!
//! `cargo fuzz run commands` (see `fuzz/Cargo.toml`).
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use pattern::{PATTERN_BYTES_MAX, Pattern};
use resp::{Command, Malformed, Reader, Reply, Version};

#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../src/protocol/redis/resp.rs"]
mod resp;

#[path = "../../src/protocol/redis/pubsub/pattern.rs"]
mod pattern;

/// The commands in these parts, and the error that ended them.
fn commands<'a>(
    parts: impl Iterator<Item = &'a [u8]>,
    is_anonymous: bool,
) -> (Vec<Command>, Option<Malformed>) {
    let (mut reader, mut input, mut found) = (Reader::default(), BytesMut::new(), Vec::new());
    for part in parts {
        input.extend_from_slice(part);
        loop {
            match reader.next(&mut input, is_anonymous) {
                Ok(Some(command)) => found.push(command),
                Ok(None) => break,
                Err(malformed) => return (found, Some(malformed)),
            }
        }
    }
    (found, None)
}

/// Whether the pattern, if it is not too long, matches the name.
fn matches(pattern: &str, name: &str) -> Option<bool> {
    let mut steps = 0;
    let found = Pattern::new(pattern)?.matches(name, &mut steps);
    assert!(steps <= name.len());
    Some(found)
}

#[path = "../memory.rs"]
mod memory;

fuzz_target!(|data: &[u8]| {
    let _memory = memory::check();
    let is_anonymous = data.first().is_some_and(|byte| byte % 2 == 1);
    let whole = commands(std::iter::once(data), is_anonymous);
    assert_eq!(whole, commands(data.chunks(1), is_anonymous));
    // What is written as a list of texts is read as the same command.
    for command in whole.0.iter().filter(|command| !command.is_empty()) {
        let texts: Option<Vec<_>> = command
            .iter()
            .map(|bytes| String::from_utf8(bytes.to_vec()).ok().map(Reply::Text))
            .collect();
        if let Some(texts) = texts {
            let mut bytes = Vec::new();
            Reply::List(texts).encode(Version::Resp2, &mut bytes);
            let again = commands(std::iter::once(bytes.as_slice()), is_anonymous);
            assert_eq!(again, (vec![command.clone()], None));
        }
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Some((pattern, name)) = text.split_once(' ')
    {
        let is_short = pattern.len() <= PATTERN_BYTES_MAX;
        assert_eq!(matches(pattern, name).is_some(), is_short);
        if matches(pattern, name) == Some(true) {
            let wider = matches(&format!("*{pattern}*"), &format!("x{name}y"));
            assert_ne!(wider, Some(false));
        }
    }
});
