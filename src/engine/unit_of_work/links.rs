//! Tags and dependencies of the jobs of a transaction. Each is a row of its own, so a few jobs can have as many rows as
//! thousands of others.

use crate::engine::model::job::JobKey;
use crate::engine::model::job_rows::EDGES_SHORT_MAX;
use crate::engine::unit_of_work::{Extent, LoadedJob, Needs, UnitOfWork};
use crate::engine::verbs::qless::depend::{DEPENDENCIES_MAX, DEPENDENTS_MAX};

/// Tags and dependencies that a transaction removes if it can be split.
pub const LINKS_MAX: usize = 2_048;

/// The assumed size of a tag in a long list, in bytes.
const TAG_BYTES: usize = 8;

impl LoadedJob {
    fn has_links(&self) -> bool {
        let job = &self.job;
        !(job.tags.is_empty() && job.dependencies.is_empty() && job.dependents.is_empty())
            || self.omitted.tags > 0
    }

    fn tags(&self) -> usize {
        self.job.tags.len() + self.omitted.tags / TAG_BYTES
    }

    fn dependencies(&self) -> usize {
        match self.job.dependencies.len() {
            count if self.omitted.edges && count > EDGES_SHORT_MAX => DEPENDENCIES_MAX,
            count => count,
        }
    }

    fn dependents(&self) -> usize {
        match self.job.dependents.len() {
            count if self.omitted.edges && count > EDGES_SHORT_MAX => DEPENDENTS_MAX,
            count => count,
        }
    }
}

impl UnitOfWork {
    /// The tags and dependencies that the verbs remove with the loaded jobs that they name. A list that has not been
    /// loaded counts as the longest.
    pub fn links<'a>(&self, needs: impl Iterator<Item = &'a Needs>) -> usize {
        if !self.jobs.values().any(LoadedJob::has_links) {
            return 0;
        }
        let mut links = 0;
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
                    links += loaded.dependents();
                }
                if tags {
                    links += loaded.tags();
                }
                if dependencies {
                    links += loaded.dependencies();
                }
            }
        }
        links
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
