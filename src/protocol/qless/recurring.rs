//! Recurring jobs.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::call::{Call, Fields};
use super::error::ApiError;
use super::jobs::run_on_items;
use super::response::{Results, json_text, number};
use super::{Api, Outcome};
use crate::engine::{
    Error, QueueKey, Queues, RECURRING_ID_BYTES_MAX, Recur, Recurring, RecurringChange,
};

pub async fn recur(api: Api, call: Call) -> Outcome {
    let queue = QueueKey::qless(call.name("queue")?);
    run_on_items(&api, &call, read_recur, async |api, jobs, now| {
        api.engine.recur(queue, jobs, now).await
    })
    .await
}

fn read_recur(item: &RawValue) -> Result<Recur, ApiError> {
    let fields = Fields::of(item)?;
    let id = fields.name("id")?;
    if id
        .as_ref()
        .is_some_and(|id| id.len() > RECURRING_ID_BYTES_MAX)
    {
        let message = format!("id must not exceed {RECURRING_ID_BYTES_MAX} bytes");
        return Err(ApiError::bad("id", &message));
    }
    let interval = interval(&fields)?;
    Ok(Recur {
        id,
        body: fields.required("meta")?.get().to_owned(),
        klass: fields.class()?,
        interval_s: interval.ok_or_else(|| ApiError::bad("interval", "interval is missing"))?,
        cron: None,
        offset_s: fields.seconds("offset")?.unwrap_or_default(),
        priority: fields.number("priority")?.unwrap_or_default(),
        tags: fields.names("tags")?.unwrap_or_default(),
        retries: fields.integer("retries", 0)?.unwrap_or_default(),
        backlog: fields.integer("backlog", 0)?.unwrap_or_default(),
    })
}

fn interval(fields: &Fields<'_>) -> Result<Option<f64>, ApiError> {
    match fields.seconds("interval")? {
        Some(interval) if interval <= 0.0 => {
            Err(ApiError::bad("interval", "interval must be greater than 0"))
        }
        interval => Ok(interval),
    }
}

pub async fn recurring(api: Api, call: Call) -> Outcome {
    let id = call.name("id")?;
    api.now(&call.envelope()?)?;
    match api.engine.recurring(id).await? {
        Some(recurring) => Ok(Results::new(&view(&api, &recurring))),
        None => Err(Error::NoSuchRecurring { id: id.to_owned() }.into()),
    }
}

pub async fn change(api: Api, call: Call) -> Outcome {
    let (id, envelope) = (call.name("id")?, call.envelope()?);
    let now = api.now(&envelope)?;
    let fields = Fields::of(envelope.data()?)?;
    let change = RecurringChange {
        priority: fields.number("priority")?,
        interval_s: interval(&fields)?,
        cron: None,
        retries: fields.integer("retries", 0)?,
        backlog: fields.integer("backlog", 0)?,
        body: fields.get("meta").map(|meta| meta.get().to_owned()),
        klass: fields.class()?,
        queue: fields.name("queue")?.map(QueueKey::qless),
        tag: fields.names("tag")?.unwrap_or_default(),
        untag: fields.names("untag")?.unwrap_or_default(),
    };
    let recurring = api.engine.change_recurring(id, change, now).await?;
    Ok(Results::new(&view(&api, &recurring)))
}

pub async fn unrecur(api: Api, call: Call) -> Outcome {
    let (id, now) = (call.name("id")?, api.now(&call.envelope()?)?);
    api.engine.unrecur(id, now).await?;
    Ok(Results::new(&true))
}

/// The list of a queue's recurring jobs.
pub async fn list(api: &Api, call: &Call, queue: &QueueKey) -> Outcome {
    let (page, full) = (call.page()?, call.bool_parameter("full")?);
    api.now(&call.envelope()?)?;
    if full {
        let found = api.engine.recurring_in(queue, page).await?;
        let views: Vec<_> = found.iter().map(|it| view(api, it)).collect();
        return Ok(Results::new(&views));
    }
    let found = api.engine.list_recurring(Some(queue), page).await?;
    let ids: Vec<_> = found.iter().map(|it| it.id.as_str()).collect();
    Ok(Results::new(&ids))
}

fn view<'a>(api: &'a Api, recurring: &'a Recurring) -> RecurringView<'a> {
    RecurringView {
        recurring,
        queues: api.engine.known_queues(),
    }
}

/// A recurring job in a response.
struct RecurringView<'a> {
    recurring: &'a Recurring,
    queues: &'a Queues,
}

impl Serialize for RecurringView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let recurring = self.recurring;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &recurring.id)?;
        map.serialize_entry("queue", &self.queues.name(recurring.queue))?;
        map.serialize_entry("klass", &recurring.klass)?;
        map.serialize_entry("meta", &json_text(&recurring.body))?;
        map.serialize_entry("state", "recur")?;
        map.serialize_entry("priority", &number(recurring.priority))?;
        map.serialize_entry("interval", &number(recurring.interval_s()))?;
        map.serialize_entry("retries", &recurring.retries)?;
        map.serialize_entry("count", &recurring.children_count)?;
        map.serialize_entry("tags", &recurring.tags)?;
        map.serialize_entry("backlog", &recurring.backlog)?;
        map.end()
    }
}
