//! Large bodies. They are loaded only for verbs that return them, because some hundred jobs of a transaction could have
//! gigabytes of them.

use std::collections::{HashMap, HashSet};

use crate::engine::model::job::{JobKey, State};
use crate::engine::model::job_rows::BODIES;
use crate::engine::unit_of_work::record_sizes::RecordSizes;
use crate::engine::unit_of_work::{Candidates, Needs, UnitOfWork};
use crate::store::{Statement, StatementResult, StoreError};

/// Bytes of large bodies that a transaction loads for claims, not counting the last one.
const CLAIMED_MAX: usize = 8 * 1024 * 1024;

impl UnitOfWork {
    /// The statement that loads the large bodies that verbs need, if any.
    pub fn body_statement<'a>(&self, needs: impl Iterator<Item = &'a Needs>) -> Option<Statement> {
        let mut missing = Vec::new();
        let mut chosen: HashSet<i64> = HashSet::new();
        for need in needs {
            chosen.extend(&need.poll_candidates);
            if need.bodies {
                let slots = self.keys_of(need).filter_map(|(scope, id)| {
                    let id = id.to_owned();
                    self.slots.get(&JobKey { scope, id })
                });
                missing.extend(
                    slots
                        .filter(|slot| slot.job.body.read().is_none())
                        .map(|slot| slot.job.seq),
                );
            }
        }
        if !chosen.is_empty() {
            let slots = self.slots.values().map(|slot| &slot.job);
            let unread = slots.filter(|job| job.body.read().is_none() && chosen.contains(&job.seq));
            missing.extend(unread.map(|job| job.seq));
        }
        reading(missing)
    }

    /// Drops claim candidates whose bodies are too large for one transaction, and returns the statement that loads
    /// those of the others.
    pub fn claimed_body_statement(&mut self) -> Option<Statement> {
        let mut missing = Vec::new();
        let mut bytes = 0;
        let UnitOfWork {
            slots, candidates, ..
        } = self;
        let mut fits = |key: &JobKey| {
            let Some(job) = slots.get(key).map(|slot| &slot.job) else {
                return true;
            };
            if job.body.read().is_none() {
                if bytes >= CLAIMED_MAX {
                    return false;
                }
                bytes += job.body.bytes();
                missing.push(job.seq);
            }
            true
        };
        for Candidates {
            expired,
            ready,
            is_cut,
            ..
        } in candidates.values_mut()
        {
            for list in [expired, ready] {
                let fitting = list.iter().take_while(|key| !*is_cut && fits(key)).count();
                *is_cut |= fitting < list.len();
                list.truncate(fitting);
            }
        }
        reading(missing)
    }

    /// Records how large the loaded records are.
    pub fn note_sizes(&self, sizes: &RecordSizes) {
        let jobs = self.slots.values().map(|slot| &slot.job);
        let records = jobs.filter(|job| job.state == State::Record);
        sizes.note(records.map(|job| {
            let state = job.work_state.as_ref().map_or(0, String::len);
            let bytes = job.body.bytes() + job.history.as_text().len() + state;
            (job.queue, bytes)
        }));
    }

    /// Stores the bodies that these statements have read.
    pub fn take_bodies(&mut self, answers: &[StatementResult]) -> Result<(), StoreError> {
        let rows = answers.iter().flat_map(|answer| &answer.rows);
        let mut texts = HashMap::new();
        for row in rows {
            texts.insert(row.int(0)?, row.text(1)?);
        }
        for slot in self.slots.values_mut() {
            if let Some(text) = texts.remove(&slot.job.seq) {
                slot.job.body = text.into();
            }
        }
        Ok(())
    }
}

fn reading(jobs: Vec<i64>) -> Option<Statement> {
    let rows: Vec<_> = jobs.into_iter().map(|seq| (seq,)).collect();
    (!rows.is_empty()).then(|| Statement::of_rows(BODIES, &rows))
}
