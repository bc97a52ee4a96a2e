//! Commands on jobs that need no lease, and on queues, workers and options.

use super::error::CommandError;
use super::view::{self, OptionsView, Table, option_text};
use super::{Call, CallResult, integer, json, only};
use crate::engine::{
    Config, Depend, Error, JobKey, NOTE_BYTES_MAX, NewPause, QueueKey, Result as EngineResult,
};
use crate::protocol::long_list;
use crate::protocol::qless::{Fields, TOP_TAG};
use crate::protocol::redis::resp::{Reply, repeated};

/// Default number of failures that `unfail` moves (qless-core, Unfail).
const UNFAIL: f64 = 25.0;

/// Maximum number of attempts to cancel jobs, some of which may end meanwhile.
const CANCEL_ATTEMPTS: usize = 5;

/// Cancels jobs. Complete ones are passed over.
pub async fn cancel(mut call: Call<'_>) -> CallResult {
    let mut keys = call.arguments.jobs()?;
    let ids = keys.iter().map(|key| Reply::text(&key.id)).collect();
    for attempt in 1.. {
        match call.engine.cancel(keys.clone(), call.now).await {
            Err(Error::AlreadyComplete { .. }) if attempt < CANCEL_ATTEMPTS => {
                keys = incomplete(&call, keys).await?;
            }
            done => {
                done?;
                break;
            }
        }
    }
    Ok(Reply::List(ids))
}

async fn incomplete(call: &Call<'_>, keys: Vec<JobKey>) -> Result<Vec<JobKey>, CommandError> {
    let complete = call.engine.complete_jobs(&keys).await?;
    let left = keys.into_iter().filter(|key| !complete.contains(key));
    Ok(left.collect())
}

pub async fn time_out(mut call: Call<'_>) -> CallResult {
    let keys = call.arguments.jobs()?;
    let done = call.engine.time_out(keys, call.now).await?;
    done.into_iter().collect::<EngineResult<Vec<()>>>()?;
    Ok(Reply::Null)
}

pub async fn unfail(mut call: Call<'_>) -> CallResult {
    let queue = call.arguments.queue()?;
    let group = call.arguments.required("group")?;
    let count = call.arguments.count(Some(UNFAIL))?;
    let moved = call.engine.unfail(&group, Some(queue), count, call.now);
    Ok(Reply::integer(moved.await?))
}

pub async fn priority(mut call: Call<'_>) -> CallResult {
    let key = call.arguments.job()?;
    let given = call.arguments.number("priority")?;
    let jobs = vec![(key, view::priority(given))];
    only(call.engine.prioritize(jobs, call.now).await?)?;
    Ok(integer(given))
}

pub async fn depends(mut call: Call<'_>) -> CallResult {
    let key = call.arguments.job()?;
    let change = match call.arguments.required("command")?.as_str() {
        "on" => Depend::On(call.arguments.names("jid")?),
        "off" => {
            let jids = call.arguments.names("jid")?;
            match jids.first().map(String::as_str) {
                Some("all") => Depend::OffAll,
                _ => Depend::Off(jids),
            }
        }
        _ => {
            return Err(call
                .arguments
                .bad("Argument \"command\" must be \"on\" or \"off\""));
        }
    };
    only(call.engine.depend(vec![(key, change)], call.now).await?)?;
    Ok(Reply::Integer(1))
}

pub async fn tag(mut call: Call<'_>) -> CallResult {
    let command = call.arguments.required("command")?;
    match command.as_str() {
        "add" | "remove" => {
            let tags = vec![(call.arguments.job()?, call.arguments.names("tag")?)];
            let done = match command == "add" {
                true => call.engine.tag(tags, call.now).await?,
                false => call.engine.untag(tags, call.now).await?,
            };
            json(&Table(&only(done)?))
        }
        "get" => {
            let tag = call.arguments.name("tag")?;
            let (total, ids) = call.engine.tagged(&tag, call.arguments.page()?).await?;
            super::lists::total_and_jobs(total, &ids)
        }
        "top" => {
            let tags = call
                .engine
                .top_tags(TOP_TAG, call.arguments.page()?)
                .await?;
            let tags: Vec<_> = tags.into_iter().map(|(tag, _)| tag).collect();
            json(&Table(&tags))
        }
        _ => {
            let words = "First argument must be \"add\", \"remove\" or \"get\"";
            Err(call.arguments.bad(words))
        }
    }
}

/// Tracks a job, or lists the tracked ones.
pub async fn track(mut call: Call<'_>) -> CallResult {
    let Some(command) = call.arguments.next() else {
        return super::lists::tracked(&call).await;
    };
    let key = call.arguments.job()?;
    // Whether the command changed something. Other servers' changes are known a moment later.
    let was_tracked = call.engine.known_tracked().contains(&key.id);
    match command.to_ascii_lowercase().as_str() {
        "track" => {
            let jobs = vec![(key, Vec::new())];
            only(call.engine.track(jobs, call.now).await?)?;
            Ok(Reply::text(if was_tracked { "0" } else { "1" }))
        }
        "untrack" => {
            only(call.engine.untrack(vec![key], call.now).await?)?;
            Ok(Reply::text(if was_tracked { "1" } else { "0" }))
        }
        _ => {
            let words = format!("Unknown action \"{}\"", repeated(&command));
            Err(call.arguments.bad(&words))
        }
    }
}

/// Adds a note to a job's history.
pub async fn log(mut call: Call<'_>) -> CallResult {
    let key = call.arguments.job()?;
    let message = call.arguments.required("message")?;
    if message.is_empty() {
        return Err(call.arguments.bad("Argument 'message' missing"));
    }
    let data = call.arguments.optional_json("data")?;
    let data = data.filter(|data| data.trim() != "{}" && data.trim() != "null");
    // First, because it bounds the time of the checks below.
    if message.len() + data.as_ref().map_or(0, String::len) > NOTE_BYTES_MAX {
        let words = format!("message and data together must not exceed {NOTE_BYTES_MAX} bytes");
        return Err(call.arguments.bad(&words));
    }
    if let Some(data) = &data {
        let fields: Result<Fields<'_>, _> = serde_json::from_str(data);
        let fields = fields.map_err(|_| call.arguments.bad("Argument 'data' must be an object"))?;
        if fields.get("what").is_some() || fields.get("when").is_some() {
            let words = "Argument 'data' must not contain what or when";
            return Err(call.arguments.bad(words));
        }
    }
    only(
        call.engine
            .note(vec![(key, message, data)], call.now)
            .await?,
    )?;
    Ok(Reply::Null)
}

pub async fn set_paused(mut call: Call<'_>, paused: bool) -> CallResult {
    let queues = call.arguments.names("queue")?.into_iter();
    let queues: Vec<QueueKey> = queues.map(QueueKey::qless).collect();
    let pause = paused.then(NewPause::default);
    call.engine.pause_queues(&queues, pause, call.now).await?;
    Ok(Reply::Null)
}

pub async fn forget_workers(mut call: Call<'_>) -> CallResult {
    for worker in call.arguments.names("worker")? {
        call.engine.forget_worker(&worker, call.now).await?;
    }
    Ok(Reply::Null)
}

pub async fn forget_queues(mut call: Call<'_>) -> CallResult {
    for queue in call.arguments.names("queue")? {
        let queue = QueueKey::qless(queue);
        call.engine.forget_queue(queue, call.now).await?;
    }
    Ok(Reply::Null)
}

/// One option, or all.
pub async fn option(mut call: Call<'_>) -> CallResult {
    let config = call.engine.options().await?;
    let Some(option) = call.arguments.next().filter(|option| !option.is_empty()) else {
        let _permit = long_list::of_options(config).await?;
        return json(&OptionsView(config));
    };
    let Some(value) = view::option(config, &option) else {
        return Ok(Reply::Null);
    };
    match (config.is_set(&option), value.parse::<i64>()) {
        (false, Ok(number)) => Ok(Reply::Integer(number)),
        _ => Ok(Reply::Text(option_text(&value))),
    }
}

pub async fn set_option(mut call: Call<'_>) -> CallResult {
    let option = call.arguments.required("option")?;
    let value = call.arguments.required("value")?;
    Config::check_sizes(&option, &value)?;
    // The engine keeps JSON texts; over HTTP, a number is one.
    let is_number =
        Config::is_number(&option) && serde_json::from_str::<serde_json::Number>(&value).is_ok();
    let value = match is_number {
        true => value,
        false => serde_json::Value::from(value).to_string(),
    };
    call.engine
        .configure(&option, Some(value), call.now)
        .await?;
    Ok(Reply::Null)
}

pub async fn unset_option(mut call: Call<'_>) -> CallResult {
    let option = call.arguments.required("option")?;
    call.engine.configure(&option, None, call.now).await?;
    Ok(Reply::Null)
}
