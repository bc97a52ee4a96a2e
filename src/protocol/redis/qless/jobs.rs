//! Put and requeue jobs, and the commands of workers: pop, peek, heartbeat, complete, fail, retry.

use super::arguments::Options;
use super::error::{CommandError, error_reply};
use super::view::priority;
use super::{Call, CallResult, Dialect, GRACE_S, integer, only};
use crate::engine::{
    Claim, Engine, Error, Fail, LeaseHolder, NextQueue, Put, QueueKey, Retry, Time,
};
use crate::memory::Reserved;
use crate::protocol::redis::resp::Reply;

/// The name of the command in messages.
pub const PUT: &str = "Put";

/// Maximum number of commands whose jobs go to the engine together, and the size of their texts in bytes.
const PUTS_MAX: usize = 100;
const PUTS_BYTES_MAX: usize = 1 << 20;

/// Jobs that one client puts into one queue. Those of consecutive commands go to the engine together.
pub struct Puts {
    dialect: Dialect,
    queue: QueueKey,
    worker: String,
    now: Option<Time>,
    jobs: Vec<Put>,
    bytes: usize,
    /// The memory of the commands.
    reserved: Vec<Reserved>,
}

impl Puts {
    pub(super) fn read(mut call: Call<'_>) -> Result<Puts, CommandError> {
        let worker = match call.dialect {
            Dialect::Workerless => String::new(),
            _ => call.arguments.worker()?,
        };
        let (queue, put) = read_put(&mut call)?;
        Ok(Puts {
            dialect: call.dialect,
            queue,
            worker,
            now: call.now,
            bytes: text_bytes(&put),
            jobs: vec![put],
            reserved: Vec::new(),
        })
    }

    /// These, with the memory of their command.
    pub fn with(mut self, reserved: Reserved) -> Puts {
        if reserved.bytes() > 0 {
            self.reserved.push(reserved);
        }
        self
    }

    /// Adds the jobs of the next command. Returns them if they cannot go to the engine together with these.
    pub fn add(&mut self, next: Puts) -> Option<Puts> {
        let matches = next.dialect == self.dialect
            && next.queue == self.queue
            && next.worker == self.worker
            && next.now == self.now;
        if !matches || self.jobs.len() >= PUTS_MAX || self.bytes + next.bytes > PUTS_BYTES_MAX {
            return Some(next);
        }
        self.bytes += next.bytes;
        self.jobs.extend(next.jobs);
        self.reserved.extend(next.reserved);
        None
    }

    /// The reply to each command.
    pub async fn run(self, engine: &Engine) -> Vec<Reply> {
        let refused = |error: &Error| error_reply(error, PUT, self.dialect);
        let count = self.jobs.len();
        match engine
            .put(self.queue, self.jobs, self.worker, self.now)
            .await
        {
            Ok(done) => {
                let done = done.into_iter();
                done.map(|it| it.map_or_else(|error| refused(&error), Reply::Text))
                    .collect()
            }
            Err(error) => vec![refused(&error); count],
        }
    }
}

/// The memory of the payload, the tags and the dependencies.
fn text_bytes(put: &Put) -> usize {
    let lists = [&put.tags, &put.depends].into_iter().flatten();
    let names = lists.flatten().map(|name| size_of::<String>() + name.len());
    put.body.len() + names.sum::<usize>()
}

/// Puts a job that exists.
pub async fn requeue(mut call: Call<'_>) -> CallResult {
    let worker = call.arguments.worker()?;
    let (queue, put) = read_put(&mut call)?;
    let done = call.engine.requeue(queue, vec![put], worker, call.now);
    Ok(Reply::Text(only(done.await?)?))
}

fn read_put(call: &mut Call<'_>) -> Result<(QueueKey, Put), CommandError> {
    let arguments = &mut call.arguments;
    let queue = arguments.queue()?;
    let id = arguments.name("jid")?;
    let klass = arguments.class()?;
    let body = arguments.json("data")?;
    let delay = arguments.seconds("delay")?;
    let options = arguments.options()?;
    let depends = options.names("depends")?;
    let has_depends = depends.as_ref().is_some_and(|depends| !depends.is_empty());
    if call.dialect == Dialect::Workerless && delay > 0.0 && has_depends {
        return Err(arguments.bad("\"delay\" and \"depends\" are not allowed to be used together"));
    }
    let put = Put {
        id: Some(id),
        body,
        klass: Some(klass),
        delay: Some(delay),
        priority: options.number("priority")?.map(priority),
        tags: options.names("tags")?,
        retries: options.integer("retries", 0)?,
        // As in qless-core: its clients send an empty list whenever they move a job.
        depends: depends.filter(|depends| !depends.is_empty()),
    };
    Ok((queue, put))
}

pub async fn pop(mut call: Call<'_>) -> CallResult {
    let queue = call.arguments.queue()?;
    // Not empty: a running job without a worker would not be in the list of any worker.
    let worker = call.arguments.name("worker")?;
    let count = call.arguments.count(None)?;
    let jobs = match count {
        0 => Vec::new(),
        _ => {
            let claim = Claim {
                grace_s: GRACE_S as f64,
                ..Claim::of(queue, worker, count)
            };
            call.engine.claim(claim, call.now).await?
        }
    };
    call.list(&jobs, true)
}

pub async fn peek(mut call: Call<'_>) -> CallResult {
    let queue = call.arguments.queue()?;
    let count = call.arguments.count(None)?;
    let jobs = call.engine.peek(&queue, count, call.now).await?;
    call.list(&jobs, false)
}

pub async fn heartbeat(mut call: Call<'_>) -> CallResult {
    let key = call.arguments.job()?;
    let holder = holder(call.arguments.worker()?, None);
    let body = call.arguments.optional_json("data")?;
    let done = call.engine.heartbeat(vec![(key, body)], holder, call.now);
    let left_s = only(done.await?)?;
    Ok(integer(call.engine.now(call.now).seconds() + left_s))
}

pub async fn complete(mut call: Call<'_>) -> CallResult {
    let key = call.arguments.job()?;
    let worker = call.arguments.worker()?;
    let queue = call.arguments.name("queue")?;
    let body = call.arguments.json("data")?;
    let options = call.arguments.options()?;
    let next = next(&call, &options)?;
    let (holder, completions) = (holder(worker, Some(queue)), vec![(key, body, next)]);
    let state = only(call.engine.complete(completions, holder, call.now).await?)?;
    Ok(Reply::text(state.as_str()))
}

/// The queue to which a completed job moves.
fn next(call: &Call<'_>, options: &Options) -> Result<Option<NextQueue>, CommandError> {
    let delay = options.seconds("delay")?.unwrap_or_default();
    let depends = options.names("depends")?.unwrap_or_default();
    let refuse = |words| Err(call.arguments.bad(words));
    if call.dialect == Dialect::Workerless && delay > 0.0 && !depends.is_empty() {
        return refuse("\"delay\" and \"depends\" are not allowed together");
    }
    let next = options.text("next").filter(|next| !next.is_empty());
    let queue = next.map(|_| options.queue("next")).transpose()?.flatten();
    match queue {
        Some(queue) => Ok(Some(NextQueue {
            queue,
            delay,
            depends,
        })),
        None if delay > 0.0 => refuse("\"delay\" cannot be used without a \"next\"."),
        None if !depends.is_empty() => refuse("\"depends\" cannot be used without a \"next\"."),
        None => Ok(None),
    }
}

pub async fn fail(mut call: Call<'_>) -> CallResult {
    let key = call.arguments.job()?;
    let holder = holder(call.arguments.worker()?, None);
    let fail = Fail {
        group: call.arguments.name("group")?,
        message: call.arguments.required("message")?,
        body: call.arguments.optional_json("data")?,
        key,
    };
    let id = fail.key.id.clone();
    only(call.engine.fail(vec![fail], holder, call.now).await?)?;
    Ok(Reply::Text(id))
}

pub async fn retry(mut call: Call<'_>) -> CallResult {
    let key = call.arguments.job()?;
    // qless-core does not compare it.
    call.arguments.name("queue")?;
    let holder = holder(call.arguments.worker()?, None);
    let delay = call.arguments.seconds_or_zero("delay")?;
    let group = call.arguments.optional_name("group")?;
    let retry = Retry {
        key,
        delay,
        reason: group.zip(call.arguments.next()),
    };
    let left = only(call.engine.retry(vec![retry], holder, call.now).await?)?;
    Ok(Reply::Integer(left))
}

fn holder(worker: String, queue: Option<String>) -> LeaseHolder {
    LeaseHolder { worker, queue }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_with_long_texts_go_to_the_engine_in_parts() {
        let put = |names: usize, of: fn(Vec<String>) -> Put| {
            let put = of(vec!["a".to_owned(); names]);
            Puts {
                dialect: Dialect::Workerless,
                queue: QueueKey::qless("q"),
                worker: String::new(),
                now: None,
                bytes: text_bytes(&put),
                jobs: vec![put],
                reserved: Vec::new(),
            }
        };
        let is_together = |mut one: Puts, other: Puts| one.add(other).is_none();
        let kinds: [fn(Vec<String>) -> Put; 3] = [
            |names| Put {
                tags: Some(names),
                ..Put::default()
            },
            |names| Put {
                depends: Some(names),
                ..Put::default()
            },
            |names| Put {
                body: "a".repeat(25 * names.len()),
                ..Put::default()
            },
        ];
        for of in kinds {
            assert!(is_together(put(20_000, of), put(20_000, of)));
            assert!(!is_together(put(22_000, of), put(22_000, of)));
        }
    }
}
