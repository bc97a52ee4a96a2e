//! The *relations* of the jobs of a transaction: their tags, dependencies and dependents. Each is a row of its own, so a
//! few jobs can have as many rows as thousands of others.

use std::collections::{HashMap, HashSet};

use crate::engine::model::job::JobKey;
use crate::engine::model::job_rows::{DEPENDENCIES_SHORT_MAX, EdgeCounts};
use crate::engine::unit_of_work::{Extent, LoadedJob, Needs, UnitOfWork};
use crate::engine::verbs::qless::depend::{DEPENDENCIES_MAX, DEPENDENTS_MAX};
use crate::store::{Statement, StatementResult, StoreError};

/// Tags and dependencies that a transaction removes if it can be split.
pub const RELATIONS_MAX: usize = 2_048;

/// Jobs whose relations are counted: more of them have more than [`RELATIONS_MAX`] together.
const COUNTED_JOBS_MAX: usize = RELATIONS_MAX / DEPENDENCIES_SHORT_MAX;

/// The numbers of dependencies and of dependents of jobs by `seq`, each up to `$2`.
const COUNT_RELATIONS: &str = "
SELECT k.int(0), (SELECT count(*) FROM (SELECT needs FROM dependencies WHERE job = k.int(0) LIMIT $2 + 0) AS c),
    (SELECT count(*) FROM (SELECT job FROM dependencies WHERE needs = k.int(0) LIMIT $2 + 0) AS d)
FROM rows($1) AS k";

/// The assumed size of a tag in a long list, in bytes.
const TAG_BYTES: usize = 8;

impl LoadedJob {
    fn has_relations(&self) -> bool {
        let job = &self.job;
        !(job.tags.is_empty() && job.dependencies.is_empty() && job.dependents.is_empty())
            || self.omitted.tags > 0
    }

    fn tags(&self) -> usize {
        self.job.tags.len() + self.omitted.tags / TAG_BYTES
    }

    /// The number of dependencies, or the fewest that it can be if they were neither loaded nor counted.
    fn dependencies(&self) -> usize {
        let counted = self.omitted.edge_counts.map(|counts| counts.dependencies);
        counted.unwrap_or(self.job.dependencies.len())
    }

    /// The number of dependents, likewise.
    fn dependents(&self) -> usize {
        let counted = self.omitted.edge_counts.map(|counts| counts.dependents);
        counted.unwrap_or(self.job.dependents.len())
    }
}

impl UnitOfWork {
    /// The statement that counts the dependencies and dependents of loaded jobs whose lists were left out, if verbs
    /// remove or release them. With more of these jobs than [`COUNTED_JOBS_MAX`], the transaction is too large even if
    /// each has the fewest that it can have.
    pub fn count_relations_statement<'a>(
        &self,
        needs: impl Iterator<Item = &'a Needs>,
    ) -> Option<Statement> {
        if !self.jobs.values().any(|loaded| loaded.omitted.edges) {
            return None;
        }
        let needs = needs
            .filter(|need| need.releases_dependents || need.replaces_dependencies || need.deletes);
        let named: HashSet<_> = needs.flat_map(|needs| self.named_keys(needs)).collect();
        let loaded = self.jobs.values().filter(|loaded| loaded.omitted.edges);
        let jobs = loaded.map(|loaded| &loaded.job);
        let jobs = jobs.filter(|job| named.contains(&(job.key.scope, job.key.id.as_str())));
        let jobs: Vec<_> = jobs.map(|job| (job.seq,)).collect();
        let max = DEPENDENTS_MAX.max(DEPENDENCIES_MAX) as i64;
        (!jobs.is_empty() && jobs.len() <= COUNTED_JOBS_MAX)
            .then(|| Statement::of_rows(COUNT_RELATIONS, &jobs).with(max))
    }

    /// Stores the result of [`UnitOfWork::count_relations_statement`].
    pub fn take_relations_counted(
        &mut self,
        answers: &[StatementResult],
    ) -> Result<(), StoreError> {
        let mut counts = HashMap::new();
        for row in answers.iter().flat_map(|answer| &answer.rows) {
            let count = |column| {
                row.int(column)
                    .map(|n| usize::try_from(n).unwrap_or_default())
            };
            let relations = EdgeCounts {
                dependencies: count(1)?,
                dependents: count(2)?,
            };
            counts.insert(row.int(0)?, relations);
        }
        for loaded in self.jobs.values_mut() {
            let counted = counts.get(&loaded.job.seq).copied();
            loaded.omitted.edge_counts = counted.or(loaded.omitted.edge_counts);
        }
        Ok(())
    }

    /// The tags and dependencies that the verbs remove with the loaded jobs that they name. A list that was neither
    /// loaded nor counted counts as the shortest that it can be.
    pub fn relations<'a>(&self, needs: impl Iterator<Item = &'a Needs>) -> usize {
        if !self.jobs.values().any(LoadedJob::has_relations) {
            return 0;
        }
        let mut relations = 0;
        for need in needs {
            let tags = need.replaces_tags || need.deletes;
            let dependencies = need.replaces_dependencies || need.deletes;
            if !(tags || dependencies || need.releases_dependents) {
                continue;
            }
            for (scope, id) in self.named_keys(need) {
                let id = id.to_owned();
                let Some(loaded) = self.jobs.get(&JobKey { scope, id }) else {
                    continue;
                };
                if need.releases_dependents {
                    relations += loaded.dependents();
                }
                if tags {
                    relations += loaded.tags();
                }
                if dependencies {
                    relations += loaded.dependencies();
                }
            }
        }
        relations
    }

    /// Whether a job that others are going to depend on has more dependents than were counted, because many jobs were.
    /// A smaller transaction counts more of each.
    pub fn has_uncounted(&self) -> bool {
        let counted = self.dependents_counted;
        let is_uncounted = |loaded: &LoadedJob| {
            loaded.extent != Extent::Whole && loaded.omitted.dependents >= counted
        };
        counted < DEPENDENTS_MAX && self.jobs.values().any(is_uncounted)
    }

    /// The number of dependents of a job that is a dependency of another one, and the most that it may have. The latter
    /// is smaller if they were not all counted.
    pub fn count_dependents(&self, key: &JobKey) -> (usize, usize) {
        let Some(loaded) = self.jobs.get(key) else {
            return (0, DEPENDENTS_MAX);
        };
        let max = match loaded.extent {
            Extent::Whole => DEPENDENTS_MAX,
            Extent::Dependent | Extent::Checked => self.dependents_counted.min(DEPENDENTS_MAX),
        };
        let count = loaded.job.dependents.len() + loaded.omitted.dependents;
        (count, max)
    }
}

#[cfg(test)]
mod tests;
