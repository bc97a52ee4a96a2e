//! Recurring jobs.

use super::error::CommandError;
use super::view::{RecurringJobView, Table, priority};
use super::{Arguments, Call, CallResult, json, only};
use crate::engine::{RECURRING_ID_BYTES_MAX, Recur, RecurringChange};
use crate::protocol::redis::resp::{Reply, repeated};

pub async fn recur(mut call: Call<'_>) -> CallResult {
    let arguments = &mut call.arguments;
    let queue = arguments.queue()?;
    let id = arguments.name("jid")?;
    if id.len() > RECURRING_ID_BYTES_MAX {
        let words = format!("Arg \"jid\" must not exceed {RECURRING_ID_BYTES_MAX} bytes");
        return Err(arguments.bad(&words));
    }
    let klass = arguments.class()?;
    let body = arguments.json("data")?;
    let kind = arguments.required("spec")?;
    if kind != "interval" {
        return Err(arguments.bad(&format!("schedule type \"{}\" unknown", repeated(&kind))));
    }
    let interval_s = arguments.seconds("interval")?;
    let offset_s = arguments.seconds("offset")?;
    check_interval(arguments, interval_s)?;
    let options = arguments.options()?;
    let recur = Recur {
        id: Some(id),
        body,
        klass: Some(klass),
        interval_s,
        cron: None,
        offset_s,
        priority: priority(options.number("priority")?.unwrap_or_default()),
        tags: options.names("tags")?.unwrap_or_default(),
        retries: options.integer("retries", 0)?.unwrap_or_default(),
        backlog: options.integer("backlog", 0)?.unwrap_or_default(),
    };
    let done = call.engine.recur(queue, vec![recur], call.now).await?;
    Ok(Reply::Text(only(done)?))
}

fn check_interval(arguments: &Arguments, interval_s: f64) -> Result<(), CommandError> {
    // Half a microsecond is rounded up to the smallest interval.
    if interval_s * 1e6 >= 0.5 {
        return Ok(());
    }
    Err(arguments.bad("Arg \"interval\" must be greater than 0"))
}

pub async fn unrecur(mut call: Call<'_>) -> CallResult {
    let id = call.arguments.name("jid")?;
    call.engine.unrecur(&id, call.now).await?;
    Ok(Reply::Integer(1))
}

pub async fn recurring(mut call: Call<'_>) -> CallResult {
    let id = call.arguments.name("jid")?;
    match call.engine.recurring(&id).await? {
        None => Ok(Reply::Null),
        Some(job) => json(&RecurringJobView {
            job: &job,
            queues: call.engine.known_queues(),
        }),
    }
}

/// What [`change`] can change.
const OPTIONS: [&str; 7] = [
    "priority", "interval", "retries", "backlog", "data", "klass", "queue",
];

pub async fn change(mut call: Call<'_>) -> CallResult {
    let id = call.arguments.name("jid")?;
    let options = call.arguments.options()?;
    if let Some(unknown) = options.given().find(|name| !OPTIONS.contains(name)) {
        let words = format!("Unrecognized option \"{}\"", repeated(unknown));
        return Err(call.arguments.bad(&words));
    }
    let interval_s = options.seconds("interval")?;
    if let Some(interval_s) = interval_s {
        check_interval(&call.arguments, interval_s)?;
    }
    let change = RecurringChange {
        priority: options.number("priority")?.map(priority),
        interval_s,
        retries: options.integer("retries", 0)?,
        backlog: options.integer("backlog", 0)?,
        body: options.json("data")?,
        klass: options.class("klass")?,
        queue: options.queue("queue")?,
        ..RecurringChange::default()
    };
    call.engine.change_recurring(&id, change, call.now).await?;
    Ok(Reply::Integer(1))
}

pub async fn tag(call: Call<'_>) -> CallResult {
    change_tags(call, |tag| RecurringChange {
        tag,
        ..RecurringChange::default()
    })
    .await
}

pub async fn untag(call: Call<'_>) -> CallResult {
    change_tags(call, |untag| RecurringChange {
        untag,
        ..RecurringChange::default()
    })
    .await
}

async fn change_tags(
    mut call: Call<'_>,
    change: impl FnOnce(Vec<String>) -> RecurringChange,
) -> CallResult {
    let id = call.arguments.name("jid")?;
    let change = change(call.arguments.names("tags")?);
    let job = call.engine.change_recurring(&id, change, call.now).await?;
    json(&Table(&job.tags))
}
