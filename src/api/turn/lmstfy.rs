//! Jobs of lmstfy: bytes, in base64.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::IgnoredAny;

use super::super::views::{LmstfyJobView, Place};
use super::places::key;
use super::{GLIMPSE_CHARS, glimpse, job_row, life};
use crate::engine::{Engine, JobKey, Result};

/// Bytes that are shown where they are no text.
const GLIMPSE_BYTES: usize = 32;

/// The job with that id, if it is in that queue and its time to live has not ended.
pub async fn lmstfy_job(engine: &Engine, queue: &Place, id: &str) -> Result<Option<LmstfyJobView>> {
    let found = engine
        .unexpired_job(&key(queue), &JobKey::lmstfy(id))
        .await?;
    let Some((job, now)) = found else {
        return Ok(None);
    };
    let bytes = BASE64.decode(job.body.as_bytes()).unwrap_or_default();
    Ok(Some(LmstfyJobView {
        row: job_row(engine, &job, now),
        life: life(&job),
        is_json: serde_json::from_slice::<IgnoredAny>(&bytes).is_ok(),
        bytes,
        attributes: attributes(job.attributes.as_deref()),
        base64: job.body.into(),
    }))
}

/// The bytes of the job, if it is in that queue.
pub async fn body(engine: &Engine, queue: &Place, id: &str) -> Result<Option<Vec<u8>>> {
    let found = engine
        .unexpired_job(&key(queue), &JobKey::lmstfy(id))
        .await?;
    Ok(found.map(|(job, _)| BASE64.decode(job.body.as_bytes()).unwrap_or_default()))
}

fn attributes(text: Option<&str>) -> Vec<(String, String)> {
    let read = |text| serde_json::from_str::<BTreeMap<String, String>>(text).ok();
    text.and_then(read)
        .unwrap_or_default()
        .into_iter()
        .collect()
}

/// The beginning of a body on one line: of a text as it is, of other bytes in hex.
pub fn glimpse_of_bytes(base64: &str) -> String {
    // Four characters are three bytes, and a character has four bytes at most.
    let some = base64
        .get(..(GLIMPSE_CHARS + 2) * 4 / 3 * 4)
        .unwrap_or(base64);
    let bytes = BASE64.decode(some).unwrap_or_default();
    let text = match str::from_utf8(&bytes) {
        Ok(text) => Some(text),
        // The last character may have been cut.
        Err(error) if error.error_len().is_none() && some.len() < base64.len() => bytes
            .get(..error.valid_up_to())
            .and_then(|whole| str::from_utf8(whole).ok()),
        Err(_) => None,
    };
    match text.filter(|text| !text.contains('\0')) {
        Some(text) => glimpse(text),
        None => {
            let shown = bytes.iter().take(GLIMPSE_BYTES);
            let shown: Vec<String> = shown.map(|byte| format!("{byte:02x}")).collect();
            let more = if bytes.len() > GLIMPSE_BYTES {
                " …"
            } else {
                ""
            };
            format!("{}{more}", shown.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glimpse_is_text_where_there_is_some() {
        let of = |bytes: &[u8]| glimpse_of_bytes(&BASE64.encode(bytes));
        assert_eq!(of(b""), "");
        assert_eq!(of("größer\n  als".as_bytes()), "größer als");
        assert_eq!(of(&[0xff, 0, 0x10]), "ff 00 10");
        assert_eq!(of(b"a\0b"), "61 00 62");
        // Cut in the middle of a character, wherever that is.
        for begin in ["", "a", "ab", "abc"] {
            let long = of(format!("{begin}{}", "𝄞".repeat(2_000)).as_bytes());
            assert!(long.starts_with(&format!("{begin}𝄞")) && long.ends_with('…'));
        }
        assert!(of(&[0xff; 100]).ends_with("ff …"));
    }

    #[test]
    fn attributes_are_words() {
        assert_eq!(
            attributes(Some(r#"{"trace":"1","a":"<b>"}"#)),
            [("a", "<b>"), ("trace", "1")].map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        assert!(attributes(None).is_empty());
    }
}
