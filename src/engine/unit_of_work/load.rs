//! Loads what the verbs of a transaction name. `candidates.rs` loads the next jobs of queues.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::engine::model::job::{Job, JobKey, QLESS_SCOPE, QueueId, QueueKey, can_look_up};
use crate::engine::model::job_columns::{job_bytes, job_columns};
use crate::engine::model::job_rows::DEPENDENCIES_SHORT_MAX;
use crate::engine::model::neighbor_rows;
use crate::engine::model::recurring;
use crate::engine::operations;
use crate::engine::unit_of_work::{Extent, LoadedRecurring, Needs, UnitOfWork};
use crate::engine::verbs::qless::depend::DEPENDENTS_MAX;
use crate::store::{Row, Statement, StatementResult, StoreError};

/// Dependents that a transaction counts, over all jobs that others are going to depend on.
const COUNTED_MAX: usize = 400_000;

/// Named jobs up to which their sizes are not read first. Each row can have over 100 KiB.
const FEW_NAMED: usize = 128;

/// The sizes of jobs by scope and ID.
pub type LoadSizes = HashMap<(i64, String), usize>;

impl UnitOfWork {
    /// The statement that reads the sizes of the jobs that are to be loaded, if there are many.
    pub fn load_sizes_statement<'a>(
        &self,
        needs: impl Iterator<Item = &'a Needs> + Clone,
    ) -> Option<Statement> {
        let loaded = needs.filter(|need| !need.only_checks_existence);
        let names = loaded.clone();
        let names = names.map(|need| need.jobs.len() + need.in_queues.len());
        if names.sum::<usize>() <= FEW_NAMED {
            return None;
        }
        let keys = loaded.flat_map(|need| self.named_keys(need));
        let keys: HashSet<_> = keys
            .filter(|(scope, id)| can_look_up(id) && !self.has(*scope, id))
            .collect();
        let keys: Vec<_> = keys.into_iter().collect();
        (keys.len() > FEW_NAMED).then(|| Statement::of_rows(LOAD_SIZES, &keys))
    }

    /// The result of [`UnitOfWork::load_sizes_statement`].
    ///
    /// # Errors
    /// If a row is corrupt.
    pub fn load_sizes(answers: &[StatementResult]) -> Result<LoadSizes, StoreError> {
        let rows = answers.iter().flat_map(|answer| &answer.rows);
        let sizes = rows.map(|row| {
            let bytes = usize::try_from(row.int(2)?).unwrap_or_default();
            Ok(((row.int(0)?, row.text(1)?), bytes))
        });
        sizes.collect()
    }

    /// The sizes of the jobs that the verb names, together.
    pub fn load_size(&self, need: &Needs, sizes: &LoadSizes) -> usize {
        let names = self.named_keys(need);
        let known = names.filter_map(|(scope, id)| sizes.get(&(scope, id.to_owned())));
        known.sum()
    }

    /// The statements that read what the verbs need, except for claims.
    pub fn load_statements<'a>(
        &mut self,
        needs: impl Iterator<Item = &'a Needs>,
    ) -> Vec<Statement> {
        let (mut keys, mut checked) = (HashSet::new(), HashSet::new());
        let (mut recurring, mut replaced) = (Vec::new(), Vec::new());
        let mut poll_candidates: Vec<i64> = Vec::new();
        let mut operations: Vec<i64> = Vec::new();
        let mut batch = Vec::new();
        for need in needs {
            let is_missing = |(scope, id): &(i64, &str)| can_look_up(id) && !self.has(*scope, id);
            let named = self.named_keys(need).filter(is_missing);
            match need.only_checks_existence {
                true => checked.extend(named),
                false => keys.extend(named),
            }
            checked.extend(self.checked_keys(need).filter(is_missing));
            match need.bodies {
                true => recurring.extend(need.recurring.iter().map(String::as_str)),
                false => replaced.extend(need.recurring.iter().map(String::as_str)),
            }
            poll_candidates.extend(&need.poll_candidates);
            operations.extend(need.operation);
            batch.extend(
                need.oldest
                    .as_ref()
                    .and_then(|oldest| self.loading_oldest(oldest)),
            );
        }
        checked.retain(|key| !keys.contains(key));
        if !keys.is_empty() {
            let keys: Vec<_> = keys.into_iter().collect();
            batch.push(Statement::of_rows(LOAD_JOBS, &keys));
        }
        if !checked.is_empty() {
            let checked: Vec<_> = checked.into_iter().collect();
            self.dependents_counted = (COUNTED_MAX / checked.len()).clamp(1, DEPENDENTS_MAX);
            let load = Statement::of_rows(neighbor_rows::LOAD_CHECKED, &checked);
            batch.push(load.with(self.dependents_counted as i64));
        }
        // First those without texts: a recurring job may be named both ways.
        if !replaced.is_empty() {
            batch.push(recurring::load_without_texts(&replaced));
        }
        if !recurring.is_empty() {
            batch.push(recurring::load(&recurring));
        }
        if !operations.is_empty() {
            batch.push(operations::load(&operations));
        }
        if !poll_candidates.is_empty() {
            poll_candidates.sort_unstable();
            poll_candidates.dedup();
            batch.push(Statement::of_rows(
                LOAD_CANDIDATES,
                &poll_candidates
                    .into_iter()
                    .map(|seq| (seq,))
                    .collect::<Vec<_>>(),
            ));
        }
        batch
    }

    /// The statement that locks the named jobs and their dependencies in the order that all servers use; `None` if no
    /// job is named.
    /// What is read after it cannot be changed by another server before the commit.
    pub fn lock_statement<'a>(&self, needs: impl Iterator<Item = &'a Needs>) -> Option<Statement> {
        let keys = needs.flat_map(|need| self.keys_of(need));
        let keys: HashSet<_> = keys.filter(|(_, id)| can_look_up(id)).collect();
        let keys: Vec<_> = keys.into_iter().collect();
        (!keys.is_empty()).then(|| Statement::of_rows(LOCK_JOBS, &keys))
    }

    /// The number of record IDs to reserve per queue.
    pub fn record_ids_needed<'a>(needs: impl Iterator<Item = &'a Needs>) -> BTreeMap<QueueId, i64> {
        let mut wanted = BTreeMap::new();
        for queue in needs.filter_map(|needs| needs.reserves_record_id_in) {
            *wanted.entry(queue).or_default() += 1;
        }
        wanted
    }

    /// The statement that reserves these IDs.
    pub fn reserve_record_ids(wanted: &BTreeMap<QueueId, i64>) -> Statement {
        Statement::of_rows(RESERVE_RECORD_IDS, &wanted.iter().collect::<Vec<_>>())
    }

    /// Stores the result of [`UnitOfWork::reserve_record_ids`].
    pub fn take_record_ids(
        &mut self,
        wanted: &BTreeMap<QueueId, i64>,
        answers: Vec<StatementResult>,
    ) -> Result<(), StoreError> {
        for row in answers.into_iter().flat_map(|answer| answer.rows) {
            let (queue, last) = (row.int(0)?, row.int(1)?);
            let count = wanted.get(&queue).copied().unwrap_or_default();
            self.reserved_record_ids
                .insert(queue, (last - count + 1..=last).collect());
        }
        Ok(())
    }

    /// The scopes and IDs of the named jobs, without dependencies and jobs that are only checked.
    pub fn named_keys<'a>(&self, needs: &'a Needs) -> impl Iterator<Item = (i64, &'a str)> {
        let by_key = needs.jobs.iter().map(|key| (key.scope, key.id.as_str()));
        by_key.chain(self.keys_in(&needs.in_queues))
    }

    /// The scopes and IDs of dependencies and of jobs that are only checked.
    fn checked_keys<'a>(&self, needs: &'a Needs) -> impl Iterator<Item = (i64, &'a str)> {
        dependencies(needs).chain(self.keys_in(&needs.checked))
    }

    fn keys_in<'a>(&self, jobs: &'a [(QueueKey, String)]) -> impl Iterator<Item = (i64, &'a str)> {
        jobs.iter()
            .filter_map(|(queue, id)| Some((self.queue(queue)?.id, id.as_str())))
    }

    /// The scopes and IDs of all jobs that the verb accesses.
    pub fn keys_of<'a>(&self, needs: &'a Needs) -> impl Iterator<Item = (i64, &'a str)> {
        self.named_keys(needs).chain(self.checked_keys(needs))
    }

    fn has(&self, scope: i64, id: &str) -> bool {
        let key = || JobKey {
            scope,
            id: id.to_owned(),
        };
        !self.jobs.is_empty() && self.jobs.contains_key(&key())
    }

    /// The jobs with dependents that verbs complete.
    pub fn completed_with_dependents<'a>(
        &self,
        needs: impl Iterator<Item = &'a Needs>,
    ) -> Vec<&Job> {
        let has_dependents = |job: &&Job| !job.dependents.is_empty();
        let jobs = self.jobs.values().map(|loaded| &loaded.job);
        let mut jobs: Vec<&Job> = jobs.filter(has_dependents).collect();
        if jobs.is_empty() {
            return jobs;
        }
        let releasing = needs.filter(|needs| needs.releases_dependents);
        let named: HashSet<_> = releasing.flat_map(|needs| self.named_keys(needs)).collect();
        jobs.retain(|job| named.contains(&(job.key.scope, job.key.id.as_str())));
        jobs
    }

    /// The statement that reads the dependents of these completed jobs, given by `seq`. Leaves out jobs whose dependents
    /// are released later; `None` if no others are left.
    ///
    /// Verbs only check whether a dependent has dependencies left. A transaction removes at most one of them per
    /// completed job, so it suffices to count one more than that. A job with thousands of dependencies is therefore not
    /// fully read whenever one of them completes.
    pub fn dependents_statement(&self, mut completed: Vec<(i64,)>) -> Option<Statement> {
        let counted = completed.len() as i64 + 1;
        completed.retain(|(seq,)| !self.releases.is_released_later(*seq));
        (!completed.is_empty())
            .then(|| Statement::of_rows(neighbor_rows::LOAD_DEPENDENTS, &completed).with(counted))
    }

    /// Stores the result of [`UnitOfWork::load_statements`]. The oldest jobs of a list, if requested, are the first
    /// result; the number of columns identifies the kind of the other rows.
    pub fn take_loaded(
        &mut self,
        answers: Vec<StatementResult>,
        oldest: bool,
    ) -> Result<(), StoreError> {
        self.jobs.reserve(count_rows(&answers));
        for (index, answer) in answers.into_iter().enumerate() {
            for row in answer.rows {
                match row.columns() {
                    recurring::COLUMNS => self.load_recurring(&row)?,
                    operations::COLUMNS => self.operations.add_loaded(operations::operation(&row)?),
                    neighbor_rows::CHECKED_COLUMNS => {
                        let (job, version, omitted) = neighbor_rows::checked(&row)?;
                        if !self.jobs.contains_key(&job.key) {
                            self.add_loaded_job(job, version, omitted, Extent::Checked);
                        }
                    }
                    _ => {
                        let key = self.add_row(&row)?;
                        if oldest && index == 0 {
                            self.oldest.push(key);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores the result of [`UnitOfWork::dependents_statement`].
    pub fn take_dependents_loaded(
        &mut self,
        answers: &[StatementResult],
    ) -> Result<(), StoreError> {
        self.jobs.reserve(count_rows(answers));
        let mut lists: HashMap<i64, Vec<String>> = HashMap::new();
        for row in answers.iter().flat_map(|answer| &answer.rows) {
            let (dependency, job, version, mut omitted) = neighbor_rows::dependent(row)?;
            lists
                .entry(dependency)
                .or_default()
                .push(job.key.id.clone());
            match self.jobs.get_mut(&job.key) {
                None => omitted.dependents = 0,
                Some(known) if known.extent == Extent::Checked => {
                    omitted.dependents = known.omitted.dependents;
                }
                Some(known) => {
                    // Of a job with many dependencies, which another verb names, only the first have been loaded.
                    if known.extent == Extent::Whole
                        && known.omitted.edges
                        && known.job.dependencies.len() > DEPENDENCIES_SHORT_MAX
                    {
                        known.omitted.dependencies = omitted.dependencies;
                    }
                    continue;
                }
            }
            self.add_loaded_job(job, version, omitted, Extent::Dependent);
        }
        for loaded in self.jobs.values_mut() {
            if let Some(ids) = lists.remove(&loaded.job.seq) {
                loaded.job.dependents = ids;
                loaded.omitted.dependents = 0;
                loaded.omitted.edges = loaded.job.dependencies.len() > DEPENDENCIES_SHORT_MAX;
            }
        }
        Ok(())
    }

    /// Adds jobs as loaded by [`neighbor_rows::LOAD_DEPENDING`].
    pub fn add_depending(
        &mut self,
        answers: &[StatementResult],
    ) -> Result<Vec<JobKey>, StoreError> {
        let mut keys = Vec::new();
        for row in answers.iter().flat_map(|answer| &answer.rows) {
            let (_, job, version, omitted) = neighbor_rows::dependent(row)?;
            keys.push(job.key.clone());
            self.add_loaded_job(job, version, omitted, Extent::Dependent);
        }
        Ok(keys)
    }

    pub(super) fn load_recurring(&mut self, row: &Row) -> Result<(), StoreError> {
        let (recurring, version) = recurring::recurring(row)?;
        let id = recurring.id.clone();
        let loaded = LoadedRecurring {
            recurring: Some(recurring),
            version,
            changed: false,
        };
        self.recurring.insert(id, loaded);
        Ok(())
    }
}

fn count_rows(answers: &[StatementResult]) -> usize {
    answers.iter().map(|answer| answer.rows.len()).sum()
}

/// The scopes and IDs of the jobs that are only dependencies.
fn dependencies(needs: &Needs) -> impl Iterator<Item = (i64, &str)> {
    let ids = needs.dependencies.iter();
    ids.map(|id| (QLESS_SCOPE, id.as_str()))
}

/// Pairs of scope and ID. Each row repeats the scope because with a single scope in the condition, Postgres reads all
/// jobs of the scope and compares each with every ID.
pub fn qless_keys<T: AsRef<str>>(ids: &[T]) -> Vec<(i64, &str)> {
    ids.iter().map(|id| (QLESS_SCOPE, id.as_ref())).collect()
}

/// Jobs by pairs of scope and ID.
// CROSS JOIN keeps SQLite from scanning the jobs and looking each up in the list.
const LOAD_JOBS: &str = concat!(
    "SELECT ",
    job_columns!(short),
    " FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.int(0) AND j.id = k.text(1)"
);

const LOAD_SIZES: &str = concat!(
    "SELECT j.scope, j.id, CAST(",
    job_bytes!(loaded),
    " AS BIGINT) FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.int(0) AND j.id = k.text(1)"
);

/// By `seq`, so that groups that lock first do not deadlock.
const LOCK_JOBS: &str = "
SELECT j.seq FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.int(0) AND j.id = k.text(1)
ORDER BY j.seq {locked:j}";

/// Records by `seq`.
const LOAD_CANDIDATES: &str = concat!(
    "SELECT ",
    job_columns!(short),
    " FROM (SELECT seq FROM jobs WHERE seq IN (SELECT int(0) FROM rows($1)) {skip_locked}) AS c
    CROSS JOIN jobs AS j WHERE j.seq = c.seq"
);

/// Reserves IDs for new records. Other servers wait for the queue's row, so the IDs have no gaps.
const RESERVE_RECORD_IDS: &str = "
UPDATE queues SET last_number = last_number + k.int(1) FROM rows($1) AS k
WHERE queues.id = k.int(0) AND queues.forgotten = 0 RETURNING queues.id, queues.last_number";
