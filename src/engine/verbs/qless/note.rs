//! Note: adds an entry to a job's history.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::EventKind;
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;

impl Engine {
    /// Adds an entry to the histories of jobs: a message, and optionally the JSON text of an object.
    pub async fn note(
        &self,
        notes: Vec<(JobKey, String, Option<String>)>,
        now: Option<Time>,
    ) -> ItemResults<()> {
        let need = |needs: &mut Needs, (key, message, data): &(JobKey, String, Option<String>)| {
            needs.job(key);
            needs.keeps_dependencies = true;
            needs.bytes += message.len() + data.as_ref().map_or(0, String::len);
        };
        self.apply_in_batches(notes, now, need, |work, (key, message, data)| {
            note(work, key, message, data.as_deref())
        })
        .await
    }
}

/// Adds an entry to the history of a job, in any state. `data` is the JSON text of an object.
///
/// # Errors
/// [`Error::NoSuchJob`].
pub fn note(work: &mut UnitOfWork, key: &JobKey, message: &str, data: Option<&str>) -> Result<()> {
    let now = work.now;
    let job = work
        .job_mut(key)
        .ok_or_else(|| Error::NoSuchJob { id: key.id.clone() })?;
    job.history.push(EventKind::Note, now, Some(message), data);
    Ok(())
}
