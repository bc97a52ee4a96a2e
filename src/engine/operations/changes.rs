//! The bulk operations of a transaction: loaded, changed, and written.

use std::collections::HashMap;
use std::sync::Arc;

use crate::engine::operations::rows;
use crate::engine::operations::undo::RemovedJob;
use crate::engine::operations::{Operation, OperationState, Skip};
use crate::store::{Arg, Statement};

/// Skipped jobs that are stored per operation.
const SKIPS_MAX: i64 = 1_000;

/// A row of a skipped job: operation, number, job, protocol, namespace, queue, ID, reason.
type Skipped = (i64, i64, i64, &'static str, String, String, String, String);

/// A loaded operation.
struct LoadedOperation {
    operation: Operation,
    /// The version in the database, and the state as loaded; `None` for a new operation.
    version: Option<i64>,
    before: Option<OperationState>,
    changed: bool,
}

/// The loaded operations and their changes.
#[derive(Default)]
pub struct OperationChanges {
    operations: HashMap<i64, LoadedOperation>,
    skips: Vec<Skipped>,
    /// Operation, number, and the job as text.
    removed: Vec<(i64, i64, String)>,
    /// The same for jobs with long bodies, and the body.
    removed_with_body: Vec<(i64, i64, String, Arc<str>)>,
    /// Operation and number.
    deleted_removed: Vec<(i64, i64)>,
}

impl OperationChanges {
    /// Adds an operation as loaded from the database.
    pub fn add_loaded(&mut self, (operation, version): (Operation, i64)) {
        self.operations
            .entry(operation.id)
            .or_insert(LoadedOperation {
                before: Some(operation.state),
                operation,
                version: Some(version),
                changed: false,
            });
    }

    /// The operation, and the version as read; 0 if it has changed since.
    pub fn get(&self, id: i64) -> Option<(&Operation, i64)> {
        let loaded = self.operations.get(&id)?;
        // Another request of the same transaction may have changed it.
        let version = loaded
            .version
            .filter(|_| !loaded.changed)
            .unwrap_or_default();
        Some((&loaded.operation, version))
    }

    /// Adds a new operation.
    pub fn add(&mut self, operation: Operation) {
        let loaded = LoadedOperation {
            operation,
            version: None,
            before: None,
            changed: true,
        };
        self.operations.insert(loaded.operation.id, loaded);
    }

    /// Stores the progress of a loaded operation.
    pub fn set(&mut self, operation: Operation) {
        if let Some(loaded) = self.operations.get_mut(&operation.id) {
            loaded.operation = operation;
            loaded.changed = true;
        }
    }

    /// The operations that a user has started, stopped or undone, each with its state before. Does not
    /// include a new one that has already ended, because it belongs to the change that it can undo.
    pub fn decided(&self) -> impl Iterator<Item = (&Operation, Option<OperationState>)> {
        let operations = self.operations.values().filter(|loaded| loaded.changed);
        let operations = operations.map(|loaded| (&loaded.operation, loaded.before));
        operations.filter(|(operation, before)| before.is_some() || operation.state.is_active())
    }

    /// Stores that the operation skipped this job, after `n` others.
    pub fn skip(&mut self, operation: i64, n: i64, skip: Skip) {
        if n >= SKIPS_MAX {
            return;
        }
        let (queue, id) = skip.queue_and_id.unzip();
        let protocol = queue.as_ref().map_or("", |queue| queue.protocol.as_str());
        let (namespace, name) = queue.map(|it| (it.namespace, it.name)).unwrap_or_default();
        let id = id.unwrap_or_default();
        let row = (
            operation,
            n,
            skip.job,
            protocol,
            namespace,
            name,
            id,
            skip.reason,
        );
        self.skips.push(row);
    }

    /// Stores the `n`th removed job for undo.
    pub fn keep_removed(&mut self, operation: i64, n: i64, removed: RemovedJob) {
        match removed.into_texts() {
            (job, None) => self.removed.push((operation, n, job)),
            (job, Some(body)) => self.removed_with_body.push((operation, n, job, body)),
        }
    }

    /// Deletes a removed job that was restored or cannot be.
    pub fn delete_removed(&mut self, operation: i64, n: i64) {
        self.deleted_removed.push((operation, n));
    }

    /// The statements that write the changes.
    pub fn writes(&mut self) -> Vec<Statement> {
        let mut writes = Vec::new();
        for loaded in std::mem::take(&mut self.operations).into_values() {
            match loaded.version {
                _ if !loaded.changed => {}
                Some(version) => writes.push(rows::save(&loaded.operation, version)),
                None => writes.push(rows::add(&loaded.operation)),
            }
        }
        let skips = std::mem::take(&mut self.skips);
        if !skips.is_empty() {
            writes.push(Statement::of_rows(rows::ADD_SKIPS, &skips));
        }
        let removed = std::mem::take(&mut self.removed);
        if !removed.is_empty() {
            writes.push(Statement::of_rows(rows::ADD_REMOVED, &removed));
        }
        for (operation, n, job, body) in std::mem::take(&mut self.removed_with_body) {
            let args = [operation.into(), n.into(), job.into(), Arg::Shared(body)];
            writes.push(Statement::new(rows::ADD_REMOVED_WITH_BODY, args));
        }
        let deleted = std::mem::take(&mut self.deleted_removed);
        if !deleted.is_empty() {
            let delete = Statement::of_rows(rows::DELETE_REMOVED, &deleted);
            writes.push(delete.exactly(deleted.len()));
        }
        writes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_1000_reasons_of_an_operation_are_kept() {
        let mut operating = OperationChanges::default();
        for (n, kept) in [(998, 1), (999, 2), (1_000, 2), (1_001, 2)] {
            let skip = Skip {
                job: n,
                queue_and_id: None,
                reason: String::new(),
            };
            operating.skip(1, n, skip);
            assert_eq!(operating.skips.len(), kept, "after {n} others");
        }
    }
}
