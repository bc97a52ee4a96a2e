//! Loads an lmstfy job.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use leptos::prelude::*;
use serde::de::IgnoredAny;

use crate::auth::Role;
use crate::engine::{Engine, JobKey, Result};
use crate::ui::context::read_or_missing;
use crate::ui::error::PageError;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::pages::lmstfy_job::model::LmstfyJobView;
use crate::ui::present::queue_refs::key;
use crate::ui::present::{job_row, times};

/// The lmstfy job with this ID in this queue.
#[server]
pub async fn lmstfy_job(queue_ref: QueueRef, id: String) -> Result<LmstfyJobView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_lmstfy_job(&context.engine, &queue_ref, &id).await,
        || {
            let queue = queue_ref.label();
            format!(
                "Job “{id}” not found in {queue}. It was acknowledged or deleted, it expired, or it never existed."
            )
        },
    )
    .await
}

/// The job with this ID, if it is in this queue and its time to live has not ended.
pub async fn load_lmstfy_job(
    engine: &Engine,
    queue: &QueueRef,
    id: &str,
) -> Result<Option<LmstfyJobView>> {
    let found = engine
        .unexpired_job(&key(queue), &JobKey::lmstfy(id))
        .await?;
    let Some((job, now)) = found else {
        return Ok(None);
    };
    let bytes = BASE64.decode(job.body.as_bytes()).unwrap_or_default();
    Ok(Some(LmstfyJobView {
        row: job_row(engine, &job, now),
        times: times(&job, now),
        is_json: serde_json::from_slice::<IgnoredAny>(&bytes).is_ok(),
        bytes,
        attributes: attributes(job.attributes.as_deref()),
        base64: job.body.into(),
    }))
}

/// The body of the job, if it is in this queue and its time to live has not ended.
pub async fn load_body(engine: &Engine, queue: &QueueRef, id: &str) -> Result<Option<Vec<u8>>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::present::bytes_preview;

    #[test]
    fn a_preview_is_text_or_hex() {
        let of = |bytes: &[u8]| bytes_preview(&BASE64.encode(bytes));
        assert_eq!(of(b""), "");
        assert_eq!(of("größer\n  als".as_bytes()), "größer als");
        assert_eq!(of(&[0xff, 0, 0x10]), "ff 00 10");
        assert_eq!(of(b"a\0b"), "61 00 62");
        // The preview can end within a character of several bytes.
        for begin in ["", "a", "ab", "abc"] {
            let long = of(format!("{begin}{}", "𝄞".repeat(2_000)).as_bytes());
            assert!(long.starts_with(&format!("{begin}𝄞")) && long.ends_with('…'));
        }
        assert!(of(&[0xff; 100]).ends_with("ff …"));
    }

    #[test]
    fn attributes_are_name_value_pairs() {
        assert_eq!(
            attributes(Some(r#"{"trace":"1","a":"<b>"}"#)),
            [("a", "<b>"), ("trace", "1")].map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        assert!(attributes(None).is_empty());
    }
}
