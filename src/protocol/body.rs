//! The body of an answer as JSON, which has a limit: what lists many jobs is given up as soon as it is longer.

use std::io::{self, Write};

use serde::Serialize;

use crate::engine::{ANSWER_BYTES_MAX, Error};

/// A value as JSON text.
///
/// # Errors
/// [`Error::AnswerTooLarge`].
pub fn text(value: &impl Serialize) -> Result<String, Error> {
    text_up_to(ANSWER_BYTES_MAX, value)
}

fn text_up_to(max: usize, value: &impl Serialize) -> Result<String, Error> {
    let mut body = Body {
        bytes: Vec::new(),
        max,
    };
    // Our own types have text for keys, and no number that JSON lacks: nothing else can fail.
    serde_json::to_writer(&mut body, value).map_err(|_| Error::AnswerTooLarge)?;
    String::from_utf8(body.bytes).map_err(|_| Error::AnswerTooLarge)
}

/// A body as it is written.
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

    #[test]
    fn an_answer_is_given_up_where_it_becomes_too_large() {
        for (max, is_fitting) in [(7, false), (8, true), (9, true)] {
            let text = text_up_to(max, &["abcd"]);
            assert_eq!(text.is_ok(), is_fitting, "{max}");
        }
    }
}
