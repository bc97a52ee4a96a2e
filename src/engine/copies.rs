//! What a server keeps in memory, because every request asks for it: queues, options, tracked jobs, and in
//! which queues there are recurring jobs. Where servers share a database each reads them again when the
//! revision has changed.

use std::collections::HashSet;
use std::sync::PoisonError;

use super::config;
use super::job::QueueId;
use super::queues;
use super::recur;
use super::track;
use super::work::Shared;
use crate::store::{Answer, Statement, StoreError};

/// The statements that read everything.
pub fn all() -> Vec<Statement> {
    [queues::ALL, config::ALL, track::ALL, recur::QUEUES]
        .map(|sql| Statement::new(sql, []))
        .into()
}

/// Takes over what they have read when the database was at this revision or a later one; not if what is there
/// was read at a later one, for readers overtake each other. Gives the queues that have recurring jobs.
pub fn take_over(
    shared: &Shared,
    revision: i64,
    answers: Vec<Answer>,
) -> Result<HashSet<QueueId>, StoreError> {
    let mut answers = answers.into_iter().map(|answer| answer.rows);
    let mut next = || answers.next().unwrap_or_default();
    let (queues, config, tracked) = (next(), next(), next());
    let recurring_in = next().iter().map(|row| row.int(0)).collect();
    let mut known = shared
        .revision
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if revision >= *known {
        shared.queues.take_over(&queues)?;
        shared.config.take_over(&config)?;
        shared.tracked.take_over(&tracked)?;
        *known = revision;
    }
    recurring_in
}
