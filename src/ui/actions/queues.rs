//! Actions on queues.

use std::collections::HashSet;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::dead_letters::jobs_text;
use super::input::{check_name, check_protocol, optional, seconds};
use super::{Action, ActionOutcome, Form, Target, act};
use crate::auth::Role;
use crate::blocking::poll_blocking_if_many;
use crate::engine::{
    AUDIT_ANONYMOUS, Engine, NewPause, PAUSE_REASON_CHARS_MAX, QueueCounts, QueueKey, Time,
    invalid_queue_name_reason,
};
use crate::time;
use crate::ui::components::basics::{number_of, plural};
use crate::ui::context::ActionContext;
use crate::ui::dates::{DATETIME_LOCAL, parse_time};
use crate::ui::error::PageError;
use crate::ui::model::queue::PauseForm;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::page_request::queue_at;
use crate::ui::pages::queues::QueueFilter;
use crate::ui::pages::queues::load::load_queues;
use crate::ui::present::queue_refs::{key, queue_ref};
use crate::ui::present::queue_row;
use crate::ui::urls;

const fn action(name: &'static str, path: &'static str, role: Role) -> Action {
    Action::new(name, path, role, |form| Target::queue(&form.queue()))
}

pub static PAUSE_QUEUE: Action = action("pause_queue", PauseQueue::PATH, Role::Operator);

/// Pauses a queue, or changes its pause: workers get no jobs from it.
#[server]
pub async fn pause_queue(
    #[server(flatten)] queue: QueueRef,
    #[server(flatten)] pause: PauseForm,
    back: String,
) -> Result<(), PageError> {
    act(&PAUSE_QUEUE, &back, async |context| {
        let pause = new_pause(&context, &pause)?;
        let end = end_text(&context.engine, &pause);
        set_paused(&context.engine, &queue, Some(pause)).await?;
        let queue = queue.label();
        Ok(format!("Queue “{queue}” paused{end}. Workers get no jobs from it.").into())
    })
    .await
}

pub static RESUME_QUEUE: Action = action("unpause_queue", UnpauseQueue::PATH, Role::Operator);

/// Resumes a paused queue.
#[server]
pub async fn unpause_queue(
    #[server(flatten)] queue: QueueRef,
    back: String,
) -> Result<(), PageError> {
    act(&RESUME_QUEUE, &back, async |context| {
        set_paused(&context.engine, &queue, None).await?;
        Ok(format!("Queue “{}” resumed.", queue.label()).into())
    })
    .await
}

/// Pauses or resumes a queue.
async fn set_paused(
    engine: &Engine,
    queue: &QueueRef,
    pause: Option<NewPause>,
) -> Result<(), String> {
    match queue.protocol {
        Protocol::Qless => check_name("the queue name", &queue.name)?,
        // Pausing an unknown queue would create it.
        Protocol::Lmstfy | Protocol::Relay => drop(existing(engine, queue).await?),
        Protocol::Jobq => return Err("Jobq queues cannot be paused".to_owned()),
    }
    let paused = engine.pause_queues(&[key(queue)], pause, None).await;
    paused.map(drop).map_err(|error| error.to_string())
}

/// The pause of a form. A unit is needed only with a duration.
fn new_pause(context: &ActionContext, form: &PauseForm) -> Result<NewPause, String> {
    let reason = form.reason.trim();
    if reason.chars().count() > PAUSE_REASON_CHARS_MAX || reason.chars().any(char::is_control) {
        return Err(format!(
            "the reason must have at most {PAUSE_REASON_CHARS_MAX} characters and no control characters"
        ));
    }
    let now = context.engine.now(None);
    Ok(NewPause {
        reason: reason.into(),
        by: match &*context.user {
            AUDIT_ANONYMOUS => "".into(),
            user => user.into(),
        },
        until: end(form, now)?,
    })
}

/// When the pause of a form ends.
fn end(form: &PauseForm, now: Time) -> Result<Option<Time>, String> {
    let until = match (optional(&form.duration), optional(&form.until)) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(
                "give the end of the pause as a duration or as a time, not both".to_owned(),
            );
        }
        (Some(duration), None) => {
            let unit = optional(&form.unit).unwrap_or("1");
            now.plus_seconds(seconds("the duration of the pause", duration, unit)?)
        }
        (None, Some(text)) => parse_time(text.trim_end_matches('Z'), &DATETIME_LOCAL)
            .ok_or("the end of the pause must be a UTC time such as 2026-11-26T17:00")?,
    };
    if until > now {
        Ok(Some(until))
    } else {
        Err("the end of the pause must be in the future".to_owned())
    }
}

/// ` until …`, if the pause has an end.
fn end_text(engine: &Engine, pause: &NewPause) -> String {
    let now = engine.now(None).0;
    let until = pause
        .until
        .map(|until| (time::utc(until.0), time::relative(until.0, now)));
    until.map_or(String::new(), |(at, relative)| {
        format!(" until {at}, {relative}")
    })
}

/// The queues that a form of the list names.
fn selection(form: &Form) -> Target {
    let list = || "/ui/queues".to_owned();
    match (form.field("only"), form.field("of")) {
        ("", "all") => {
            let filter = QueueFilter::parse(form.field("q").to_owned(), form.field("state"));
            Target::new(filter.target(), list())
        }
        ("", _) => Target::new("the selected queues".to_owned(), list()),
        (only, _) => Target::queue(&queue_at(only)),
    }
}

pub static PAUSE_QUEUES: Action =
    Action::new("pause_queues", PauseQueues::PATH, Role::Operator, selection);

/// Pauses the queue `only`, or else these queues, or else (`of` is `all`) all queues of the list with the filter `q`
/// and `state`. A queue is given as the end of the path of its page, such as `queues/mail`.
#[server]
pub async fn pause_queues(
    #[server(default)] only: String,
    #[server(default)] queues: Vec<String>,
    #[server(default)] of: String,
    #[server(default)] q: String,
    #[server(default)] state: String,
    #[server(flatten)] pause: PauseForm,
    back: String,
) -> Result<(), PageError> {
    act(&PAUSE_QUEUES, &back, async |context| {
        let selected = selected(&context.engine, only, queues, &of, q, &state).await?;
        let pause = new_pause(&context, &pause)?;
        let end = end_text(&context.engine, &pause);
        let changed = context
            .engine
            .pause_queues(&selected, Some(pause), None)
            .await?;
        Ok(done("paused", &end, changed, &selected).into())
    })
    .await
}

pub static RESUME_QUEUES: Action = Action::new(
    "resume_queues",
    ResumeQueues::PATH,
    Role::Operator,
    selection,
);

/// Resumes queues, which are chosen as in [`pause_queues`].
#[server]
pub async fn resume_queues(
    #[server(default)] only: String,
    #[server(default)] queues: Vec<String>,
    #[server(default)] of: String,
    #[server(default)] q: String,
    #[server(default)] state: String,
    back: String,
) -> Result<(), PageError> {
    act(&RESUME_QUEUES, &back, async |context| {
        let selected = selected(&context.engine, only, queues, &of, q, &state).await?;
        let changed = context.engine.pause_queues(&selected, None, None).await?;
        Ok(done("resumed", "", changed, &selected).into())
    })
    .await
}

/// The listed queues that a form names.
async fn selected(
    engine: &Engine,
    only: String,
    queues: Vec<String>,
    of: &str,
    q: String,
    state: &str,
) -> Result<Vec<QueueKey>, String> {
    let select = async {
        let mut listed = load_queues(engine)
            .await
            .map_err(|error| error.to_string())?;
        listed.retain(|row| row.queue_ref.protocol != Protocol::Jobq);
        if only.is_empty() && of == "all" {
            let (filter, now) = (QueueFilter::parse(q, state), engine.now(None).0);
            listed.retain(|row| filter.matches(row, now));
        } else {
            let names = if only.is_empty() { queues } else { vec![only] };
            let names: HashSet<QueueRef> = names.iter().map(|name| queue_at(name)).collect();
            if names.is_empty() {
                return Err("no queues are selected".to_owned());
            }
            listed.retain(|row| names.contains(&row.queue_ref));
            if listed.len() < names.len() {
                return Err(
                    "one of the queues no longer exists or cannot be paused; nothing was changed"
                        .to_owned(),
                );
            }
        }
        Ok(listed.iter().map(|row| key(&row.queue_ref)).collect())
    };
    poll_blocking_if_many(engine.known_queues().count(), select).await
}

/// How many queues have been paused or resumed.
fn done(what: &str, end: &str, changed: usize, selected: &[QueueKey]) -> String {
    let all = number_of(selected.len());
    let unchanged = all - number_of(changed);
    match selected {
        [one] => format!("Queue “{}” {what}{end}.", queue_ref(one).label()),
        _ if unchanged == 0 => format!("{} {what}{end}.", plural(all, "queue", "queues")),
        _ => format!(
            "{} {what}{end}; {} unchanged.",
            plural(number_of(changed), "queue", "queues"),
            time::number(unchanged)
        ),
    }
}

async fn existing(engine: &Engine, queue: &QueueRef) -> Result<QueueCounts, String> {
    let found = engine.queue(&key(queue), None).await;
    let found = found.map_err(|error| error.to_string())?;
    found.ok_or_else(|| format!("queue “{}” not found", queue.label()))
}

pub static FORGET_QUEUE: Action = action("forget_queue", ForgetQueue::PATH, Role::Admin);

/// Removes a queue from the lists if it is not paused and has no unfinished or recurring jobs. The message is shown on
/// the page `after`.
#[server]
pub async fn forget_queue(
    #[server(flatten)] queue: QueueRef,
    back: String,
    after: String,
) -> Result<(), PageError> {
    act(&FORGET_QUEUE, &back, async |context| {
        let found = existing(&context.engine, &queue).await?;
        let label = queue.label();
        if !queue_row(&found).is_idle() {
            return Err(format!(
                "queue “{label}” cannot be forgotten because it is a Jobq queue, is paused, or has unfinished or recurring jobs"
            )
            .into());
        }
        context.engine.forget_queue(key(&queue), None).await?;
        Ok(ActionOutcome::at(after, format!("Queue “{label}” forgotten.")))
    })
    .await
}

pub static DESTROY_QUEUE: Action = action("destroy_queue", DestroyQueue::PATH, Role::Admin);

/// Deletes the ready jobs of an lmstfy queue.
#[server]
pub async fn destroy_queue(
    #[server(flatten)] queue: QueueRef,
    back: String,
) -> Result<(), PageError> {
    act(&DESTROY_QUEUE, &back, async |context| {
        check_protocol(Protocol::Lmstfy, &queue)?;
        let key = key(&queue);
        let deleted = context.engine.destroy(key.clone()).await?;
        let left = context.engine.queue(&key, None).await.ok().flatten();
        let left = left.map_or(0, |queue| {
            let counts = queue.counts;
            counts.scheduled + counts.running + counts.stalled + counts.dead
        });
        let label = queue.label();
        let message = match deleted {
            0 => format!("No ready jobs in {label}. Nothing was deleted."),
            n => format!(
                "Deleted {} in {label}. Kept {left} scheduled, running or dead.",
                jobs_text(n, "ready ")
            ),
        };
        Ok(message.into())
    })
    .await
}

pub static CREATE_QUEUE: Action =
    Action::new("create_queue", CreateQueue::PATH, Role::Operator, |form| {
        Target::queue(&QueueRef::jobq(form.field("name")))
    });

/// Creates a Jobq queue and shows its page; on error, the form with the name.
#[server(endpoint = "make_queue")]
pub async fn create_queue(name: String) -> Result<(), PageError> {
    act(&CREATE_QUEUE, &urls::queue_form(&name), async |context| {
        if let Some(flaw) = invalid_queue_name_reason(&name) {
            return Err(flaw.into());
        }
        context.engine.create_queue(&name).await?;
        let page = urls::queue(&QueueRef::jobq(&name));
        Ok(ActionOutcome::at(page, format!("Queue “{name}” created.")))
    })
    .await
}

pub static DELETE_QUEUE: Action = action("delete_queue", DeleteQueue::PATH, Role::Admin);

/// Deletes a Jobq queue and all its jobs. The message is shown on the page `after`.
#[server]
pub async fn delete_queue(
    #[server(flatten)] queue: QueueRef,
    back: String,
    after: String,
) -> Result<(), PageError> {
    act(&DELETE_QUEUE, &back, async |context| {
        check_protocol(Protocol::Jobq, &queue)?;
        let engine = &context.engine;
        engine
            .delete_queue(&engine.record_queue(&queue.name).await?)
            .await?;
        let message = format!("Queue “{}” and its jobs deleted.", queue.label());
        Ok(ActionOutcome::at(after, message))
    })
    .await
}
