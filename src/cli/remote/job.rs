//! `switchyard job`.

use serde_json::{Value, json};

use super::feed::watched;
use super::rows::{
    ago, history_json, history_table, iso, job_json, job_table, moment, queue_name, times_json,
};
use super::targets::{act_on_ids, bulk_or_each};
use super::{ActionOutcome, Result, Session, put};
use crate::cli::Outcome;
use crate::cli::exit::{Code, Failure};
use crate::cli::output::{fields, json_line_with, printable_lines};
use crate::config::{Job, JobAction, JobCommand, Jobs, Limit};
use crate::engine::QueueKey;
use crate::ui::actions::jobs::{DeleteJob, Note, TimeOut};
use crate::ui::actions::reschedule::Reschedule;
use crate::ui::model::job::{JobRow, JobTimes};
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::state::EffectiveState;
use crate::ui::pages::job::load::LoadJob;
use crate::ui::pages::lmstfy_job::load::LmstfyJob;
use crate::ui::pages::records::load::LoadRecord;
use crate::ui::pages::relay_job::load::RelayJob;
use crate::ui::pages::search::load::RunSearch;
use crate::ui::pages::search::model::SearchOrder;
use crate::ui::pages::search::model::{Outcome as SearchOutcome, SearchResults};
use crate::ui::present::queue_refs::queue_ref;
use crate::ui::urls;

pub async fn run(command: &JobCommand) -> Outcome {
    match command {
        JobCommand::List {
            remote,
            search,
            limit,
            watch,
        } => {
            let session = Session::new(remote)?;
            let text = search.join(" ");
            watched(&session, watch.watch, async || {
                list(&session, &text, *limit).await
            })
            .await
        }
        JobCommand::Show { remote, job, watch } => {
            let session = Session::new(remote)?;
            watched(&session, watch.watch, async || show(&session, job).await).await
        }
        JobCommand::Put(options) => put::run(options).await,
        JobCommand::Retry(targets) => bulk_or_each(targets, &JobAction::Retry).await,
        JobCommand::Cancel(targets) => bulk_or_each(targets, &JobAction::Cancel).await,
        JobCommand::Move { to, targets } => {
            bulk_or_each(targets, &JobAction::Move(to.clone())).await
        }
        JobCommand::Priority { priority, targets } => {
            bulk_or_each(targets, &JobAction::Priority(*priority)).await
        }
        JobCommand::Tag { tag, targets } => {
            bulk_or_each(targets, &JobAction::Tag(tag.clone())).await
        }
        JobCommand::Untag { tag, targets } => {
            bulk_or_each(targets, &JobAction::Untag(tag.clone())).await
        }
        JobCommand::Track(targets) => bulk_or_each(targets, &JobAction::Track).await,
        JobCommand::Untrack(targets) => bulk_or_each(targets, &JobAction::Untrack).await,
        JobCommand::Timeout(jobs) => {
            let session = Session::new(&jobs.remote)?;
            act_on_ids(&session, &jobs.ids, time_out).await
        }
        JobCommand::Schedule { jobs, queue, after } => schedule(jobs, queue, *after).await,
        JobCommand::Note {
            remote,
            id,
            message,
        } => {
            let session = Session::new(remote)?;
            let call = Note {
                id: id.clone(),
                message: message.clone(),
                back: back(),
            };
            let done = missing_first(&session, id, session.act(call).await).await?;
            session.report(id, &done);
            Ok(())
        }
        JobCommand::Delete { queue, jobs, yes } => {
            let session = Session::new(&jobs.remote)?;
            session.confirm("Delete these jobs? This cannot be undone.", yes.yes)?;
            let act = async |session: &Session, id: String| delete(session, queue, id).await;
            act_on_ids(&session, &jobs.ids, act).await
        }
    }
}

/// The page to which a form would return.
pub fn back() -> String {
    "/ui/jobs".to_owned()
}

async fn time_out(session: &Session, id: String) -> Result<ActionOutcome> {
    let call = TimeOut {
        id: id.clone(),
        back: back(),
    };
    missing_first(session, &id, session.act(call).await).await
}

/// Makes scheduled jobs due after this many seconds.
async fn schedule(jobs: &Jobs, queue: &QueueKey, after: f64) -> Outcome {
    let session = Session::new(&jobs.remote)?;
    let act = async |session: &Session, id: String| {
        let call = Reschedule {
            job: urls::job_param(&queue_ref(queue), &id),
            after: after.to_string(),
            unit: String::new(),
            back: back(),
        };
        session.act(call).await
    };
    act_on_ids(&session, &jobs.ids, act).await
}

async fn delete(session: &Session, queue: &QueueKey, id: String) -> Result<ActionOutcome> {
    if queue.protocol == Protocol::Qless {
        return Err(Failure::usage(
            "qless jobs are canceled, not deleted: switchyard job cancel",
        ));
    }
    let job = Job {
        id: id.clone(),
        queue: Some(queue.clone()),
    };
    show(session, &job).await?;
    let queue = queue_ref(queue);
    session
        .act(DeleteJob {
            queue,
            id,
            back: back(),
            after: back(),
        })
        .await
}

/// The result of an action on a qless job. If the action was refused and the job does not exist, the error says that.
pub async fn missing_first(
    session: &Session,
    id: &str,
    result: Result<ActionOutcome>,
) -> Result<ActionOutcome> {
    let Err(failure) = result else {
        return result;
    };
    if failure.code == Code::Refused {
        let call = LoadJob { id: id.to_owned() };
        if let Err(missing) = session.read(call).await
            && missing.code == Code::NotFound
        {
            return Err(missing);
        }
    }
    Err(failure)
}

/// A page of the results of a search, newest first, from the position `after`.
///
/// # Errors
/// If the search is wrong, or the server cannot run it.
pub async fn search(session: &Session, text: &str, after: Option<i64>) -> Result<SearchResults> {
    let text = text.to_owned();
    match session
        .read(RunSearch {
            text: text.clone(),
            after,
            order: SearchOrder::default(),
            offset: 0,
        })
        .await?
        .outcome
    {
        SearchOutcome::Found(found) => Ok(*found),
        SearchOutcome::Invalid(error) => {
            let length = error.to.saturating_sub(error.from);
            let part: String = text.chars().skip(error.from).take(length).collect();
            let place = match part.is_empty() {
                true => {
                    let before: String = text.chars().take(error.from).collect();
                    format!("after \"{before}\"")
                }
                false => format!("at \"{part}\""),
            };
            Err(Failure::usage(format!(
                "invalid search {place}: {}",
                error.why
            )))
        }
    }
}

async fn list(session: &Session, text: &str, limit: Limit) -> Result<String> {
    let mut found = search(session, text, None).await?;
    // Jobs whose ID is the whole search come first, as on the page.
    let exact: Vec<i64> = found.exact.iter().map(|job| job.seq).collect();
    let mut jobs = found.exact;
    loop {
        let others = found.jobs.into_iter();
        jobs.extend(others.filter(|job| !exact.contains(&job.seq)));
        // A search that stopped at its limit of work continues with the next request.
        match found.next {
            Some(next) if jobs.len() < limit.limit => {
                found = search(session, text, Some(next)).await?;
            }
            _ => break,
        }
    }
    jobs.truncate(limit.limit);
    Ok(session.format_rows(&jobs, job_json, job_table))
}

/// A job with its payload and history.
///
/// # Errors
/// If there is no such job, or the server cannot be reached.
pub async fn show(session: &Session, job: &Job) -> Result<String> {
    let id = job.id.clone();
    let Some(queue) = job
        .queue
        .as_ref()
        .filter(|it| it.protocol != Protocol::Qless)
    else {
        return show_qless(session, id).await;
    };
    let queue_ref = queue_ref(queue);
    match queue.protocol {
        Protocol::Jobq => {
            let record = session.read(LoadRecord { queue_ref, id }).await?;
            if session.json {
                let shown = json!({
                    "id": record.id, "api": "jobq", "queue": record.queue_ref.name,
                    "created": iso(Some(record.created)), "modified": iso(Some(record.modified)),
                    "events": record.events, "history": history_json(&record.log),
                });
                let texts = [("state", &*record.state), ("payload", &*record.payload)];
                return Ok(json_line_with(&shown, &texts));
            }
            let about = fields([
                ("id", record.id.to_string()),
                ("queue", queue_name(&record.queue_ref)),
                ("state", record.state.clone()),
                ("created", moment(record.created)),
                ("modified", moment(record.modified)),
            ]);
            Ok(with_payload(
                &about,
                &record.payload,
                &history_table(&record.log),
            ))
        }
        Protocol::Lmstfy => {
            let view = session.read(LmstfyJob { queue_ref, id }).await?;
            let text = String::from_utf8(view.bytes.clone());
            let extra = json!({
                "body_base64": view.base64, "body": text.as_ref().ok(),
                "attributes": view.attributes.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            });
            let shown = text
                .unwrap_or_else(|_| format!("{} bytes, base64: {}", view.bytes.len(), view.base64));
            Ok(shown_job(
                session,
                (&view.row, &view.times),
                &extra,
                &[],
                &shown,
            ))
        }
        Protocol::Qless | Protocol::Relay => {
            let view = session.read(RelayJob { queue_ref, id }).await?;
            let extra = json!({ "timeout_s": view.timeout_s, "run_id": view.run_id });
            let state = view.state.as_deref().unwrap_or("null");
            let texts = [("payload", view.payload.as_str()), ("job_state", state)];
            Ok(shown_job(
                session,
                (&view.row, &view.times),
                &extra,
                &texts,
                &view.payload,
            ))
        }
    }
}

async fn show_qless(session: &Session, id: String) -> Result<String> {
    let view = session.read(LoadJob { id }).await?;
    let ids = |related: &[crate::ui::pages::job::model::RelatedJob]| {
        let ids: Vec<String> = related.iter().map(|job| job.id.clone()).collect();
        ids
    };
    let extra = json!({
        "tracked": view.tracked,
        "depends": ids(&view.dependencies.jobs), "dependents": ids(&view.dependents.jobs),
        "recurring": view.origin.as_ref().map(|origin| &origin.id),
    });
    let texts = [("payload", view.body.as_str())];
    Ok(shown_job(
        session,
        (&view.row, &view.times),
        &extra,
        &texts,
        &view.body,
    ))
}

/// A job with its payload and history. `extra` and `texts`, which are JSON, are the fields of its API.
fn shown_job(
    session: &Session,
    (row, times): (&JobRow, &JobTimes),
    extra: &Value,
    texts: &[(&str, &str)],
    payload: &str,
) -> String {
    if session.json {
        let mut job = job_json(row);
        let more = [times_json(times), extra.clone()];
        if let Some(job) = job.as_object_mut() {
            for fields in more {
                job.extend(fields.as_object().cloned().unwrap_or_default());
            }
        }
        return json_line_with(&job, texts);
    }
    let failure = row.failure.as_ref();
    let list = |key: &str| {
        let ids = extra.get(key).and_then(Value::as_array);
        let ids = ids.into_iter().flatten().filter_map(Value::as_str);
        ids.collect::<Vec<_>>().join(", ")
    };
    let lease = match row.state {
        EffectiveState::Stalled => "lease expired",
        _ => "lease expires",
    };
    let about = fields([
        ("id", row.id.clone()),
        ("queue", queue_name(&row.queue_ref)),
        (
            "state",
            format!("{} since {}", row.state, moment(times.state_since)),
        ),
        ("class", row.klass.clone().unwrap_or_default()),
        ("priority", row.priority.to_string()),
        ("retries left", row.retries_left()),
        ("tags", row.tags.join(", ")),
        ("worker", row.worker.clone().unwrap_or_default()),
        (lease, ago(times.expires)),
        ("created", moment(times.created)),
        ("expires", ago(row.expires_at)),
        ("depends on", list("depends")),
        ("dependents", list("dependents")),
        (
            "failure",
            failure.map(|it| it.group.clone()).unwrap_or_default(),
        ),
    ]);
    let message = failure.map_or_else(String::new, |it| {
        let lines = printable_lines(&it.message);
        let lines: Vec<String> = lines.lines().map(|line| format!("  {line}\n")).collect();
        lines.concat()
    });
    with_payload(
        &format!("{about}{message}"),
        payload,
        &history_table(&times.history),
    )
}

fn with_payload(about: &str, payload: &str, history: &str) -> String {
    format!("{about}\n{}\n\n{history}", printable_lines(payload))
}
