//! Loads the form for a new job.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, JobKey, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::pages::put::model::{NewJob, NewJobView};
use crate::ui::present::queue_refs::queue_names;

/// Maximum size of a payload that is copied into the form, in bytes.
const COPIED_BYTES_MAX: usize = 1 << 20;

/// The form for a new job in this queue, or for a copy of the job with the ID `like`.
#[server(name = LoadNewJob)]
pub async fn new_job(queue: String, like: String) -> Result<NewJobView, PageError> {
    read(Role::Operator, async |context| {
        load_new_job(&context.engine, queue, &like).await
    })
    .await
}

/// The initial content of the form: empty, or a copy of the job with the ID `like` if it exists.
pub async fn load_new_job(engine: &Engine, queue: String, like: &str) -> Result<NewJobView> {
    let found = match like {
        "" => None,
        id => engine.job(&JobKey::qless(id)).await?,
    };
    let is_without_payload = found
        .as_ref()
        .is_some_and(|job| job.body.bytes() > COPIED_BYTES_MAX);
    let is_copy = found.is_some();
    let form = match found {
        Some(job) => NewJob {
            queue: engine.known_queues().name(job.queue),
            id: String::new(),
            klass: job.klass.unwrap_or_default(),
            data: match is_without_payload {
                true => String::new(),
                false => job.body.into(),
            },
            priority: job.priority.to_string(),
            retries: job.retries.to_string(),
            delay: String::new(),
            tags: job.tags.join(", "),
            depends: String::new(),
        },
        None => NewJob {
            queue,
            data: "{}".to_owned(),
            ..NewJob::default()
        },
    };
    Ok(NewJobView {
        form,
        queues: queue_names(engine),
        is_copy,
        is_without_payload,
    })
}
