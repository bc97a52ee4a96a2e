//! Detects dependency cycles. A job must not depend on one of its direct or indirect dependents, so the search starts
//! at the job and follows its dependents and theirs. A new job has none.

use std::collections::HashSet;

use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey, QLESS_SCOPE};
use crate::engine::unit_of_work::{Extent, Needs, UnitOfWork};
use crate::store::{Statement, StatementResult, StoreError};

/// Maximum number of edges that a transaction reads.
pub const EDGES_SEARCHED_MAX: usize = 20_000;

/// Maximum length of a path of dependents. Each level takes a statement.
const LEVELS_MAX: usize = 200;

/// Steps through dependencies and dependents that the items of a transaction take in memory, if it can be split.
pub const STEPS_MAX: usize = 200_000;

/// A limit at which a cycle search ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchLimit {
    Edges,
    Levels,
}

impl SearchLimit {
    fn error(self) -> Error {
        let (what, max) = match self {
            SearchLimit::Edges => (
                "dependencies among the direct and indirect dependents of a job that gets dependencies",
                EDGES_SEARCHED_MAX,
            ),
            SearchLimit::Levels => (
                "levels of dependents of a job that gets dependencies",
                LEVELS_MAX,
            ),
        };
        Error::TooMany { what, max }
    }
}

/// The direct and indirect dependents of the jobs that get dependencies, read level by level.
pub struct CycleSearch {
    /// Jobs whose dependents have not been read yet.
    open: Vec<String>,
    visited: HashSet<String>,
    edges_left: usize,
    levels_left: usize,
}

impl CycleSearch {
    pub fn from<'a>(work: &UnitOfWork, needs: impl Iterator<Item = &'a Needs>) -> CycleSearch {
        let named = needs.filter(|needs| !needs.dependencies.is_empty());
        let keys = named.flat_map(|needs| &needs.jobs);
        let jobs = keys.filter_map(|key| work.job(key));
        let dependents = jobs.flat_map(|job| &job.dependents);
        let visited: HashSet<String> = dependents.cloned().collect();
        CycleSearch {
            open: visited.iter().cloned().collect(),
            visited,
            edges_left: EDGES_SEARCHED_MAX,
            levels_left: LEVELS_MAX,
        }
    }

    /// The statement that reads the next level; `None` at the end.
    pub fn next_level(&mut self) -> Option<Statement> {
        if self.open.is_empty() || self.reached_limit().is_some() {
            return None;
        }
        self.levels_left -= 1;
        let keys: Vec<_> = self.open.drain(..).map(|id| (QLESS_SCOPE, id)).collect();
        let limit = self.edges_left as i64 + 1;
        Some(Statement::of_rows(LOAD_DEPENDENTS, &keys).with(limit))
    }

    /// The limit at which the search ended early, if any.
    pub fn reached_limit(&self) -> Option<SearchLimit> {
        if self.edges_left == 0 {
            Some(SearchLimit::Edges)
        } else if self.levels_left == 0 && !self.open.is_empty() {
            Some(SearchLimit::Levels)
        } else {
            None
        }
    }

    /// How many steps the items of a request take. Each item that changes the dependencies of a job goes through all of
    /// them, each that removes all of them goes through the other dependents of each, and each that adds one searches the
    /// dependents again.
    pub fn steps(&self, work: &UnitOfWork, needs: &Needs) -> usize {
        if needs.keeps_dependencies || needs.deletes {
            return 0;
        }
        let searched = EDGES_SEARCHED_MAX - self.edges_left;
        let jobs = || needs.jobs.iter().filter_map(|key| work.job(key));
        let steps = jobs().map(|job| {
            let searches = !needs.dependencies.is_empty() && !job.dependents.is_empty();
            let dependents = job.dependents.len() + searched;
            job.dependencies.len() + if searches { dependents } else { 0 }
        });
        let removals = match needs.replaces_dependencies {
            // The first item for a job removes them all.
            true => {
                let mut seen = HashSet::new();
                let each = jobs().filter(|job| seen.insert(job.seq));
                each.map(|job| Self::removal_steps(work, job)).sum()
            }
            false => 0,
        };
        steps.sum::<usize>() + removals
    }

    /// The steps to remove the dependencies of a job.
    fn removal_steps(work: &UnitOfWork, job: &Job) -> usize {
        let steps = job.dependencies.iter().map(|id| {
            let need = work.job(&JobKey::qless(id.as_str()));
            need.map_or(0, |need| need.dependents.len())
        });
        steps.sum()
    }

    /// Stores the result of [`CycleSearch::next_level`].
    pub fn loaded(
        &mut self,
        work: &mut UnitOfWork,
        answers: &[StatementResult],
    ) -> Result<(), StoreError> {
        for row in answers.iter().flat_map(|answer| &answer.rows) {
            let (id, dependent) = (row.text(0)?, row.text(1)?);
            self.edges_left = self.edges_left.saturating_sub(1);
            if self.visited.insert(dependent.clone()) {
                self.open.push(dependent.clone());
            }
            work.dependents.entry(id).or_default().push(dependent);
        }
        Ok(())
    }
}

impl UnitOfWork {
    /// Fails if `key` would depend on itself, directly or indirectly, after depending on `dependencies`.
    ///
    /// # Errors
    /// [`Error::DependencyCycle`]; [`Error::TooMany`] if the job has too many dependents, or levels of them, to check.
    pub fn check_cycle(&self, key: &JobKey, dependencies: &[String]) -> Result<()> {
        // `steps` counts the search only for items that add dependencies.
        if dependencies.is_empty() {
            return Ok(());
        }
        let dependencies: HashSet<&str> = dependencies.iter().map(String::as_str).collect();
        let mut open: Vec<&str> = vec![&key.id];
        let mut visited = HashSet::new();
        while let Some(id) = open.pop() {
            if dependencies.contains(id) {
                return Err(Error::DependencyCycle { id: key.id.clone() });
            }
            if !visited.insert(id) {
                continue;
            }
            let key = JobKey {
                scope: key.scope,
                id: id.to_owned(),
            };
            let loaded = self.jobs.get(&key);
            let loaded = loaded.filter(|loaded| loaded.extent == Extent::Whole);
            if let Some(loaded) = loaded {
                open.extend(loaded.job.dependents.iter().map(String::as_str));
            }
            if loaded.is_none_or(|loaded| loaded.omitted.edges) {
                let read = self.dependents.get(id).into_iter().flatten();
                open.extend(read.map(String::as_str));
            }
        }
        match self.cycle_search_limit {
            Some(limit) if visited.len() > 1 => Err(limit.error()),
            _ => Ok(()),
        }
    }
}

/// Pairs of a job and a dependent.
const LOAD_DEPENDENTS: &str = "
SELECT j.id, o.id FROM rows($1) AS k CROSS JOIN jobs AS j CROSS JOIN dependencies AS d CROSS JOIN jobs AS o
WHERE j.scope = k.int(0) AND j.id = k.text(1) AND d.needs = j.seq AND o.seq = d.job LIMIT $2 + 0";
