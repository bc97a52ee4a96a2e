//! Recurring jobs.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::answer::{Answer, json_text, number};
use super::call::{Call, Fields};
use super::refusal::Refusal;
use super::working::on_items;
use super::{Front, Outcome};
use crate::engine::{
    Error, QueueKey, Queues, RECURRING_ID_BYTES_MAX, Recur, Recurring, RecurringChange,
};

pub async fn recur(front: Front, call: Call) -> Outcome {
    let queue = QueueKey::qless(call.name("queue")?);
    on_items(&front, &call, read_recur, async |front, jobs, now| {
        front.engine.recur(queue, jobs, now).await
    })
    .await
}

fn read_recur(item: &RawValue) -> Result<Recur, Refusal> {
    let fields = Fields::of(item)?;
    let id = fields.name("id")?;
    if id
        .as_ref()
        .is_some_and(|id| id.len() > RECURRING_ID_BYTES_MAX)
    {
        let message = format!("id must not exceed {RECURRING_ID_BYTES_MAX} bytes");
        return Err(Refusal::bad("id", &message));
    }
    let interval = interval(&fields)?;
    Ok(Recur {
        id,
        body: fields.required("meta")?.get().to_owned(),
        klass: fields.text("klass")?.map(Cow::into_owned),
        interval_s: interval.ok_or_else(|| Refusal::bad("interval", "interval is missing"))?,
        offset_s: fields.seconds("offset")?.unwrap_or_default(),
        priority: fields.number("priority")?.unwrap_or_default(),
        tags: fields.names("tags")?.unwrap_or_default(),
        retries: fields.integer("retries", 0)?.unwrap_or_default(),
        backlog: fields.integer("backlog", 0)?.unwrap_or_default(),
    })
}

fn interval(fields: &Fields<'_>) -> Result<Option<f64>, Refusal> {
    match fields.seconds("interval")? {
        Some(interval) if interval <= 0.0 => {
            Err(Refusal::bad("interval", "interval must be greater than 0"))
        }
        interval => Ok(interval),
    }
}

pub async fn recurring(front: Front, call: Call) -> Outcome {
    let id = call.name("id")?;
    front.now(&call.envelope()?)?;
    match front.engine.recurring(id).await? {
        Some(recurring) => Ok(Answer::new(&view(&front, &recurring))),
        None => Err(Error::NoSuchRecurring { id: id.to_owned() }.into()),
    }
}

pub async fn change(front: Front, call: Call) -> Outcome {
    let (id, envelope) = (call.name("id")?, call.envelope()?);
    let now = front.now(&envelope)?;
    let fields = Fields::of(envelope.data()?)?;
    let change = RecurringChange {
        priority: fields.number("priority")?,
        interval_s: interval(&fields)?,
        retries: fields.integer("retries", 0)?,
        backlog: fields.integer("backlog", 0)?,
        body: fields.get("meta").map(|meta| meta.get().to_owned()),
        klass: fields.text("klass")?.map(Cow::into_owned),
        queue: fields.name("queue")?.map(QueueKey::qless),
        tag: fields.names("tag")?.unwrap_or_default(),
        untag: fields.names("untag")?.unwrap_or_default(),
    };
    let recurring = front.engine.change_recurring(id, change, now).await?;
    Ok(Answer::new(&view(&front, &recurring)))
}

pub async fn unrecur(front: Front, call: Call) -> Outcome {
    let (id, now) = (call.name("id")?, front.now(&call.envelope()?)?);
    front.engine.unrecur(id, now).await?;
    Ok(Answer::new(&true))
}

/// The list of a queue's recurring jobs.
pub async fn list(front: &Front, call: &Call, queue: &QueueKey) -> Outcome {
    let (page, full) = (call.page()?, call.switch("full")?);
    front.now(&call.envelope()?)?;
    let found = front.engine.recurring_in(Some(queue), page).await?;
    Ok(if full {
        Answer::new(&found.iter().map(|it| view(front, it)).collect::<Vec<_>>())
    } else {
        Answer::new(&found.iter().map(|it| it.id.as_str()).collect::<Vec<_>>())
    })
}

fn view<'a>(front: &'a Front, recurring: &'a Recurring) -> RecurringView<'a> {
    RecurringView {
        recurring,
        queues: front.engine.known_queues(),
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
