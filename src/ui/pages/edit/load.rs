//! Loads the form that retries a failed job with changes.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, JobKey, Result};
use crate::ui::context::read_or_missing;
use crate::ui::error::PageError;
use crate::ui::pages::edit::model::{EditView, EditedJob};
use crate::ui::present::job_row;

/// Maximum size of a payload in the form, in bytes.
pub const EDITED_BYTES_MAX: usize = 1 << 20;

/// The form for the job with this ID.
#[server(name = LoadEdit)]
pub async fn edit(id: String) -> Result<EditView, PageError> {
    read_or_missing(
        Role::Operator,
        async |context| load_edit(&context.engine, &id).await,
        || match &*id {
            "" => "The address names no job.".to_owned(),
            id => format!(
                "Job “{id}” not found. It may have been canceled, or removed after it completed."
            ),
        },
    )
    .await
}

/// The form with the payload of the job, unless it is too large.
pub async fn load_edit(engine: &Engine, id: &str) -> Result<Option<EditView>> {
    let Some(job) = engine.job(&JobKey::qless(id)).await? else {
        return Ok(None);
    };
    let now = engine.now(None);
    let row = job_row(engine, &job, now);
    let is_small = job.body.bytes() <= EDITED_BYTES_MAX;
    Ok(Some(EditView {
        form: EditedJob {
            id: id.to_owned(),
            state: row.state.as_str().to_owned(),
            since: job.state_since(now).0.to_string(),
            data: is_small.then(|| job.body.into()),
            delay: String::new(),
        },
        row,
    }))
}
