//! `switchyard recurring`.

use super::feed::watched;
use super::rows::{job_json, job_table, recurring_json, recurring_table};
use super::{ActionOutcome, Result, Session};
use crate::cli::Outcome;
use crate::cli::exit::{Code, Failure};
use crate::cli::output::{json_line_with, printable_lines};
use crate::config::{Limit, RecurringCommand, RecurringJobs, RecurringPut};
use crate::ui::actions::recurring::{
    PauseRecurring, Recur, ResumeRecurring, RunRecurring, Unrecur,
};
use crate::ui::model::paging::PagePlace;
use crate::ui::model::recurring::{RecurringForm, RecurringRow};
use crate::ui::pages::recurring::load::LoadRecurringJobs;
use crate::ui::pages::recurring_job::load::Recurring;
use crate::ui::urls::encoding::name_of;

pub async fn run(command: &RecurringCommand) -> Outcome {
    match command {
        RecurringCommand::List {
            remote,
            queue,
            limit,
            watch,
        } => {
            let session = Session::new(remote)?;
            let load = async || list(&session, queue.as_ref(), *limit).await;
            watched(&session, watch.watch, load).await
        }
        RecurringCommand::Show { remote, id, watch } => {
            let session = Session::new(remote)?;
            watched(&session, watch.watch, async || show(&session, id).await).await
        }
        RecurringCommand::Put(options) => put(options).await,
        RecurringCommand::Pause(jobs) => {
            let act = async |session: &Session, id| {
                let back = back();
                session.act(PauseRecurring { id, back }).await
            };
            each(jobs, act).await
        }
        RecurringCommand::Resume(jobs) => {
            let act = async |session: &Session, id| {
                let back = back();
                session.act(ResumeRecurring { id, back }).await
            };
            each(jobs, act).await
        }
        RecurringCommand::Run(jobs) => {
            let act = async |session: &Session, id| {
                let back = back();
                session.act(RunRecurring { id, back }).await
            };
            each(jobs, act).await
        }
        RecurringCommand::End(jobs) => {
            let act = async |session: &Session, id| {
                let (back, after) = (back(), back());
                session.act(Unrecur { id, back, after }).await
            };
            each(jobs, act).await
        }
    }
}

/// Runs an action on each of these recurring jobs, which must exist.
async fn each(
    jobs: &RecurringJobs,
    act: impl AsyncFn(&Session, String) -> Result<ActionOutcome>,
) -> Outcome {
    let session = Session::new(&jobs.remote)?;
    let act = async |session: &Session, id: &&String| {
        let id = (*id).clone();
        session.read(Recurring { id: id.clone() }).await?;
        act(session, id).await
    };
    session.each(&jobs.ids, |id| (*id).clone(), act).await
}

/// The page to which a form would return.
fn back() -> String {
    "/ui/recurring".to_owned()
}

async fn list(session: &Session, queue: Option<&String>, limit: Limit) -> Result<String> {
    let mut rows: Vec<RecurringRow> = Vec::new();
    let mut page = PagePlace::default();
    loop {
        let call = LoadRecurringJobs {
            queue: queue.cloned(),
            page,
        };
        let view = session.read(call).await?;
        rows.extend(view.rows);
        match view.neighbors.next {
            Some(next) if rows.len() < limit.limit => page = PagePlace::after(next),
            _ => break,
        }
    }
    rows.truncate(limit.limit);
    Ok(session.format_rows(&rows, recurring_json, recurring_table))
}

async fn show(session: &Session, id: &str) -> Result<String> {
    let view = session.read(Recurring { id: id.to_owned() }).await?;
    if session.json {
        let mut shown = recurring_json(&view.row);
        if let Some(shown) = shown.as_object_mut() {
            shown.insert(
                "newest".to_owned(),
                view.children.iter().map(job_json).collect(),
            );
        }
        return Ok(json_line_with(&shown, &[("payload", &view.body)]));
    }
    let row = recurring_table(std::slice::from_ref(&view.row));
    Ok(format!(
        "{row}\n{}\n\n{}",
        printable_lines(&view.body),
        job_table(&view.children)
    ))
}

async fn put(options: &RecurringPut) -> Outcome {
    let session = Session::new(&options.remote)?;
    let form = RecurringForm {
        id: options.id.clone(),
        queue: options.queue.clone(),
        klass: options.class.clone(),
        data: options.payload.clone(),
        interval: options.every.map(|it| it.to_string()).unwrap_or_default(),
        unit: "1".to_owned(),
        cron: options.cron.clone().unwrap_or_default(),
        zone: options.zone.clone().unwrap_or_default(),
        offset: options.offset.to_string(),
        priority: options.priority.to_string(),
        retries: options.retries.to_string(),
        backlog: options.backlog.to_string(),
        ..RecurringForm::default()
    };
    let done = session.act(Recur { form }).await?;
    // The page of the new recurring job.
    let id = done.page.rsplit('/').next().map(name_of);
    let id =
        id.ok_or_else(|| Failure::new(Code::Error, "the server did not name the recurring job"))?;
    session.report(&id, &done);
    Ok(())
}
