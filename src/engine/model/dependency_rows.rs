//! Writes sets of dependencies.
//!
//! A row `(job, needs)` with a negative `needs` is a *satisfied* dependency: the job with the number `-needs` was
//! completed, and its dependents are released in later transactions (`maintenance/releases.rs`). Reads of a job's
//! dependencies skip satisfied rows.

use crate::store::Statement;

/// Adds dependencies `(job, needs)`.
pub fn add_dependencies(dependencies: &[(i64, i64)]) -> Statement {
    Statement::of_rows(ADD_DEPENDENCIES, dependencies)
}

/// Removes dependencies `(job, needs)`.
pub fn remove_dependencies(dependencies: &[(i64, i64)]) -> Statement {
    Statement::of_rows(REMOVE_DEPENDENCIES, dependencies)
}

/// Removes all dependencies of jobs.
pub fn remove_all_dependencies(jobs: &[(i64,)]) -> Statement {
    Statement::of_rows(REMOVE_ALL_DEPENDENCIES, jobs)
}

/// Removes all dependents of jobs.
pub fn remove_all_dependents(jobs: &[(i64,)]) -> Statement {
    Statement::of_rows(REMOVE_ALL_DEPENDENTS, jobs)
}

/// Adds a satisfied dependency for each dependent of jobs.
pub fn satisfy_all_dependents(jobs: &[(i64,)]) -> Statement {
    Statement::of_rows(SATISFY_ALL_DEPENDENTS, jobs)
}

/// Removes dependencies on jobs that are not loaded: job, and scope and ID of the other one.
pub fn remove_dependencies_on(dependencies: &[(i64, i64, String)]) -> Statement {
    Statement::of_rows(REMOVE_DEPENDENCIES_ON, dependencies)
}

const ADD_DEPENDENCIES: &str = "
INSERT INTO dependencies (job, needs) SELECT int(0), int(1) FROM rows($1) WHERE true
ON CONFLICT (job, needs) DO NOTHING";

const REMOVE_DEPENDENCIES: &str = "
DELETE FROM dependencies WHERE (job, needs) IN (SELECT int(0), int(1) FROM rows($1))";

const REMOVE_ALL_DEPENDENCIES: &str =
    "DELETE FROM dependencies WHERE job IN (SELECT int(0) FROM rows($1))";

const REMOVE_ALL_DEPENDENTS: &str =
    "DELETE FROM dependencies WHERE needs IN (SELECT int(0) FROM rows($1))";

const SATISFY_ALL_DEPENDENTS: &str = "
INSERT INTO dependencies (job, needs)
SELECT d.job, -d.needs FROM rows($1) AS k CROSS JOIN dependencies AS d WHERE d.needs = k.int(0)
ON CONFLICT (job, needs) DO NOTHING";

const REMOVE_DEPENDENCIES_ON: &str = "
DELETE FROM dependencies WHERE (job, needs) IN (
    SELECT k.int(0), j.seq FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.int(1) AND j.id = k.text(2))";
