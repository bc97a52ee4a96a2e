//! The body of an answer as JSON, which has a limit: what lists many jobs is given up as soon as it is longer.

use std::io::{self, Write};

use serde::Serialize;

use crate::engine::{ANSWER_BYTES_MAX, Error};

/// A value as JSON text.
///
/// # Errors
/// [`Error::AnswerTooLarge`].
pub fn text(value: &impl Serialize) -> Result<String, Error> {
    let mut body = Body(Vec::new());
    // Our own types have text for keys, and no number that JSON lacks: nothing else can fail.
    serde_json::to_writer(&mut body, value).map_err(|_| Error::AnswerTooLarge)?;
    String::from_utf8(body.0).map_err(|_| Error::AnswerTooLarge)
}

/// A body as it is written.
struct Body(Vec<u8>);

impl Write for Body {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.0.len() + bytes.len() > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
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
        let quotes = 2;
        for (bytes, is_fitting) in [
            (ANSWER_BYTES_MAX - quotes - 1, true),
            (ANSWER_BYTES_MAX - quotes, true),
            (ANSWER_BYTES_MAX - quotes + 1, false),
        ] {
            let text = text(&"x".repeat(bytes));
            assert_eq!(text.is_ok(), is_fitting, "{bytes}");
        }
    }
}
