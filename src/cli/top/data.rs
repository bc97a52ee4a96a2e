//! What the views show, and the actions of their keys.

use super::app::Action;
use crate::cli::exit::Failure;
use crate::cli::remote::rows::{queue_name, record_table};
use crate::cli::remote::{Session, begin, change, pause, resume, show_job};
use crate::config::{Job, JobAction, PauseFlags};
use crate::time::number;
use crate::ui::actions::failures::retry_request;
use crate::ui::model::job::JobRow;
use crate::ui::model::operation::OperationRequest;
use crate::ui::model::paging::PagePlace;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::state::EffectiveState;
use crate::ui::pages::confirm::load::Confirm;
use crate::ui::pages::failures::load::Failure as LoadFailure;
use crate::ui::pages::overview::load::Overview;
use crate::ui::pages::overview::model::OverviewView;
use crate::ui::pages::queue::load::Queue;
use crate::ui::pages::records::load::Records;
use crate::ui::pages::records::model::{RecordFilter, RecordList};
use crate::ui::pages::statistics::load::LoadSparklines;
use crate::ui::pages::worker::load::Worker;
use crate::ui::present::queue_refs;

/// Maximum number of rows that are kept of a list, and lines of a job.
pub const ROWS_MAX: usize = 1_000;

/// What the dashboard shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    Queues,
    Failures,
    Workers,
    /// The jobs of a queue in a state.
    Queue(QueueRef, EffectiveState),
    /// The failed jobs of a group.
    Failure(String),
    /// The jobs of a worker.
    Worker(String),
    Job(Option<QueueRef>, String),
}

/// What was read for a view.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub overview: OverviewView,
    /// Completed jobs of each queue in the last full minute.
    pub completed: Vec<(QueueRef, i64)>,
    /// The jobs of the view, if it shows jobs.
    pub jobs: Vec<JobRow>,
    /// The lines of the view, if it shows a job or a Jobq queue. They are safe to print.
    pub lines: Vec<String>,
}

/// Reads what a view shows.
///
/// # Errors
/// If the server cannot be reached or refuses the request, or the object does not exist anymore.
pub async fn load(session: &Session, view: &View) -> Result<Loaded, Failure> {
    let all = LoadSparklines { queues: Vec::new() };
    let (overview, sparks) = futures::try_join!(session.read(Overview {}), session.read(all))?;
    let completed = sparks.into_iter().take(ROWS_MAX).map(|spark| {
        // The last minute is in progress.
        let last = spark.completed.iter().rev().nth(1).copied();
        (spark.queue_ref, last.unwrap_or_default())
    });
    let mut loaded = Loaded {
        overview,
        completed: completed.collect(),
        jobs: Vec::new(),
        lines: Vec::new(),
    };
    loaded.overview.queues.truncate(ROWS_MAX);
    loaded.overview.groups.truncate(ROWS_MAX);
    loaded.overview.workers.truncate(ROWS_MAX);
    match view {
        View::Queues | View::Failures | View::Workers => {}
        View::Queue(queue_ref, _) if queue_ref.protocol == Protocol::Jobq => {
            loaded.lines = records(session, queue_ref).await?;
        }
        View::Queue(queue_ref, state) => {
            let call = Queue {
                queue_ref: queue_ref.clone(),
                state: state.as_str().to_owned(),
                page: PagePlace::default(),
            };
            loaded.jobs = session.read(call).await?.jobs;
        }
        View::Failure(group) => {
            let call = LoadFailure {
                group: group.clone(),
                range: "all".to_owned(),
                fingerprint: String::new(),
                page: PagePlace::default(),
            };
            loaded.jobs = session.read(call).await?.jobs;
        }
        View::Worker(name) => {
            let name = name.clone();
            loaded.jobs = session.read(Worker { name }).await?.jobs;
        }
        View::Job(queue, id) => {
            let queue = queue.as_ref().map(queue_refs::key);
            let job = Job {
                id: id.clone(),
                queue,
            };
            let text = show_job(session, &job).await?;
            loaded.lines = text.lines().take(ROWS_MAX).map(str::to_owned).collect();
        }
    }
    loaded.jobs.truncate(ROWS_MAX);
    Ok(loaded)
}

/// The records of a Jobq queue as lines.
async fn records(session: &Session, queue_ref: &QueueRef) -> Result<Vec<String>, Failure> {
    let call = Records {
        queue_ref: queue_ref.clone(),
        filter: RecordFilter::All,
        page: PagePlace::default(),
    };
    let view = session.read(call).await?;
    let rows = match view.list {
        RecordList::Page(rows, ..) => rows,
        RecordList::Found(_) | RecordList::Refused(_) | RecordList::Nothing => Vec::new(),
    };
    Ok(record_table(&rows).lines().map(str::to_owned).collect())
}

/// Runs an action. Returns a message for the user.
///
/// # Errors
/// If the server cannot be reached or refuses it.
pub async fn act(session: &Session, action: &Action) -> Result<String, Failure> {
    let named = |queue: &QueueRef| {
        let name = queue_name(queue);
        crate::config::queue_name(&name).map_err(Failure::usage)
    };
    let done = match action {
        Action::Pause(queue) => pause(session, &named(queue)?, &PauseFlags::default()).await?,
        Action::Resume(queue) => resume(session, &named(queue)?).await?,
        Action::RetryJob(id) => change(session, &JobAction::Retry, id.clone()).await?,
        Action::CancelJob(id) => change(session, &JobAction::Cancel, id.clone()).await?,
        Action::RetryGroup(group) => {
            let request: OperationRequest = retry_request(group);
            let call = Confirm {
                request: request.clone(),
            };
            let view = session.read(call).await?.map_err(Failure::usage)?;
            let (id, _) = begin(session, &request, &view).await?;
            let jobs = number(view.jobs);
            return Ok(format!("Operation {id} started. Jobs to retry: {jobs}."));
        }
    };
    Ok(done.message)
}
