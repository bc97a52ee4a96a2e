//! JSON bodies. A response that exceeds the size limit is abandoned early. Large bodies are parsed and serialized
//! without delaying other requests.

use std::io::{self, Write};

use serde::Serialize;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::engine::{Error, RESPONSE_BYTES_MAX};

/// Bodies up to this size, in bytes, are parsed or serialized in less than a millisecond.
const SMALL: usize = 64 << 10;

/// A value as JSON text.
///
/// # Errors
/// [`Error::ResponseTooLarge`].
pub fn text(value: &impl Serialize) -> Result<String, Error> {
    text_up_to(SMALL, value).or_else(|_| in_place(|| text_up_to(RESPONSE_BYTES_MAX, value)))
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

fn text_up_to(max: usize, value: &impl Serialize) -> Result<String, Error> {
    let mut body = Body {
        bytes: Vec::new(),
        max,
    };
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
    fn a_response_over_the_limit_is_abandoned() {
        for (max, is_fitting) in [(7, false), (8, true), (9, true)] {
            let text = text_up_to(max, &["abcd"]);
            assert_eq!(text.is_ok(), is_fitting, "{max}");
        }
    }
}
