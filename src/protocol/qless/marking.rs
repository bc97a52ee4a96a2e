//! Operations on jobs that need no lease: change dependencies, tag, track, add a note to the history, time out the
//! worker.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::answer::{Answer, JobView};
use super::call::{Call, Fields};
use super::refusal::Refusal;
use super::working::{ids, on_items, with_ids};
use super::{Front, Outcome};
use crate::engine::{Depend, JobKey, NOTE_BYTES_MAX, Page};

/// Minimum number of jobs of a listed tag (qless-core, Tag top).
const TOP_TAG: i64 = 2;

// ---- dependencies ----

pub async fn depends(front: Front, call: Call) -> Outcome {
    on_items(&front, &call, read_depend, async |front, changes, now| {
        let done = front.engine.depend(changes, now).await?;
        Ok(done.into_iter().map(|done| done.map(|()| true)).collect())
    })
    .await
}

fn read_depend(item: &RawValue) -> Result<(JobKey, Depend), Refusal> {
    let fields = Fields::of(item)?;
    let key = JobKey::qless(fields.required_name("id")?);
    let off_all = fields.get("off").is_some_and(|off| off.get() == "\"all\"");
    let change = match (fields.names("on")?, off_all) {
        (Some(_), _) if fields.get("off").is_some() => {
            return Err(Refusal::bad(
                "off",
                "on and off cannot be combined; send two requests",
            ));
        }
        (Some(on), _) => Depend::On(on),
        (None, true) => Depend::OffAll,
        (None, false) => match fields.names("off")? {
            Some(off) => Depend::Off(off),
            None => return Err(Refusal::bad("on", "on or off is missing")),
        },
    };
    Ok((key, change))
}

// ---- tags ----

pub async fn tag(front: Front, call: Call) -> Outcome {
    on_items(&front, &call, read_tags, async |front, tags, now| {
        front.engine.tag(tags, now).await
    })
    .await
}

pub async fn untag(front: Front, call: Call) -> Outcome {
    on_items(&front, &call, read_tags, async |front, tags, now| {
        front.engine.untag(tags, now).await
    })
    .await
}

fn read_tags(item: &RawValue) -> Result<(JobKey, Vec<String>), Refusal> {
    let fields = Fields::of(item)?;
    let key = JobKey::qless(fields.required_name("id")?);
    let tags = fields.names("tags")?;
    Ok((
        key,
        tags.ok_or_else(|| Refusal::bad("tags", "tags is missing"))?,
    ))
}

pub async fn tagged(front: Front, call: Call) -> Outcome {
    let (tag, page) = (call.name("tag")?, call.page()?);
    front.now(&call.envelope()?)?;
    let (total, ids) = front.engine.tagged(tag, page).await?;
    Ok(Answer::new(&json!({ "total": total, "jobs": ids })))
}

pub async fn top_tags(front: Front, call: Call) -> Outcome {
    let page: Page = call.page()?;
    front.now(&call.envelope()?)?;
    let tags = front.engine.top_tags(TOP_TAG, page).await?;
    let tags: Vec<_> = tags.into_iter().map(|(tag, _)| tag).collect();
    Ok(Answer::new(&tags))
}

// ---- tracking ----

pub async fn track(front: Front, call: Call) -> Outcome {
    let read = |item: &RawValue| {
        let fields = Fields::of_id_or_item(item)?;
        let key = JobKey::qless(fields.required_name("id")?);
        Ok((key, fields.names("tags")?.unwrap_or_default()))
    };
    on_items(&front, &call, read, async |front, jobs, now| {
        let ids = ids(jobs.iter().map(|(key, _)| key));
        Ok(with_ids(ids, front.engine.track(jobs, now).await?))
    })
    .await
}

pub async fn untrack(front: Front, call: Call) -> Outcome {
    on_items(&front, &call, read_key, async |front, keys, now| {
        let ids = ids(&keys);
        Ok(with_ids(ids, front.engine.untrack(keys, now).await?))
    })
    .await
}

pub async fn tracked(front: Front, call: Call) -> Outcome {
    let now = front.now(&call.envelope()?)?;
    let (jobs, expired) = front.engine.tracked().await?;
    #[derive(Serialize)]
    struct Tracked<'a> {
        jobs: Vec<JobView<'a>>,
        expired: Vec<String>,
    }
    Ok(Answer::new(&Tracked {
        jobs: front.views(&jobs, now),
        expired,
    }))
}

// ---- notes and timeouts ----

pub async fn log(front: Front, call: Call) -> Outcome {
    on_items(&front, &call, read_note, async |front, notes, now| {
        let ids = ids(notes.iter().map(|(key, ..)| key));
        Ok(with_ids(ids, front.engine.note(notes, now).await?))
    })
    .await
}

/// The job, the message, and the JSON text of an object with further data.
type Note = (JobKey, String, Option<String>);

fn read_note(item: &RawValue) -> Result<Note, Refusal> {
    let fields = Fields::of(item)?;
    let key = JobKey::qless(fields.required_name("id")?);
    let message = match fields.text("message")?.map(Cow::into_owned) {
        Some(message) if !message.is_empty() => message,
        _ => return Err(Refusal::bad("message", "message is missing")),
    };
    let data = fields.get("data").filter(|data| data.get() != "null");
    if let Some(data) = data {
        let more: Fields<'_> = serde_json::from_str(data.get())
            .map_err(|_| Refusal::bad("data", "data must be an object"))?;
        if more.get("what").is_some() || more.get("when").is_some() {
            let message = "data must not contain what or when; they hold the message and its time";
            return Err(Refusal::bad("data", message));
        }
    }
    let length = message.len() + data.map_or(0, |data| data.get().len());
    if length > NOTE_BYTES_MAX {
        let text = format!("message and data together must not exceed {NOTE_BYTES_MAX} bytes");
        return Err(Refusal::bad("message", &text));
    }
    Ok((key, message, data.map(|data| data.get().to_owned())))
}

pub async fn time_out(front: Front, call: Call) -> Outcome {
    on_items(&front, &call, read_key, async |front, keys, now| {
        let ids = ids(&keys);
        Ok(with_ids(ids, front.engine.time_out(keys, now).await?))
    })
    .await
}

fn read_key(item: &RawValue) -> Result<JobKey, Refusal> {
    let fields = Fields::of_id_or_item(item)?;
    Ok(JobKey::qless(fields.required_name("id")?))
}
