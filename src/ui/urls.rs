//! URLs of the pages.

pub mod encoding;

use crate::time;
use crate::ui::model::job::JobRow;
use crate::ui::model::operation::OperationRequest;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::recurring::RecurringForm;
use crate::ui::model::series::StatisticsQuery;
use crate::ui::model::state::EffectiveState;
use crate::ui::urls::encoding::{encode, segment};

/// The sign-in page.
pub const LOGIN: &str = "/ui/login";

/// The page of the failure groups.
pub const FAILURES: &str = "/ui/failures";

/// The page about alerts.
pub const ALERTS: &str = "/ui/alerts";

/// The clients that are connected over the Redis protocol.
pub const REDIS_CLIENTS: &str = "/ui/redis";

/// The reference of an API.
pub fn api_reference(name: &str) -> String {
    format!("/ui/api/{}", segment(name))
}

/// The OpenAPI description of an API.
pub fn openapi(name: &str) -> String {
    format!("/openapi/{}.json", segment(name))
}

/// A queue. Its other pages are below this path; see [`PageRequest::queue`](super::page_request::PageRequest::queue).
pub fn queue(queue_ref: &QueueRef) -> String {
    match queue_ref.protocol {
        Protocol::Qless => format!("/ui/queues/{}", segment(&queue_ref.name)),
        Protocol::Relay => format!("/ui/relay/{}", segment(&queue_ref.name)),
        Protocol::Jobq => format!("/ui/jobq/{}", segment(&queue_ref.name)),
        Protocol::Lmstfy => format!(
            "/ui/lmstfy/{}/{}",
            segment(&queue_ref.namespace),
            segment(&queue_ref.name)
        ),
    }
}

/// The jobs of a queue in a state.
pub fn state(queue_ref: &QueueRef, state: EffectiveState) -> String {
    match queue_ref.protocol {
        // Jobq queues have no lists by state.
        Protocol::Jobq => queue(queue_ref),
        Protocol::Qless | Protocol::Lmstfy | Protocol::Relay => {
            format!("{}/{}", queue(queue_ref), state.as_str())
        }
    }
}

/// The records of a Jobq queue whose states have this label; those without a label if it is `None`.
pub fn labeled(queue_ref: &QueueRef, label: Option<&str>) -> String {
    match label {
        Some(label) => with(queue(queue_ref), "?state=", label),
        None => format!("{}?others=1", queue(queue_ref)),
    }
}

/// The results of a query in a Jobq queue.
pub fn query_results(queue_ref: &QueueRef, query: &str) -> String {
    with(queue(queue_ref), "?q=", query)
}

/// The form for a new Jobq queue, with this name filled in.
pub fn queue_form(name: &str) -> String {
    with("/ui/queues".to_owned(), "?new=", name) + "#new"
}

fn with(mut address: String, parameter: &str, value: &str) -> String {
    address.push_str(parameter);
    encode(value, &mut address);
    address
}

/// The statistics of a queue on a day, in days since 1970; of today if `None`.
pub fn daily_stats(queue_ref: &QueueRef, day: Option<i64>) -> String {
    let day = day.map_or(String::new(), |day| format!("?day={}", time::date(day)));
    format!("{}/stats{day}", queue(queue_ref))
}

/// The form for a new job of a qless queue.
pub fn put(queue: &str) -> String {
    with("/ui/put".to_owned(), "?queue=", queue)
}

/// The form for a new job, filled with a copy of the job with this ID.
pub fn put_like(id: &str) -> String {
    with("/ui/put".to_owned(), "?like=", id)
}

/// The form that retries a failed job with changes.
pub fn edit(id: &str) -> String {
    with("/ui/edit".to_owned(), "?job=", id)
}

/// The identifier of a queue in a query parameter: its path without `/ui/`.
pub fn queue_param(queue_ref: &QueueRef) -> String {
    queue(queue_ref).trim_start_matches("/ui/").to_owned()
}

/// The identifier of a job in a form: its path below the one of its queue, see [`queue_param`].
pub fn job_param(queue_ref: &QueueRef, id: &str) -> String {
    format!("{}/job/{}", queue_param(queue_ref), segment(id))
}

/// Statistics over hours, days and weeks.
pub fn statistics(query: &StatisticsQuery) -> String {
    let fields = [
        ("queue", query.queue.as_str()),
        ("range", &query.range),
        ("from", &query.from),
        ("to", &query.to),
        ("compare", query.compare.as_str()),
    ];
    with_fields("/ui/stats", fields)
}

/// The options of a qless queue.
pub fn config(queue: &str) -> String {
    with("/ui/config".to_owned(), "?queue=", queue) + "#of-queues"
}

/// A job of a queue.
pub fn job(queue_ref: &QueueRef, id: &str) -> String {
    match queue_ref.protocol {
        Protocol::Qless => qless_job(id),
        Protocol::Lmstfy | Protocol::Relay | Protocol::Jobq => {
            format!("{}/job/{}", queue(queue_ref), segment(id))
        }
    }
}

/// The page of a job in a list.
pub fn listed_job(job: &JobRow) -> String {
    match job.dead_number {
        Some(number) => dead_job(&job.queue_ref, number),
        None => self::job(&job.queue_ref, &job.id),
    }
}

/// A dead Relay job, by its number.
pub fn dead_job(queue_ref: &QueueRef, number: i64) -> String {
    format!("{}/dead/{number}", queue(queue_ref))
}

/// A qless job. Its path does not contain the queue.
pub fn qless_job(id: &str) -> String {
    format!("/ui/jobs/{}", segment(id))
}

/// The body of an lmstfy job, as a download.
pub fn body(queue_ref: &QueueRef, id: &str) -> String {
    format!("{}/body", job(queue_ref, id))
}

pub fn operation(id: i64) -> String {
    format!("/ui/operations/{id}")
}

/// The confirmation of a bulk operation, with the user's input, and the list from which it was opened. Selects no jobs if
/// the search does not fit: without it, all jobs would be selected.
pub fn confirm(request: &OperationRequest, typed: &str, from: &str) -> String {
    let fits = has_room(&[&request.action, &request.q]);
    let of = if request.all && fits { "all" } else { "" };
    let fields = [
        ("do", &*request.action),
        ("of", of),
        ("q", &request.q),
        ("arg", &request.arg),
        ("typed", typed),
        ("from", from),
    ];
    let jobs = request.jobs.iter().map(|job| ("job", job.as_str()));
    with_fields("/ui/confirm", fields.into_iter().chain(jobs))
}

/// The results of a search.
pub fn search(text: &str) -> String {
    with_fields("/ui/jobs", [("q", text)])
}

/// All results of a search, as a file: `csv` or `jsonl`. `None` if the search does not fit into an address.
pub fn export(text: &str, extension: &str) -> Option<String> {
    let page = format!("/ui/jobs.{extension}");
    has_room(&[text]).then(|| with_fields(&page, [("q", text)]))
}

pub fn namespace(name: &str) -> String {
    format!("/ui/namespaces/{}", segment(name))
}

/// The queues with dead jobs in a namespace.
pub fn dead_in_namespace(namespace: &str) -> String {
    with("/ui/dead".to_owned(), "?ns=", namespace)
}

pub fn failure(group: &str) -> String {
    format!("/ui/failures/{}", segment(group))
}

/// The jobs of a failure group that failed in a range, with this fingerprint.
pub fn filtered_failure(group: &str, range: &str, fingerprint: &str) -> String {
    let range = if range == "all" { "" } else { range };
    with_fields(&failure(group), [("range", range), ("fp", fingerprint)])
}

pub fn worker(name: &str) -> String {
    format!("/ui/workers/{}", segment(name))
}

pub fn tag(tag: &str) -> String {
    format!("/ui/tags/{}", segment(tag))
}

pub fn recurring(id: &str) -> String {
    format!("/ui/recurring/{}", segment(id))
}

/// The recurring jobs of a queue.
pub fn recurring_in(queue: &str) -> String {
    with("/ui/recurring".to_owned(), "?queue=", queue)
}

/// Maximum length of an address made by [`with_fields`], in bytes, without the fragment.
const ADDRESS_BYTES_MAX: usize = 8_000;

/// Whether an address can contain these values, and short fields beside them.
fn has_room(values: &[&str]) -> bool {
    let mut encoded = String::new();
    values.iter().for_each(|value| encode(value, &mut encoded));
    encoded.len() + SHORT_FIELDS_BYTES <= ADDRESS_BYTES_MAX
}

/// Room for the path, and for the names of fields.
const SHORT_FIELDS_BYTES: usize = 100;

/// The form for a new recurring job, filled with these values.
pub fn recurring_form(form: &RecurringForm) -> String {
    let fields = [
        ("to", &form.queue),
        ("id", &form.id),
        ("klass", &form.klass),
        ("interval", &form.interval),
        ("unit", &form.unit),
        ("cron", &form.cron),
        ("zone", &form.zone),
        ("offset", &form.offset),
        ("priority", &form.priority),
        ("retries", &form.retries),
        ("backlog", &form.backlog),
        ("tags", &form.tags),
        ("data", &form.data),
    ];
    let fields = fields.map(|(name, value)| (name, value.as_str()));
    with_fields("/ui/recurring", fields) + "#new"
}

/// The address of a page with these query parameters. Omits values that are empty or would make the address longer than
/// `ADDRESS_BYTES_MAX`.
pub fn with_fields<'a>(page: &str, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut address = page.to_owned();
    let mut mark = '?';
    for (name, value) in fields {
        let mut field = format!("{mark}{name}=");
        encode(value, &mut field);
        if !value.is_empty() && address.len() + field.len() <= ADDRESS_BYTES_MAX {
            address.push_str(&field);
            mark = '&';
        }
    }
    address
}
