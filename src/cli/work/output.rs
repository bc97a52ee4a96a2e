//! Passes on a program's output line by line, within limits, and keeps its end for the failure message.

use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How much of one stream of one program is passed on, in bytes. The rest is read and dropped.
const PASSED_BYTES_MAX: usize = 1 << 20;

/// How much of the end is kept, in bytes.
const TAIL_BYTES_MAX: usize = 16 << 10;

/// The size of a read, and of the longest line that is passed on in one piece, in bytes.
const CHUNK_BYTES: usize = 16 << 10;

/// Copies a stream of a program to a stream of the worker, if there is one, and keeps its end.
pub async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: Option<impl AsyncWrite + Unpin>,
    tail: &Tail,
) {
    let mut line = Vec::new();
    let mut left = PASSED_BYTES_MAX;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut chunk).await.unwrap_or_default();
        let Some(read) = chunk.get(..read).filter(|read| !read.is_empty()) else {
            break;
        };
        tail.add(read);
        let Some(to) = to.as_mut().filter(|_| left > 0) else {
            continue;
        };
        line.extend_from_slice(read);
        // Whole lines only, so that the lines of several programs do not mix.
        let end = line.iter().rposition(|byte| *byte == b'\n');
        let end = end.map_or(0, |at| at + 1);
        let end = if line.len() > CHUNK_BYTES {
            line.len()
        } else {
            end
        };
        let rest = line.split_off(end.min(left));
        left -= line.len();
        write(to, &line).await;
        line = rest;
        if left == 0 {
            write(
                to,
                b"\n(switchyard: the program wrote more than 1 MiB; the rest is dropped)\n",
            )
            .await;
        }
    }
    if let Some(to) = to.as_mut().filter(|_| left > 0) {
        write(to, &line).await;
    }
}

/// Writes and flushes. Ignores a closed pipe.
async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    if !bytes.is_empty() && to.write_all(bytes).await.is_ok() {
        drop(to.flush().await);
    }
}

/// The end of a stream.
#[derive(Debug, Default)]
pub struct Tail(Mutex<Vec<u8>>);

impl Tail {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let excess = kept.len().saturating_sub(TAIL_BYTES_MAX);
        kept.drain(..excess);
    }

    /// Forgets what was written so far.
    pub fn clear(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clear();
    }

    /// As text, without control characters other than line breaks and tabs.
    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let is_shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        let text: String = text.chars().filter(is_shown).collect();
        // The first character can be incomplete.
        text.trim_start_matches('\u{fffd}').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passed(input: &[u8]) -> (Vec<u8>, Tail) {
        let (mut written, tail) = (Vec::new(), Tail::default());
        pass_on(input, Some(&mut written), &tail).await;
        (written, tail)
    }

    #[tokio::test]
    async fn everything_is_passed_on_up_to_a_limit() {
        for text in ["", "a", "a\nb", "a\n\nb\n"] {
            let (written, tail) = passed(text.as_bytes()).await;
            assert_eq!(
                (written.as_slice(), tail.text().as_str()),
                (text.as_bytes(), text)
            );
        }
        let long = "x".repeat(PASSED_BYTES_MAX - 1);
        assert_eq!(passed(long.as_bytes()).await.0.len(), long.len());
        let longer = "line\n".repeat(PASSED_BYTES_MAX / 4);
        let (written, _) = passed(longer.as_bytes()).await;
        assert!(written.starts_with(&longer.as_bytes()[..PASSED_BYTES_MAX]));
        let note = String::from_utf8_lossy(&written[PASSED_BYTES_MAX..]);
        assert!(note.contains("more than 1 MiB"), "{note}");
    }

    #[tokio::test]
    async fn the_end_is_kept() {
        let text = format!("{}é\u{7}\tend\n", "é".repeat(TAIL_BYTES_MAX));
        let (_, tail) = passed(text.as_bytes()).await;
        let kept = tail.text();
        assert!(kept.len() <= TAIL_BYTES_MAX && kept.len() > TAIL_BYTES_MAX - 8);
        assert!(
            kept.starts_with('é') && kept.ends_with("é\tend\n"),
            "{kept}"
        );
    }
}
