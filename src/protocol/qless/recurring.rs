//! Recurring jobs.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::call::{Call, Fields};
use super::error::ApiError;
use super::jobs::run_valid;
use super::response::{Results, number};
use super::{Api, HandlerResult};
use crate::engine::{
    CRON_INTERVAL_S, CronSchedule, Error, QueueKey, Queues, RECURRING_ID_BYTES_MAX, Recur,
    Recurring, RecurringChange, Time, check_zone,
};
use crate::memory;
use crate::protocol::body;

/// Maximum number of items with a cron expression in a request, because each is checked by a search for its next run.
const CRON_ITEMS_MAX: usize = 100;

/// When the jobs of a recurring job are due, as the request says.
enum Schedule {
    /// The interval in seconds.
    Interval(f64),
    /// A cron expression that is not checked yet, and its time zone.
    Cron(String, String),
}

pub async fn recur(api: Api, call: Call) -> HandlerResult {
    let queue = QueueKey::qless(call.name("queue")?);
    let envelope = call.envelope().await?;
    let now = api.now(&envelope)?;
    let (read, array) = envelope.items(read_recur).await?;
    let mut cron_items = 0;
    let mut jobs = Vec::with_capacity(read.len());
    for job in read {
        let job = match job {
            Ok((_, Schedule::Cron(..))) if cron_items == CRON_ITEMS_MAX => Err(ApiError::bad(
                "cron",
                &format!("a request can have at most {CRON_ITEMS_MAX} cron expressions"),
            )),
            Ok((job, schedule)) => {
                cron_items += usize::from(matches!(schedule, Schedule::Cron(..)));
                let scheduled = scheduled(schedule, api.engine.now(now)).await;
                scheduled.map(|(interval, cron)| Recur {
                    interval_s: interval.unwrap_or(CRON_INTERVAL_S),
                    cron,
                    ..job
                })
            }
            Err(error) => Err(error),
        };
        jobs.push(job);
    }
    let done = run_valid(jobs, async |jobs| api.engine.recur(queue, jobs, now).await).await?;
    Results::of_items(done, array).await
}

/// A recurring job without its schedule, and its schedule.
fn read_recur(item: &RawValue) -> Result<(Recur, Schedule), ApiError> {
    let fields = Fields::of(item)?;
    let id = fields.name("id")?;
    if id
        .as_ref()
        .is_some_and(|id| id.len() > RECURRING_ID_BYTES_MAX)
    {
        let message = format!("id must not exceed {RECURRING_ID_BYTES_MAX} bytes");
        return Err(ApiError::bad("id", &message));
    }
    let schedule = schedule(&fields)?;
    let recur = Recur {
        id,
        body: fields.required("meta")?.get().to_owned(),
        klass: fields.class()?,
        interval_s: 0.0,
        cron: None,
        offset_s: fields.seconds("offset")?.unwrap_or_default(),
        priority: fields.number("priority")?.unwrap_or_default(),
        tags: fields.names("tags")?.unwrap_or_default(),
        retries: fields.integer("retries", 0)?.unwrap_or_default(),
        backlog: fields.integer("backlog", 0)?.unwrap_or_default(),
    };
    let missing = || ApiError::bad("interval", "interval or cron is missing");
    Ok((recur, schedule.ok_or_else(missing)?))
}

/// The interval or the cron expression of an item; `None` if it has neither.
fn schedule(fields: &Fields<'_>) -> Result<Option<Schedule>, ApiError> {
    let (cron, zone) = (fields.text("cron")?, fields.text("timezone")?);
    match (interval(fields)?, cron, zone) {
        (Some(_), Some(_), _) => Err(ApiError::bad("cron", "give either interval or cron")),
        (_, None, Some(_)) => Err(ApiError::bad("timezone", "timezone is only used with cron")),
        (interval, None, None) => Ok(interval.map(Schedule::Interval)),
        (None, Some(cron), zone) => {
            let zone = zone.unwrap_or_default().into_owned();
            check_zone(&zone).map_err(|why| ApiError::bad("timezone", &why))?;
            Ok(Some(Schedule::Cron(cron.into_owned(), zone)))
        }
    }
}

/// The interval, or the checked cron expression, which must have a run after `now`. The search for it can take long.
async fn scheduled(
    schedule: Schedule,
    now: Time,
) -> Result<(Option<f64>, Option<CronSchedule>), ApiError> {
    let (cron, zone) = match schedule {
        Schedule::Interval(interval) => return Ok((Some(interval), None)),
        Schedule::Cron(cron, zone) => (cron, zone),
    };
    let cron = CronSchedule::check(cron, zone, now).await;
    let cron = cron.map_err(|why| ApiError::bad("cron", &why))?;
    Ok((None, Some(cron)))
}

fn interval(fields: &Fields<'_>) -> Result<Option<f64>, ApiError> {
    match fields.seconds("interval")? {
        Some(interval) if interval <= 0.0 => {
            Err(ApiError::bad("interval", "interval must be greater than 0"))
        }
        interval => Ok(interval),
    }
}

pub async fn recurring(api: Api, call: Call) -> HandlerResult {
    let id = call.name("id")?;
    api.now(&call.envelope().await?)?;
    match api.engine.recurring(id).await? {
        Some(recurring) => Ok(Results::new(&view(&api, &recurring))),
        None => Err(Error::NoSuchRecurring { id: id.to_owned() }.into()),
    }
}

pub async fn change(api: Api, call: Call) -> HandlerResult {
    let (id, envelope) = (call.name("id")?, call.envelope().await?);
    let now = api.now(&envelope)?;
    let data = envelope.data()?;
    let read = body::parse(data.get().len(), || {
        // The payload is copied.
        memory::count(data.get().len());
        read_change(data)
    });
    let read = read.await?;
    let (mut change, schedule) = read?;
    if let Some(schedule) = schedule {
        (change.interval_s, change.cron) = scheduled(schedule, api.engine.now(now)).await?;
    }
    let recurring = api.engine.change_recurring(id, change, now).await?;
    Ok(Results::new(&view(&api, &recurring)))
}

/// A change without its schedule, and its schedule.
fn read_change(data: &RawValue) -> Result<(RecurringChange, Option<Schedule>), ApiError> {
    let fields = Fields::of(data)?;
    let change = RecurringChange {
        priority: fields.number("priority")?,
        retries: fields.integer("retries", 0)?,
        backlog: fields.integer("backlog", 0)?,
        body: fields.get("meta").map(|meta| meta.get().to_owned()),
        klass: fields.class()?,
        queue: fields.name("queue")?.map(QueueKey::qless),
        tag: fields.names("tag")?.unwrap_or_default(),
        untag: fields.names("untag")?.unwrap_or_default(),
        ..RecurringChange::default()
    };
    Ok((change, schedule(&fields)?))
}

pub async fn unrecur(api: Api, call: Call) -> HandlerResult {
    let (id, now) = (call.name("id")?, api.now(&call.envelope().await?)?);
    api.engine.unrecur(id, now).await?;
    Ok(Results::new(&true))
}

/// The list of a queue's recurring jobs.
pub async fn list(api: &Api, call: &Call, queue: &QueueKey) -> HandlerResult {
    let (page, full) = (call.page()?, call.bool_parameter("full")?);
    api.now(&call.envelope().await?)?;
    if full {
        let found = api.engine.recurring_in(queue, page).await?;
        let views: Vec<_> = found.iter().map(|it| view(api, it)).collect();
        return Ok(Results::new(&views));
    }
    let ids = api.engine.recurring_ids(queue, page).await?;
    Ok(Results::new(&ids))
}

fn view<'a>(api: &'a Api, recurring: &'a Recurring) -> RecurringJobView<'a> {
    RecurringJobView {
        recurring,
        queues: api.engine.known_queues(),
    }
}

/// A recurring job in a response.
struct RecurringJobView<'a> {
    recurring: &'a Recurring,
    queues: &'a Queues,
}

impl Serialize for RecurringJobView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let recurring = self.recurring;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &recurring.id)?;
        map.serialize_entry("queue", &self.queues.name(recurring.queue))?;
        map.serialize_entry("klass", &recurring.klass)?;
        map.serialize_entry("meta", &body::stored(&recurring.body))?;
        map.serialize_entry("state", "recur")?;
        map.serialize_entry("priority", &number(recurring.priority))?;
        map.serialize_entry("interval", &number(recurring.interval_s()))?;
        map.serialize_entry("retries", &recurring.retries)?;
        map.serialize_entry("count", &recurring.children_count)?;
        map.serialize_entry("tags", &recurring.tags)?;
        map.serialize_entry("backlog", &recurring.backlog)?;
        if let Some(cron) = &recurring.cron {
            map.serialize_entry("cron", &cron.expression)?;
            map.serialize_entry("timezone", &cron.zone)?;
        }
        map.end()
    }
}
