//! Commands on jobs that need no lease: change dependencies, tag, track, add a note to the history, time out the
//! worker.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::call::{Call, Fields};
use super::error::ApiError;
use super::jobs::{ids, run_on_items, with_ids};
use super::response::{JobView, Results};
use super::{Api, HandlerResult};
use crate::engine::{Depend, JobKey, NOTE_BYTES_MAX, OffsetPage};

/// Minimum number of jobs of a listed tag (qless-core, Tag top).
pub const TOP_TAG: i64 = 2;

// ---- dependencies ----

pub async fn depends(api: Api, call: Call) -> HandlerResult {
    run_on_items(&api, &call, read_depend, async |api, changes, now| {
        let done = api.engine.depend(changes, now).await?;
        Ok(done.into_iter().map(|done| done.map(|()| true)).collect())
    })
    .await
}

fn read_depend(item: &RawValue) -> Result<(JobKey, Depend), ApiError> {
    let fields = Fields::of(item)?;
    let key = JobKey::qless(fields.required_name("id")?);
    let off_all = fields.get("off").is_some_and(|off| off.get() == "\"all\"");
    let change = match (fields.names("on")?, off_all) {
        (Some(_), _) if fields.get("off").is_some() => {
            return Err(ApiError::bad(
                "off",
                "on and off cannot be combined; send two requests",
            ));
        }
        (Some(on), _) => Depend::On(on),
        (None, true) => Depend::OffAll,
        (None, false) => match fields.names("off")? {
            Some(off) => Depend::Off(off),
            None => return Err(ApiError::bad("on", "on or off is missing")),
        },
    };
    Ok((key, change))
}

// ---- tags ----

pub async fn tag(api: Api, call: Call) -> HandlerResult {
    run_on_items(&api, &call, read_tags, async |api, tags, now| {
        api.engine.tag(tags, now).await
    })
    .await
}

pub async fn untag(api: Api, call: Call) -> HandlerResult {
    run_on_items(&api, &call, read_tags, async |api, tags, now| {
        api.engine.untag(tags, now).await
    })
    .await
}

fn read_tags(item: &RawValue) -> Result<(JobKey, Vec<String>), ApiError> {
    let fields = Fields::of(item)?;
    let key = JobKey::qless(fields.required_name("id")?);
    let tags = fields.names("tags")?;
    Ok((
        key,
        tags.ok_or_else(|| ApiError::bad("tags", "tags is missing"))?,
    ))
}

pub async fn tagged(api: Api, call: Call) -> HandlerResult {
    let (tag, page) = (call.name("tag")?, call.page()?);
    api.now(&call.envelope().await?)?;
    let (total, ids) = api.engine.tagged(tag, page).await?;
    Ok(Results::new(&json!({ "total": total, "jobs": ids })))
}

pub async fn top_tags(api: Api, call: Call) -> HandlerResult {
    let page: OffsetPage = call.page()?;
    api.now(&call.envelope().await?)?;
    let tags = api.engine.top_tags(TOP_TAG, page).await?;
    let tags: Vec<_> = tags.into_iter().map(|(tag, _)| tag).collect();
    Ok(Results::new(&tags))
}

// ---- tracking ----

pub async fn track(api: Api, call: Call) -> HandlerResult {
    let read = |item: &RawValue| {
        let fields = Fields::of_id_or_item(item)?;
        let key = JobKey::qless(fields.required_name("id")?);
        Ok((key, fields.names("tags")?.unwrap_or_default()))
    };
    run_on_items(&api, &call, read, async |api, jobs, now| {
        let ids = ids(jobs.iter().map(|(key, _)| key));
        Ok(with_ids(ids, api.engine.track(jobs, now).await?))
    })
    .await
}

pub async fn untrack(api: Api, call: Call) -> HandlerResult {
    run_on_items(&api, &call, read_key, async |api, keys, now| {
        let ids = ids(&keys);
        Ok(with_ids(ids, api.engine.untrack(keys, now).await?))
    })
    .await
}

pub async fn tracked(api: Api, call: Call) -> HandlerResult {
    let now = api.now(&call.envelope().await?)?;
    let (jobs, expired) = api.engine.tracked().await?;
    #[derive(Serialize)]
    struct Tracked<'a> {
        jobs: Vec<JobView<'a>>,
        expired: Vec<String>,
    }
    Ok(Results::new(&Tracked {
        jobs: api.views(&jobs, now),
        expired,
    }))
}

// ---- notes and timeouts ----

pub async fn log(api: Api, call: Call) -> HandlerResult {
    run_on_items(&api, &call, read_note, async |api, notes, now| {
        let ids = ids(notes.iter().map(|(key, ..)| key));
        Ok(with_ids(ids, api.engine.note(notes, now).await?))
    })
    .await
}

/// The job, the message, and the JSON text of an object with further data.
type Note = (JobKey, String, Option<String>);

fn read_note(item: &RawValue) -> Result<Note, ApiError> {
    let fields = Fields::of(item)?;
    let key = JobKey::qless(fields.required_name("id")?);
    let message = match fields.text("message")?.map(Cow::into_owned) {
        Some(message) if !message.is_empty() => message,
        _ => return Err(ApiError::bad("message", "message is missing")),
    };
    let data = fields.get("data").filter(|data| data.get() != "null");
    if let Some(data) = data {
        let more: Fields<'_> = serde_json::from_str(data.get())
            .map_err(|_| ApiError::bad("data", "data must be an object"))?;
        if more.get("what").is_some() || more.get("when").is_some() {
            let message = "data must not contain what or when; they hold the message and its time";
            return Err(ApiError::bad("data", message));
        }
    }
    let length = message.len() + data.map_or(0, |data| data.get().len());
    if length > NOTE_BYTES_MAX {
        let text = format!("message and data together must not exceed {NOTE_BYTES_MAX} bytes");
        return Err(ApiError::bad("message", &text));
    }
    Ok((key, message, data.map(|data| data.get().to_owned())))
}

pub async fn time_out(api: Api, call: Call) -> HandlerResult {
    run_on_items(&api, &call, read_key, async |api, keys, now| {
        let ids = ids(&keys);
        Ok(with_ids(ids, api.engine.time_out(keys, now).await?))
    })
    .await
}

fn read_key(item: &RawValue) -> Result<JobKey, ApiError> {
    let fields = Fields::of_id_or_item(item)?;
    Ok(JobKey::qless(fields.required_name("id")?))
}
