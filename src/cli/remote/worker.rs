//! `switchyard worker`.

use super::Session;
use super::feed::watched;
use super::rows::{ago, job_json, job_table, worker_json, worker_table};
use crate::cli::Outcome;
use crate::cli::output::{fields, json_line};
use crate::config::WorkerCommand;
use crate::time::number;
use crate::ui::actions::workers::ForgetWorker;
use crate::ui::pages::worker::load::Worker;
use crate::ui::pages::workers::load::Workers;

pub async fn run(command: &WorkerCommand) -> Outcome {
    match command {
        WorkerCommand::List {
            remote,
            text,
            watch,
        } => {
            let session = Session::new(remote)?;
            let text = text.to_lowercase();
            let load = async || {
                let mut rows = session.read(Workers {}).await?;
                rows.retain(|row| row.name.to_lowercase().contains(&text));
                Ok(session.format_rows(&rows, worker_json, worker_table))
            };
            watched(&session, watch.watch, load).await
        }
        WorkerCommand::Show {
            remote,
            worker,
            watch,
        } => {
            let session = Session::new(remote)?;
            let load = async || {
                let name = worker.clone();
                let view = session.read(Worker { name }).await?;
                if session.json {
                    let mut shown = worker_json(&view.worker);
                    if let Some(shown) = shown.as_object_mut() {
                        shown.insert("jobs".to_owned(), view.jobs.iter().map(job_json).collect());
                    }
                    return Ok(json_line(&shown));
                }
                let about = fields([
                    ("worker", view.worker.name.clone()),
                    ("last seen", ago(Some(view.worker.last_seen))),
                    ("running", number(view.worker.running)),
                    ("stalled", number(view.worker.stalled)),
                ]);
                Ok(format!("{about}\n{}", job_table(&view.jobs)))
            };
            watched(&session, watch.watch, load).await
        }
        WorkerCommand::Forget { remote, workers } => {
            let session = Session::new(remote)?;
            let act = async |session: &Session, name: &&String| {
                // Forgetting an unknown worker is not an error in the engine.
                let worker = (*name).clone();
                session
                    .read(Worker {
                        name: worker.clone(),
                    })
                    .await?;
                let back = "/ui/workers".to_owned();
                session
                    .act(ForgetWorker {
                        worker,
                        after: back.clone(),
                        back,
                    })
                    .await
            };
            session.each(workers, |name| (*name).clone(), act).await
        }
    }
}
