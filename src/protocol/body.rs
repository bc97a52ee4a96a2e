//! JSON bodies. A response that exceeds the size limit is abandoned early. Large bodies are parsed and serialized
//! without delaying other requests.

use std::fmt;
use std::io::{self, Write};
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::engine::{Error, RESPONSE_BYTES_MAX};

/// Bodies up to this size, in bytes, are parsed or serialized in less than a millisecond.
const SMALL: usize = 64 << 10;

/// The elements of a JSON array, but at most one more than `MAX`: enough to see that there are too many, without the
/// memory for millions of them.
pub struct UpTo<const MAX: usize, T>(pub Vec<T>);

impl<'de, const MAX: usize, T: Deserialize<'de>> Deserialize<'de> for UpTo<MAX, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Array<const MAX: usize, T>(PhantomData<T>);
        impl<'de, const MAX: usize, T: Deserialize<'de>> Visitor<'de> for Array<MAX, T> {
            type Value = UpTo<MAX, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while elements.len() <= MAX {
                    match array.next_element()? {
                        Some(element) => elements.push(element),
                        None => return Ok(UpTo(elements)),
                    }
                }
                while array.next_element::<IgnoredAny>()?.is_some() {}
                Ok(UpTo(elements))
            }
        }
        deserializer.deserialize_seq(Array(PhantomData))
    }
}

/// The capacity of a body at first, in bytes: that of a job with a short payload.
const CAPACITY: usize = 1 << 10;

/// A value as JSON text.
///
/// # Errors
/// [`Error::ResponseTooLarge`].
pub fn text(value: &impl Serialize) -> Result<String, Error> {
    text_after("", value)
}

/// A value as JSON text, after the beginning of a body.
///
/// # Errors
/// [`Error::ResponseTooLarge`].
pub fn text_after(start: &str, value: &impl Serialize) -> Result<String, Error> {
    text_up_to(SMALL, start, value)
        .or_else(|_| in_place(|| text_up_to(RESPONSE_BYTES_MAX, start, value)))
}

/// Calls `read` to parse a body of `bytes` bytes. For a large body, the runtime moves the other tasks of this thread to
/// another thread.
pub fn read<T>(bytes: usize, read: impl FnOnce() -> T) -> T {
    if bytes <= SMALL {
        read()
    } else {
        in_place(read)
    }
}

fn in_place<T>(work: impl FnOnce() -> T) -> T {
    // `block_in_place` panics on a runtime with a single thread.
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

fn text_up_to(max: usize, start: &str, value: &impl Serialize) -> Result<String, Error> {
    let mut body = Body {
        bytes: Vec::with_capacity(CAPACITY),
        max: max + start.len(),
    };
    body.bytes.extend_from_slice(start.as_bytes());
    // The serialized types have text keys and finite numbers, so only the size limit can fail.
    serde_json::to_writer(&mut body, value).map_err(|_| Error::ResponseTooLarge)?;
    String::from_utf8(body.bytes).map_err(|_| Error::ResponseTooLarge)
}

/// A writer that fails beyond `max` bytes.
struct Body {
    bytes: Vec<u8>,
    max: usize,
}

impl Write for Body {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes.len() + bytes.len() > self.max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn large_bodies_are_read_and_written_on_every_runtime() {
        let large = "a".repeat(2 * SMALL);
        let lengths = || {
            (
                text(&large).unwrap().len(),
                read(large.len(), || large.len()),
            )
        };
        assert_eq!(lengths(), (2 * SMALL + 2, 2 * SMALL));
        std::thread::scope(|scope| {
            let outside = scope.spawn(lengths).join().unwrap();
            assert_eq!(outside, lengths());
        });
    }

    #[test]
    fn of_too_many_elements_one_more_than_the_limit_is_kept() {
        for (text, kept) in [
            ("[]", 0),
            ("[1, 2]", 2),
            ("[1, 2, 3]", 3),
            ("[1,2,3,4,5]", 3),
        ] {
            let read: UpTo<2, i64> = serde_json::from_str(text).unwrap();
            assert_eq!(read.0.len(), kept, "{text}");
        }
        for text in ["[1, 2, 3, 4", "[1, 2, 3, x]", "[1, \"2\"]", "{}"] {
            let read = serde_json::from_str::<UpTo<2, i64>>(text);
            assert!(read.is_err(), "{text}");
        }
    }

    #[test]
    fn a_response_over_the_limit_is_abandoned() {
        for (max, is_fitting) in [(7, false), (8, true), (9, true)] {
            for start in ["", "{\"results\":"] {
                let text = text_up_to(max, start, &["abcd"]);
                assert_eq!(text.is_ok(), is_fitting, "{max}");
            }
        }
    }
}
