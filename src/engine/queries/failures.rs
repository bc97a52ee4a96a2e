//! Failure groups and their jobs.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::Job;
use crate::engine::model::page::{LISTED_MAX, Page};
use crate::engine::queries::job_lists::{List, deep_page_permit, list};
use crate::store::{Arg, Statement};

/// A failure group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    pub group: String,
    pub count: i64,
    /// The time of its oldest failure.
    pub first: Option<Time>,
    /// The time of its newest failure, and that failure's message.
    pub last: Option<Time>,
    pub message: Option<String>,
}

impl Engine {
    /// The failure groups with failed jobs, by name; at most 10,000.
    pub async fn failures(&self) -> Result<Vec<FailureGroup>> {
        let rows = self
            .readers()
            .rows(Statement::new(FAILURES, [(LISTED_MAX as i64).into()]))
            .await?;
        let group = |row: &crate::store::Row| {
            Ok(FailureGroup {
                group: row.text(0)?,
                count: row.int(1)?,
                first: row.int_or_null(2)?.map(Time),
                last: row.int_or_null(3)?.map(Time),
                message: row.text_or_null(4)?,
            })
        };
        rows.iter().map(group).collect()
    }

    /// The failure groups with failed jobs, by name, and how many they have; at most 10,000.
    pub async fn failure_counts(&self) -> Result<Vec<(String, i64)>> {
        let statement = Statement::new(COUNTS, [(LISTED_MAX as i64).into()]);
        let rows = self.readers().rows(statement).await?;
        let count = |row: &crate::store::Row| Ok((row.text(0)?, row.int(1)?));
        rows.iter().map(count).collect()
    }

    /// The number of failed jobs in `group`, and a page of them, newest failure first.
    ///
    /// # Errors
    /// [`ResponseTooLarge`, `Busy`](crate::engine::Error).
    pub async fn failed(&self, group: &str, page: Page) -> Result<(i64, Vec<Job>)> {
        let (total, args) = self.failed_with(group, page).await?;
        let _permit = deep_page_permit(page).await?;
        Ok((total, self.read_whole(&FAILED_WITH, &args).await?))
    }

    /// The IDs of the jobs that [`Engine::failed`] returns.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::engine::Error::Busy).
    pub async fn failed_ids(&self, group: &str, page: Page) -> Result<(i64, Vec<String>)> {
        let (total, args) = self.failed_with(group, page).await?;
        let _permit = deep_page_permit(page).await?;
        let rows = self
            .readers()
            .rows(Statement::new(FAILED_WITH.ids, args))
            .await?;
        let ids = rows.iter().map(|row| row.text(0));
        Ok((total, ids.collect::<Result<_, _>>()?))
    }

    async fn failed_with(&self, group: &str, page: Page) -> Result<(i64, Vec<Arg>)> {
        self.refresh_cache().await?;
        let count = Statement::new(FAILURE_COUNT, [group.into()]);
        let rows = self.readers().rows(count).await?;
        let total = rows.first().map_or(Ok(0), |row| row.int(0))?;
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        Ok((total, vec![limit.into(), offset.into(), group.into()]))
    }
}

const FAILURES: &str = "
SELECT c.failure_group, c.n,
    (SELECT min(j.since) FROM jobs AS j WHERE j.state = {failed} AND j.failure_group = c.failure_group),
    (SELECT max(j.since) FROM jobs AS j WHERE j.state = {failed} AND j.failure_group = c.failure_group),
    (SELECT substr(j.failure_message, 1, 1000) FROM jobs AS j WHERE j.state = {failed} AND j.failure_group = c.failure_group
     ORDER BY j.since DESC, j.seq DESC LIMIT 1)
FROM (SELECT failure_group, CAST(sum(n) AS BIGINT) AS n FROM failure_counts GROUP BY failure_group) AS c
WHERE c.n > 0 ORDER BY c.failure_group LIMIT $1 + 0";

const COUNTS: &str = "
SELECT c.failure_group, c.n
FROM (SELECT failure_group, CAST(sum(n) AS BIGINT) AS n FROM failure_counts GROUP BY failure_group) AS c
WHERE c.n > 0 ORDER BY c.failure_group LIMIT $1 + 0";

const FAILED_WITH: List = list!(
    "jobs AS j WHERE j.state = {failed} AND j.failure_group = $3
     ORDER BY j.since DESC, j.seq DESC LIMIT $1 + 0 OFFSET $2 + 0"
);

pub const FAILURE_COUNT: &str =
    "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM failure_counts WHERE failure_group = $1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::engine_without_tasks;
    use crate::engine::test_support::run_statements;

    const GROUPS: &str = "
INSERT INTO failure_counts (failure_group, queue, server, n)
WITH RECURSIVE numbers (n) AS (SELECT $1 + 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
SELECT 'group ' || (100000 + n), 1, 1, 1 FROM numbers";

    #[tokio::test]
    async fn the_first_10000_failure_groups_are_listed() {
        let engine = engine_without_tasks().await;
        for (from, to, listed) in [
            (1_i64, 9_999_i64, 9_999),
            (10_000, 10_000, 10_000),
            (10_001, 10_001, 10_000),
        ] {
            let range = [from, to].map(i64::into);
            run_statements(&engine, [Statement::new(GROUPS, range)]).await;
            let groups = engine.failures().await.unwrap();
            assert_eq!(groups.len(), listed, "of {to}");
            let groups = groups.into_iter().map(|group| (group.group, group.count));
            let counts = engine.failure_counts().await.unwrap();
            assert_eq!(counts, groups.collect::<Vec<_>>());
        }
        engine.close().await;
    }
}
