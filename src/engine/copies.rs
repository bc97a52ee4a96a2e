//! What a server keeps in memory, because every request asks for it: queues, options, tracked jobs, and in
//! which queues there are recurring jobs. Where servers share a database each reads them again when the
//! revision has changed.

use std::collections::HashSet;

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

/// Takes over what they have read. Gives the queues that have recurring jobs.
pub fn take_over(shared: &Shared, answers: Vec<Answer>) -> Result<HashSet<QueueId>, StoreError> {
    let mut answers = answers.into_iter().map(|answer| answer.rows);
    shared
        .queues
        .take_over(&answers.next().unwrap_or_default())?;
    shared
        .config
        .take_over(&answers.next().unwrap_or_default())?;
    shared
        .tracked
        .take_over(&answers.next().unwrap_or_default())?;
    let queues = answers.next().unwrap_or_default();
    queues.iter().map(|row| row.int(0)).collect()
}
