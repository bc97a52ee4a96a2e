//! The commands of qless-core: `EVALSHA <sha> 0 <command> <now> <arguments>`. Each calls the engine's verb that the
//! HTTP API calls; what differs are the arguments, the replies and the words of errors (`docs/protocols/redis.md`).

mod arguments;
mod error;
mod jobs;
pub mod keys;
mod lists;
mod manage;
mod recurring;
mod view;

use serde::Serialize;

use self::arguments::{Arguments, number};
use self::error::CommandError;
pub use self::jobs::Puts;
use self::view::{JobView, Table};
use super::resp::{Reply, repeated};
pub use super::scripts::Dialect;
use crate::engine::{Engine, Error, Job, Result, Time};
use crate::protocol::body;

/// The option `grace-period` if it is not set, in seconds (qless-core, Config). Over HTTP it is 0.
pub const GRACE_S: i64 = 10;

type CallResult = std::result::Result<Reply, CommandError>;

/// A call of a script.
struct Call<'a> {
    engine: &'a Engine,
    dialect: Dialect,
    /// The client's time, if the server trusts it.
    now: Option<Time>,
    arguments: Arguments,
}

/// The name of a command in messages; `None` if it does not exist.
fn name_in_errors(command: &str) -> Option<&'static str> {
    Some(match command {
        "put" => jobs::PUT,
        "requeue" => "Requeue",
        "pop" => "Pop",
        "peek" => "Peek",
        "heartbeat" => "Heartbeat",
        "complete" => "Complete",
        "fail" => "Fail",
        "retry" => "Retry",
        "cancel" => "Cancel",
        "get" | "multiget" => "Job",
        "jobs" => "Jobs",
        "failed" => "Failed",
        "unfail" => "Unfail",
        "priority" => "Priority",
        "depends" => "Depends",
        "tag" | "recur.tag" => "Tag",
        "recur.untag" => "Untag",
        "track" => "Track",
        "workers" => "Workers",
        "queues" | "length" => "Queue",
        "stats" => "Stats",
        "config.get" => "config.get",
        "config.set" => "config.set",
        "config.unset" => "config.unset",
        "pause" => "Pause",
        "unpause" => "Unpause",
        "timeout" => "Timeout",
        "log" => "Log",
        "worker.deregister" => "Deregister",
        "queue.forget" => "Forget",
        "recur" | "recur.update" => "Recur",
        "unrecur" | "recur.get" => "Recurring",
        _ => return None,
    })
}

/// Whether the command only reads: it publishes no event.
fn only_reads(command: &str) -> bool {
    matches!(
        command,
        "get"
            | "multiget"
            | "jobs"
            | "failed"
            | "workers"
            | "queues"
            | "length"
            | "stats"
            | "config.get"
            | "recur.get"
    )
}

/// The result of a command.
pub enum CommandResult {
    Reply {
        reply: Reply,
        /// Whether the command can have published events.
        publishes: bool,
    },
    /// The command was `put`. The client may have sent more of them, so they are not yet run.
    Puts(Puts),
}

impl CommandResult {
    /// An error that the script raises.
    fn refused(words: &str) -> CommandResult {
        CommandResult::Reply {
            reply: Reply::script_error(words),
            publishes: false,
        }
    }
}

/// Runs a command; of `put`, it only reads the arguments.
pub async fn run(engine: &Engine, dialect: Dialect, arguments: Vec<String>) -> CommandResult {
    // Postgres cannot store it.
    if arguments.iter().any(|argument| argument.contains('\0')) {
        return CommandResult::refused("the arguments must not contain the character U+0000");
    }
    let mut arguments = arguments.into_iter();
    let Some(command) = arguments.next() else {
        return CommandResult::refused("Must provide a command");
    };
    let known =
        name_in_errors(&command).filter(|_| dialect != Dialect::Workerless || command != "requeue");
    let Some(area) = known else {
        return CommandResult::refused(&format!("Unknown command {}", repeated(&command)));
    };
    let Some(now) = arguments.next().as_deref().and_then(number) else {
        return CommandResult::refused("Arg \"now\" missing or not a number: nil");
    };
    let now = Time::from_seconds(now).filter(|_| engine.trusts_client_clock());
    let call = Call {
        engine,
        dialect,
        now,
        arguments: Arguments::new(area, arguments.collect()),
    };
    let outcome = match command.as_str() {
        "put" => match Puts::read(call) {
            Ok(puts) => return CommandResult::Puts(puts),
            Err(refused) => Err(refused),
        },
        _ => Box::pin(dispatch(&command, call)).await,
    };
    CommandResult::Reply {
        publishes: outcome.is_ok() && !only_reads(&command),
        reply: outcome.unwrap_or_else(|refused| refused.reply(area, dialect)),
    }
}

async fn dispatch(command: &str, call: Call<'_>) -> CallResult {
    match command {
        "requeue" => jobs::requeue(call).await,
        "pop" => jobs::pop(call).await,
        "peek" => jobs::peek(call).await,
        "heartbeat" => jobs::heartbeat(call).await,
        "complete" => jobs::complete(call).await,
        "fail" => jobs::fail(call).await,
        "retry" => jobs::retry(call).await,
        "cancel" => manage::cancel(call).await,
        "timeout" => manage::time_out(call).await,
        "unfail" => manage::unfail(call).await,
        "priority" => manage::priority(call).await,
        "depends" => manage::depends(call).await,
        "tag" => manage::tag(call).await,
        "track" => manage::track(call).await,
        "log" => manage::log(call).await,
        "pause" => manage::set_paused(call, true).await,
        "unpause" => manage::set_paused(call, false).await,
        "worker.deregister" => manage::forget_workers(call).await,
        "queue.forget" => manage::forget_queues(call).await,
        "config.get" => manage::option(call).await,
        "config.set" => manage::set_option(call).await,
        "config.unset" => manage::unset_option(call).await,
        "get" => lists::job(call).await,
        "multiget" => lists::multiget(call).await,
        "jobs" => lists::jobs(call).await,
        "failed" => lists::failed(call).await,
        "queues" => lists::queues(call).await,
        "length" => lists::length(call).await,
        "workers" => lists::workers(call).await,
        "stats" => lists::stats(call).await,
        "recur" => recurring::recur(call).await,
        "unrecur" => recurring::unrecur(call).await,
        "recur.get" => recurring::recurring(call).await,
        "recur.update" => recurring::change(call).await,
        "recur.tag" => recurring::tag(call).await,
        "recur.untag" => recurring::untag(call).await,
        command => {
            let command = repeated(command);
            Err(CommandError::Script(format!("Unknown command {command}")))
        }
    }
}

// ---- shared by the commands ----

impl Call<'_> {
    fn views<'a>(&'a self, jobs: &'a [Job], is_claimed: bool) -> Vec<JobView<'a>> {
        let view = |job| JobView {
            job,
            queues: self.engine.known_queues(),
            tracked: self.engine.known_tracked(),
            dialect: self.dialect,
            now: self.engine.now(self.now),
            is_claimed,
        };
        jobs.iter().map(view).collect()
    }

    /// The jobs as a list.
    fn list(&self, jobs: &[Job], is_claimed: bool) -> CallResult {
        json(&Table(&self.views(jobs, is_claimed)))
    }
}

/// A reply of JSON text.
fn json(value: &impl Serialize) -> CallResult {
    Ok(Reply::Text(body::text(value)?))
}

/// The result for the only job of a verb.
fn only<T>(done: Vec<Result<T>>) -> Result<T> {
    let lost = || Error::Store("a job got no result".to_owned());
    done.into_iter().next().ok_or_else(lost)?
}

/// A number truncated to an integer, as Redis does with the numbers of a script.
#[expect(clippy::cast_possible_truncation, reason = "the numbers are small")]
fn integer(number: f64) -> Reply {
    Reply::Integer(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MEMORY_MAX, of_request, reserve_until_dropped};
    use crate::protocol::long_list::tests::engine_with_long_lists;
    use crate::protocol::redis::pubsub::pattern::Pattern;

    #[tokio::test]
    async fn long_lists_reserve_their_memory_before_they_are_built() {
        let engine = engine_with_long_lists().await;
        let is_refused = async |command: &str| {
            let arguments = vec![command.to_owned(), "0".to_owned()];
            let running = run(&engine, Dialect::Current, arguments);
            match of_request(running).await.0 {
                CommandResult::Reply { reply, .. } => reply.is_try_again(),
                CommandResult::Puts(_) => false,
            }
        };
        let has_no_keys = async || {
            let pattern = Pattern::new("*").unwrap();
            let found = of_request(keys::matching(&engine, &pattern)).await.0;
            found.is_err_and(|error| error == Error::Busy)
        };
        let lists = async || {
            tokio::join!(
                is_refused("queues"),
                is_refused("config.get"),
                has_no_keys()
            )
        };
        let all = reserve_until_dropped(MEMORY_MAX).await.unwrap();
        assert_eq!(lists().await, (true, true, true));
        drop(all);
        assert_eq!(lists().await, (false, false, false));
    }
}
