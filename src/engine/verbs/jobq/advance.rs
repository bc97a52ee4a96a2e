//! Advance: sets the state of a record by compare-and-set.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::queue::Queue;
use crate::engine::model::record::{Record, state_text};
use crate::engine::queries::evaluate;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::jobq::changes::{RecordMemory, find_record, needs_of_record, set_state};
use crate::memory::{self, Reserved, SMALL_MAX};
use crate::query;

/// The result of a compare-and-set.
#[derive(Clone, Debug, PartialEq)]
pub enum CompareAndSet {
    /// The updated record.
    Done(Record),
    /// The state is not the expected one. Nothing was changed.
    Differs(Record),
}

/// Attempts of a poll or a compare-and-set before it gives up.
pub const ATTEMPTS_MAX: usize = 100;

impl Engine {
    /// Sets the state of a record from `old` to `new`, if it equals `old` as JSON. Both are JSON text without
    /// whitespace.
    ///
    /// # Errors
    /// [`NoSuchQueue`, `NoSuchJob`, `LogFull`, `Busy`](Error), and [`Unavailable`](Error::Unavailable) if other clients
    /// keep writing the same state with different formatting, or if the comparison has to wait for over 2 s.
    pub async fn advance_record(
        &self,
        queue: &Arc<Queue>,
        id: i64,
        old: String,
        new: String,
    ) -> Result<CompareAndSet> {
        let (mut old, new) = (Arc::<str>::from(old), Arc::<str>::from(new));
        let mut memory = RecordMemory::default();
        for _ in 0..ATTEMPTS_MAX {
            let needs = needs_of_record(queue, id, old.len() + new.len());
            let (queue, expected, new) = (Arc::clone(queue), Arc::clone(&old), Arc::clone(&new));
            let swap = self.write(needs, None, 1, move |work| {
                advance(work, &queue, id, &expected, &new)
            });
            let record = match swap.await? {
                CompareAndSet::Differs(record) => record,
                done @ CompareAndSet::Done(_) => return Ok(done),
            };
            // The record is kept while the comparison waits, and is returned if the states differ.
            memory.reserve(record.bytes(), true).await?;
            // Most states match byte for byte. Comparing others as JSON takes time, so it runs outside the transaction.
            let state = Arc::<str>::from(record.state_text());
            let parsed = query::parsed_bytes(&state) + query::parsed_bytes(&old);
            let reserved = match parsed > SMALL_MAX {
                true => memory::reserve_until_dropped(parsed).await?,
                false => Reserved::default(),
            };
            let compare = {
                let state = Arc::clone(&state);
                // Held until the end even if the client disconnects. Parsed JSON can occupy much memory.
                let permit = evaluate::blocking_permit()
                    .await
                    .ok_or(Error::Unavailable)?;
                move || {
                    let (_permit, _reserved) = (permit, reserved);
                    query::are_equal(&state, &old)
                }
            };
            match tokio::task::spawn_blocking(compare).await {
                Ok(true) => old = state,
                Ok(false) => return Ok(CompareAndSet::Differs(record)),
                Err(_) => return Err(Error::Unavailable),
            }
        }
        Err(Error::Unavailable)
    }
}

/// Sets the state from `old` to `new`, if it is exactly the text `old`.
///
/// # Errors
/// [`Error::NoSuchQueue`], [`Error::NoSuchJob`], [`Error::LogFull`].
pub fn advance(
    work: &mut UnitOfWork,
    queue: &Queue,
    id: i64,
    old: &str,
    new: &str,
) -> Result<CompareAndSet> {
    let (key, job) = find_record(work, queue, id)?;
    if state_text(job) != old {
        return Ok(CompareAndSet::Differs(Record::of(job)));
    }
    set_state(work, &key, new).map(CompareAndSet::Done)
}
