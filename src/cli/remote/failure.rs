//! `switchyard failure`.

use serde_json::{Value, json};

use super::feed::watched;
use super::rows::{ago, iso, job_json, job_table, queue_name};
use super::targets::start;
use super::{Result, Session};
use crate::cli::Outcome;
use crate::cli::exit::Code;
use crate::cli::output::{Table, fields, json_line, printable_lines};
use crate::config::FailureCommand;
use crate::time::number;
use crate::ui::actions::failures::retry_request;
use crate::ui::model::paging::PagePlace;
use crate::ui::pages::failures::load::{Failure as LoadFailure, Failures};
use crate::ui::pages::failures::model::{FailureGroupRow, FailureGroupView, MessageKind};

pub async fn run(command: &FailureCommand) -> Outcome {
    match command {
        FailureCommand::List {
            remote,
            text,
            range,
            watch,
        } => {
            let session = Session::new(remote)?;
            let load = async || {
                let (range, text) = (range.clone(), text.clone());
                let view = session.read(Failures { range, text }).await?;
                Ok(session.format_rows(&view.groups, group_json, group_table))
            };
            watched(&session, watch.watch, load).await
        }
        FailureCommand::Show {
            remote,
            group,
            range,
            watch,
        } => {
            let session = Session::new(remote)?;
            let load = async || {
                let view = read(&session, group, range).await?;
                Ok(shown(&session, &view))
            };
            watched(&session, watch.watch, load).await
        }
        FailureCommand::Retry {
            remote,
            group,
            bulk,
        } => {
            let session = Session::new(remote)?;
            start(&session, &retry_request(group), bulk).await
        }
    }
}

async fn read(session: &Session, group: &str, range: &str) -> Result<FailureGroupView> {
    let call = LoadFailure {
        group: group.to_owned(),
        range: range.to_owned(),
        fingerprint: String::new(),
        page: PagePlace::default(),
    };
    let view = session.read(call).await?;
    if view.group.count == 0 {
        let why = format!("no failed jobs in group \"{group}\"");
        return Err(crate::cli::exit::Failure::new(Code::NotFound, why));
    }
    Ok(view)
}

fn group_json(group: &FailureGroupRow) -> Value {
    let row = &group.row;
    let queues = group
        .queues
        .iter()
        .map(|(queue, count)| json!({ "queue": queue_name(queue), "count": count }));
    json!({
        "group": row.group, "count": group.count, "failed": row.count, "first": iso(row.first),
        "last": iso(row.last), "message": row.message, "queues": queues.collect::<Vec<_>>(),
    })
}

fn group_table(groups: &[FailureGroupRow]) -> String {
    let mut table = Table::new(&["GROUP", "JOBS", "LAST", "QUEUES", "NEWEST MESSAGE"]);
    for group in groups {
        let queues: Vec<String> = group
            .queues
            .iter()
            .map(|(queue, _)| queue_name(queue))
            .collect();
        table.row([
            group.row.group.clone(),
            number(group.count),
            ago(group.row.last),
            queues.join(","),
            group.row.message.clone().unwrap_or_default(),
        ]);
    }
    table.render()
}

fn kind_json(kind: &MessageKind) -> Value {
    json!({ "fingerprint": kind.hash, "message": kind.text, "example": kind.example, "count": kind.count })
}

fn shown(session: &Session, view: &FailureGroupView) -> String {
    let row = &view.group;
    let message = row.message.clone().unwrap_or_default();
    if session.json {
        let queues = view
            .queues
            .iter()
            .map(|(queue, count)| json!({ "queue": queue_name(queue), "count": count }));
        let workers = view
            .workers
            .iter()
            .map(|(worker, count)| json!({ "worker": worker, "count": count }));
        return json_line(&json!({
            "group": row.group, "count": view.count, "failed": row.count, "first": iso(row.first),
            "last": iso(row.last), "message": message,
            "messages": view.message_kinds.iter().map(kind_json).collect::<Vec<_>>(),
            "queues": queues.collect::<Vec<_>>(), "workers": workers.collect::<Vec<_>>(),
            "jobs": view.jobs.iter().map(job_json).collect::<Vec<_>>(),
        }));
    }
    let about = fields([
        ("group", row.group.clone()),
        ("jobs", number(view.count)),
        ("first", ago(row.first)),
        ("last", ago(row.last)),
    ]);
    let mut messages = Table::new(&["JOBS", "MESSAGE"]);
    for kind in &view.message_kinds {
        messages.row([number(kind.count), kind.example.clone()]);
    }
    let mut places = Table::new(&["QUEUE OR WORKER", "JOBS"]);
    for (queue, count) in &view.queues {
        places.row([queue_name(queue), number(*count)]);
    }
    for (worker, count) in &view.workers {
        places.row([worker.clone(), number(*count)]);
    }
    format!(
        "{about}\n{}\n\n{}\n{}\n{}",
        printable_lines(&message),
        messages.render(),
        places.render(),
        job_table(&view.jobs)
    )
}
