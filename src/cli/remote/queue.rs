//! `switchyard queue`.

use serde_json::json;

use super::feed::watched;
use super::rows::{
    ago, job_json, job_table, pause_status, queue_json, queue_name, queue_table, record_table,
};
use super::{ActionOutcome, Result, Session};
use crate::cli::exit::Failure;
use crate::cli::output::{fields, json_line, printable};
use crate::cli::{Outcome, print};
use crate::config::{CompleteQueues, Limit, PauseFlags, QueueCommand, Queues, QueuesOrAll};
use crate::engine::QueueKey;
use crate::time::number;
use crate::ui::actions::queues::{
    CreateQueue, DeleteQueue, DestroyQueue, ForgetQueue, PauseQueue, PauseQueues, ResumeQueues,
    UnpauseQueue,
};
use crate::ui::model::paging::PagePlace;
use crate::ui::model::queue::{PauseForm, QueueRow};
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::state::EffectiveState;
use crate::ui::pages::queue::load::Queue;
use crate::ui::pages::queues::load::Queues as LoadQueues;
use crate::ui::pages::records::load::Records;
use crate::ui::pages::records::model::{RecordFilter, RecordList, RecordsView};
use crate::ui::present::queue_refs::queue_ref;

/// Maximum number of completed names.
const COMPLETIONS_MAX: usize = 200;

pub async fn run(command: &QueueCommand) -> Outcome {
    match command {
        QueueCommand::List {
            remote,
            text,
            api,
            paused,
            quiet,
            limit,
            watch,
        } => {
            let session = Session::new(remote)?;
            let is_listed = |row: &QueueRow| {
                api.is_none_or(|api| row.queue_ref.protocol == api)
                    && (!paused || row.paused)
                    && contains(row, text.as_deref().unwrap_or_default())
            };
            let load = async || {
                let mut rows = session.read(LoadQueues {}).await?;
                rows.retain(is_listed);
                rows.truncate(limit.limit);
                if *quiet {
                    let names = rows
                        .iter()
                        .map(|row| format!("{}\n", printable(&queue_name(&row.queue_ref))));
                    return Ok(names.collect());
                }
                Ok(session.format_rows(&rows, queue_json, queue_table))
            };
            watched(&session, watch.watch, load).await
        }
        QueueCommand::Show {
            remote,
            queue,
            state,
            limit,
            watch,
        } => {
            let session = Session::new(remote)?;
            let load = async || match queue.protocol {
                Protocol::Jobq => show_records(&session, queue, *limit).await,
                Protocol::Qless | Protocol::Lmstfy | Protocol::Relay => {
                    show(&session, queue, state, *limit).await
                }
            };
            watched(&session, watch.watch, load).await
        }
        QueueCommand::Pause { queues, pause } => {
            let all = async |session: &Session| pause_all(session, pause).await;
            let one = async |session: &Session, queue: &QueueKey| {
                self::pause(session, queue, pause).await
            };
            all_or_each(queues, all, one).await
        }
        QueueCommand::Resume(queues) => all_or_each(queues, resume_all, resume).await,
        QueueCommand::Create(queues) => each(queues, create).await,
        QueueCommand::Forget(queues) => each(queues, forget).await,
        QueueCommand::Delete { queues, yes } => {
            let session = Session::new(&queues.remote)?;
            let names: Vec<String> = queues.queues.iter().map(name).collect();
            let question = format!(
                "Delete {}? Deletes Jobq queues with all their jobs, and the ready jobs of lmstfy queues.",
                names.join(", ")
            );
            session.confirm(&question, yes.yes)?;
            each(queues, delete).await
        }
    }
}

fn name(queue: &QueueKey) -> String {
    queue_name(&queue_ref(queue))
}

async fn each(
    queues: &Queues,
    act: impl AsyncFn(&Session, &QueueKey) -> Result<ActionOutcome>,
) -> Outcome {
    let session = Session::new(&queues.remote)?;
    each_of(&session, &queues.queues, act).await
}

async fn each_of(
    session: &Session,
    queues: &[QueueKey],
    act: impl AsyncFn(&Session, &QueueKey) -> Result<ActionOutcome>,
) -> Outcome {
    let act = async |session: &Session, queue: &&QueueKey| act(session, queue).await;
    session.each(queues, |queue| name(queue), act).await
}

/// Changes all queues with one request, or each of the named ones.
async fn all_or_each(
    queues: &QueuesOrAll,
    all: impl AsyncFn(&Session) -> Result<ActionOutcome>,
    one: impl AsyncFn(&Session, &QueueKey) -> Result<ActionOutcome>,
) -> Outcome {
    let session = Session::new(&queues.remote)?;
    if queues.all {
        let all = async |session: &Session, _: &&str| all(session).await;
        return session
            .each(["all queues"], |it| (*it).to_owned(), all)
            .await;
    }
    each_of(&session, &queues.queues, one).await
}

/// The page to which a form would return.
fn back() -> String {
    "/ui/queues".to_owned()
}

/// Checks that the queue exists, because some actions would create it.
async fn check(session: &Session, queue: &QueueKey) -> Result<()> {
    match queue.protocol {
        Protocol::Jobq => drop(records(session, queue, PagePlace::default()).await?),
        Protocol::Qless | Protocol::Lmstfy | Protocol::Relay => {
            let call = Queue {
                queue_ref: queue_ref(queue),
                state: EffectiveState::Waiting.as_str().to_owned(),
                page: PagePlace::default(),
            };
            drop(session.read(call).await?);
        }
    }
    Ok(())
}

/// Pauses a queue, for `switchyard top` too.
pub async fn pause(
    session: &Session,
    queue: &QueueKey,
    options: &PauseFlags,
) -> Result<ActionOutcome> {
    check(session, queue).await?;
    session
        .act(PauseQueue {
            queue: queue_ref(queue),
            pause: pause_form(options),
            back: back(),
        })
        .await
}

fn pause_form(options: &PauseFlags) -> PauseForm {
    let duration = options.duration.map(|it| it.as_secs_f64().to_string());
    PauseForm {
        reason: options.reason.clone(),
        duration: duration.unwrap_or_default(),
        unit: "1".to_owned(),
        until: options.until.clone(),
    }
}

/// The value that selects all queues.
const ALL: &str = "all";

async fn pause_all(session: &Session, options: &PauseFlags) -> Result<ActionOutcome> {
    session
        .act(PauseQueues {
            only: String::new(),
            queues: Vec::new(),
            of: ALL.to_owned(),
            q: String::new(),
            state: String::new(),
            pause: pause_form(options),
            back: back(),
        })
        .await
}

async fn resume_all(session: &Session) -> Result<ActionOutcome> {
    session
        .act(ResumeQueues {
            only: String::new(),
            queues: Vec::new(),
            of: ALL.to_owned(),
            q: String::new(),
            state: String::new(),
            back: back(),
        })
        .await
}

/// Resumes a queue, for `switchyard top` too.
pub async fn resume(session: &Session, queue: &QueueKey) -> Result<ActionOutcome> {
    check(session, queue).await?;
    let queue = queue_ref(queue);
    session
        .act(UnpauseQueue {
            queue,
            back: back(),
        })
        .await
}

async fn create(session: &Session, queue: &QueueKey) -> Result<ActionOutcome> {
    if queue.protocol != Protocol::Jobq {
        return Err(Failure::usage(
            "only Jobq queues (jobq:NAME) can be created; other queues are created with their first job",
        ));
    }
    let name = queue.name.clone();
    session.act(CreateQueue { name }).await
}

async fn forget(session: &Session, queue: &QueueKey) -> Result<ActionOutcome> {
    check(session, queue).await?;
    let queue = queue_ref(queue);
    session
        .act(ForgetQueue {
            queue,
            back: back(),
            after: back(),
        })
        .await
}

async fn delete(session: &Session, queue: &QueueKey) -> Result<ActionOutcome> {
    check(session, queue).await?;
    let (queue, back) = (queue_ref(queue), back());
    match queue.protocol {
        Protocol::Jobq => {
            session
                .act(DeleteQueue {
                    queue,
                    after: back.clone(),
                    back,
                })
                .await
        }
        Protocol::Lmstfy => session.act(DestroyQueue { queue, back }).await,
        Protocol::Qless | Protocol::Relay => Err(Failure::usage(
            "only Jobq and lmstfy queues can be deleted; cancel (qless) or delete (Relay) the jobs of this queue, then forget it",
        )),
    }
}

async fn show(session: &Session, queue: &QueueKey, state: &str, limit: Limit) -> Result<String> {
    let Some(state) = EffectiveState::parse(state) else {
        return Err(Failure::usage(format!(
            "unknown state \"{state}\"; see --help"
        )));
    };
    let (mut jobs, mut page) = (Vec::new(), PagePlace::default());
    let row = loop {
        let call = Queue {
            queue_ref: queue_ref(queue),
            state: state.as_str().to_owned(),
            page,
        };
        let view = session.read(call).await?;
        jobs.extend(view.jobs);
        match view.neighbors.next {
            Some(next) if jobs.len() < limit.limit => page = PagePlace::after(next),
            _ => break view.queue,
        }
    };
    jobs.truncate(limit.limit);
    if session.json {
        let mut shown = queue_json(&row);
        if let Some(shown) = shown.as_object_mut() {
            shown.insert("state".to_owned(), json!(state.as_str()));
            shown.insert("jobs".to_owned(), jobs.iter().map(job_json).collect());
        }
        return Ok(json_line(&shown));
    }
    let counts = &row.counts;
    let count = |state: EffectiveState| {
        let count = counts.of(state);
        if count == 0 {
            String::new()
        } else {
            number(count)
        }
    };
    let about = fields([
        ("queue", queue_name(&row.queue_ref)),
        ("status", pause_status(&row)),
        ("waiting", number(counts.waiting)),
        (
            "oldest",
            ago(row.oldest_waiting.filter(|_| counts.waiting > 0)),
        ),
        ("scheduled", count(EffectiveState::Scheduled)),
        ("depends", count(EffectiveState::Depends)),
        ("running", count(EffectiveState::Running)),
        ("stalled", count(EffectiveState::Stalled)),
        ("failed", count(EffectiveState::Failed)),
        ("complete", count(EffectiveState::Complete)),
        ("dead", count(EffectiveState::Dead)),
        (
            "recurring",
            if row.recurring == 0 {
                String::new()
            } else {
                number(row.recurring)
            },
        ),
        ("last claim", ago(row.last_claim)),
    ]);
    if jobs.is_empty() {
        return Ok(format!("{about}\nno {state} jobs\n"));
    }
    Ok(format!("{about}\n{}", job_table(&jobs)))
}

async fn records(session: &Session, queue: &QueueKey, page: PagePlace) -> Result<RecordsView> {
    let (queue_ref, filter) = (queue_ref(queue), RecordFilter::All);
    session
        .read(Records {
            queue_ref,
            filter,
            page,
        })
        .await
}

/// A Jobq queue: its states, and its records, least recently changed first.
async fn show_records(session: &Session, queue: &QueueKey, limit: Limit) -> Result<String> {
    let (mut rows, mut page) = (Vec::new(), PagePlace::default());
    let view = loop {
        let mut view = records(session, queue, page).await?;
        let (found, next) = match &mut view.list {
            RecordList::Page(found, _, neighbors) => (std::mem::take(found), neighbors.next.take()),
            RecordList::Found(found) => (std::mem::take(found), None),
            RecordList::Refused(_) | RecordList::Nothing => (Vec::new(), None),
        };
        rows.extend(found);
        match next {
            Some(next) if rows.len() < limit.limit => page = PagePlace::after(next),
            _ => break view,
        }
    };
    rows.truncate(limit.limit);
    let name = queue_name(&view.queue_ref);
    if session.json {
        let states = view
            .states
            .iter()
            .map(|it| json!({ "state": it.word, "count": it.count }));
        let records = rows.iter().map(|it| {
            json!({
                "id": it.id, "state": it.state, "preview": it.preview,
                "events": it.events, "modified": crate::time::iso(it.modified),
            })
        });
        return Ok(json_line(&json!({
            "name": name, "api": "jobq", "queue": view.queue_ref.name, "records": view.total,
            "states": states.collect::<Vec<_>>(), "jobs": records.collect::<Vec<_>>(),
        })));
    }
    let mut states = crate::cli::output::Table::new(&["STATE", "JOBS"]);
    for state in &view.states {
        states.row([state.word.clone(), number(state.count)]);
    }
    let about = fields([("queue", name), ("jobs", number(view.total))]);
    Ok(format!(
        "{about}\n{}\n{}",
        states.render(),
        record_table(&rows)
    ))
}

/// Whether the name of the queue contains this text, ignoring case.
fn contains(row: &QueueRow, text: &str) -> bool {
    queue_name(&row.queue_ref)
        .to_lowercase()
        .contains(&text.to_lowercase())
}

/// Whether every shell takes the word literally. Clients choose the names of queues, so a name that a shell would
/// interpret, such as `$(command)`, would run on the machine of the user who completes it.
fn is_safe(name: &str) -> bool {
    let is_literal = |c: char| c.is_ascii_alphanumeric() || "._:@%+,/-".contains(c);
    !name.starts_with('-') && name.chars().all(is_literal)
}

/// `switchyard complete-queues`: the names that begin with a text, one per line, for the completion of shells. Prints
/// nothing if the server cannot be reached, and no name that a shell would interpret.
pub async fn complete(options: &CompleteQueues) -> Outcome {
    let session = Session::connect(&options.connection, false)?;
    let Ok(rows) = session.read(LoadQueues {}).await else {
        return Ok(());
    };
    let names = rows.iter().map(|row| queue_name(&row.queue_ref));
    let is_completed = |name: &String| name.starts_with(&options.prefix) && is_safe(name);
    for name in names.filter(is_completed).take(COMPLETIONS_MAX) {
        print(&format!("{name}\n"));
    }
    Ok(())
}
