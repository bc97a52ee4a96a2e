//! JSON bodies. A response that exceeds the size limit is abandoned early. Large bodies are parsed and serialized
//! without delaying other requests.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde_json::value::RawValue;

use crate::blocking;
use crate::budget::wrong_text;
use crate::engine::{Error, RESPONSE_BYTES_MAX};
use crate::memory;

/// Bodies up to this size, in bytes, are parsed or serialized in less than a millisecond.
const SMALL: usize = 64 << 10;

/// Up to this number, 2⁵³, an `f64` represents each whole number exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A whole number. JSON does not distinguish 2.0 from 2, so both are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole(pub i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_i64<E>(self, number: i64) -> Result<Whole, E> {
                Ok(Whole(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Whole, E> {
                let whole = i64::try_from(number).map(Whole);
                whole.map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Whole, E> {
                if number.fract() != 0.0 || number.abs() > EXACT_MAX {
                    return Err(E::invalid_value(Unexpected::Float(number), &self));
                }
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
                let whole = number as i64;
                Ok(Whole(whole))
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<Whole, E> {
                Err(wrong_text(&self))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

/// Why a body cannot be read, shortened: serde repeats a text of the wrong type.
pub fn reason(error: &serde_json::Error) -> String {
    let mut reason = error.to_string();
    if reason.len() > REASON_BYTES_MAX {
        reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        let (line, column) = (error.line(), error.column());
        reason += &format!("… at line {line} column {column}");
    }
    reason
}

/// Bytes of a [`reason`].
const REASON_BYTES_MAX: usize = 200;

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
        .or_else(|_| blocking::block_in_place(|| text_up_to(RESPONSE_BYTES_MAX, start, value)))
}

/// Calls `work` to parse or write JSON of `bytes` bytes. If that is much, the runtime moves the other tasks of this
/// thread to another thread.
pub fn process<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes <= SMALL {
        work()
    } else {
        blocking::block_in_place(work)
    }
}

/// Like [`process`], for a request. Reserves the memory of what was parsed, as far as `work` has counted it
/// ([`memory::count`]).
///
/// # Errors
/// [`Error::Busy`].
pub async fn parse<T>(bytes: usize, work: impl FnOnce() -> T) -> Result<T, Error> {
    let parsed = memory::parse(bytes, || process(bytes, work)).await;
    parsed.map_err(|memory::Busy| Error::Busy)
}

/// JSON as it was stored. It was validated when it was received. `None` if a newer version has stored something else.
pub fn stored(text: &str) -> Option<&RawValue> {
    process(text.len(), || serde_json::from_str(text).ok())
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
                process(large.len(), || large.len()),
            )
        };
        assert_eq!(lengths(), (2 * SMALL + 2, 2 * SMALL));
        std::thread::scope(|scope| {
            let outside = scope.spawn(lengths).join().unwrap();
            assert_eq!(outside, lengths());
        });
    }

    #[test]
    fn a_whole_number_may_have_a_fraction_of_zero() {
        let max = i64::MAX.to_string();
        for (text, number) in [
            ("0", 0),
            ("-3", -3),
            ("2.0", 2),
            ("-0.0", 0),
            ("2e3", 2_000),
            ("9007199254740992.0", 9_007_199_254_740_992),
            (max.as_str(), i64::MAX),
        ] {
            let read: Whole = serde_json::from_str(text).unwrap();
            assert_eq!(read, Whole(number), "{text}");
        }
        for text in [
            "1.5",
            "1e-3",
            "9007199254740994.0",
            "1e300",
            "9223372036854775808",
            "\"1\"",
            "null",
            "true",
            "[1]",
        ] {
            assert!(serde_json::from_str::<Whole>(text).is_err(), "{text}");
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
