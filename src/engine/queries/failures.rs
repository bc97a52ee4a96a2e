//! Failure groups and their jobs.

use std::collections::HashMap;
use std::sync::Arc;

use crate::blocking::block_in_place_if_many;
use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::Job;
use crate::engine::model::page::{LISTED_MAX, OffsetPage};
use crate::engine::queries::job_lists::{List, list};
use crate::store::{Arg, Row, Statement, StoreError};

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

/// How many failure groups have failed jobs, and how many of these groups and jobs are not muted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailureTotals {
    pub groups: i64,
    pub unmuted_groups: i64,
    pub unmuted_jobs: i64,
}

impl Engine {
    /// The failure groups with failed jobs, by name, without messages ([`Engine::newest_messages`]); at most 10,000.
    pub async fn failure_groups(&self) -> Result<Arc<Vec<FailureGroup>>> {
        self.share(
            |it| &it.failure_groups,
            (),
            |engine| Box::pin(async move { engine.read_failure_groups().await }),
        )
        .await
    }

    /// Up to `limit` failure groups, those with the most failed jobs first, and the totals of all groups. If there are
    /// more groups, muted ones are left out first.
    pub async fn largest_failure_groups(
        &self,
        limit: usize,
    ) -> Result<Arc<(Vec<FailureGroup>, FailureTotals)>> {
        self.share(
            |it| &it.largest_failure_groups,
            limit,
            move |engine| Box::pin(async move { engine.read_largest_failures(limit).await }),
        )
        .await
    }

    /// The failure group with this name, if it has failed jobs.
    pub async fn failure_group(&self, name: &str) -> Result<Option<FailureGroup>> {
        let rows = self.readers().rows(Statement::new(GROUP, [name.into()]));
        rows.await?.first().map(group).transpose()
    }

    /// The beginnings of the newest messages of these failure groups, by name. Up to 4 KB for each are read.
    pub async fn newest_messages(&self, groups: &[&str]) -> Result<HashMap<String, String>> {
        let rows = self.readers().rows(Statement::of_rows(MESSAGES, groups));
        let mut found = HashMap::new();
        for row in rows.await? {
            found.insert(row.text(0)?, row.text_or_null(1)?.unwrap_or_default());
        }
        Ok(found)
    }

    async fn read_failure_groups(&self) -> Result<Vec<FailureGroup>> {
        let statement = Statement::new(FAILURES, [(LISTED_MAX as i64).into()]);
        let rows = self.readers().rows(statement).await?;
        block_in_place_if_many(rows.len(), || rows.iter().map(group).collect())
    }

    async fn read_failure_counts(&self) -> Result<Vec<(String, i64)>> {
        let statement = Statement::new(COUNTS, [(LISTED_MAX as i64).into()]);
        let rows = self.readers().rows(statement).await?;
        let count = |row: &Row| Ok((row.text(0)?, row.int(1)?));
        rows.iter().map(count).collect()
    }

    async fn read_largest_failures(
        &self,
        limit: usize,
    ) -> Result<(Vec<FailureGroup>, FailureTotals)> {
        let now = self.now(None).0;
        let batch = vec![
            Statement::new(LARGEST, [now.into(), (limit as i64).into()]),
            Statement::new(TOTALS, [now.into()]),
        ];
        let mut results = self.readers().read(batch).await?.into_iter();
        let mut rows = || results.next().map(|it| it.rows).unwrap_or_default();
        let (groups, totals) = (rows(), rows());
        let totals = totals.first().map_or(Ok(FailureTotals::default()), |row| {
            Ok::<_, StoreError>(FailureTotals {
                groups: row.int(0)?,
                unmuted_groups: row.int(1)?,
                unmuted_jobs: row.int(2)?,
            })
        });
        let groups: Result<_> = groups.iter().map(group).collect();
        Ok((groups?, totals?))
    }

    /// The failure groups with failed jobs, by name, and how many they have; at most 10,000.
    pub async fn failure_counts(&self) -> Result<Arc<Vec<(String, i64)>>> {
        self.share(
            |it| &it.failure_counts,
            (),
            |engine| Box::pin(async move { engine.read_failure_counts().await }),
        )
        .await
    }

    /// The number of failed jobs in `group`, and a page of them, newest failure first.
    ///
    /// # Errors
    /// [`ResponseTooLarge`, `Busy`](crate::engine::Error).
    pub async fn jobs_of_failure_group(
        &self,
        group: &str,
        page: OffsetPage,
    ) -> Result<(i64, Vec<Job>)> {
        let (total, args) = self.failed_with(group, page).await?;
        let jobs = self.page_of_jobs(&FAILED_WITH, &args, page).await?;
        Ok((total, jobs))
    }

    /// The IDs of the jobs that [`Engine::jobs_of_failure_group`] returns.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::engine::Error::Busy).
    pub async fn ids_of_failure_group(
        &self,
        group: &str,
        page: OffsetPage,
    ) -> Result<(i64, Vec<String>)> {
        let (total, args) = self.failed_with(group, page).await?;
        let ids = self.page_of_ids(&FAILED_WITH.pages, args, page).await?;
        Ok((total, ids))
    }

    async fn failed_with(&self, group: &str, page: OffsetPage) -> Result<(i64, Vec<Arg>)> {
        self.refresh_cache().await?;
        let count = Statement::new(FAILURE_COUNT, [group.into()]);
        let rows = self.readers().rows(count).await?;
        let total = rows.first().map_or(Ok(0), |row| row.int(0))?;
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        Ok((total, vec![limit.into(), offset.into(), group.into()]))
    }
}

fn group(row: &Row) -> Result<FailureGroup> {
    Ok(FailureGroup {
        group: row.text(0)?,
        count: row.int(1)?,
        first: row.int_or_null(2)?.map(Time),
        last: row.int_or_null(3)?.map(Time),
        message: row.text_or_null(4)?,
    })
}

/// The failure groups `g` with their numbers of failed jobs, which can be 0.
macro_rules! groups {
    () => {
        "(SELECT failure_group, CAST(sum(n) AS BIGINT) AS n FROM failure_counts GROUP BY failure_group) AS g"
    };
}

/// The first groups with failed jobs, by name. In this form, the database stops at the limit.
macro_rules! first_groups {
    () => {
        "SELECT failure_group, CAST(sum(n) AS BIGINT) AS n FROM failure_counts
         GROUP BY failure_group HAVING sum(n) > 0 ORDER BY failure_group LIMIT $1 + 0"
    };
}

/// 1 if the group `g` is muted at the time `$1`, otherwise 0.
macro_rules! is_muted {
    () => {
        "CASE WHEN EXISTS (SELECT 1 FROM mutes AS m WHERE m.failure_group = g.failure_group AND m.until_at > $1)
              THEN 1 ELSE 0 END"
    };
}

/// The beginning of the newest message of the group `c`.
macro_rules! newest_message {
    () => {
        "(SELECT substr(j.failure_message, 1, 1000) FROM jobs AS j WHERE j.state = {failed} AND j.failure_group = c.failure_group
     ORDER BY j.since DESC, j.seq DESC LIMIT 1)"
    };
}

/// The columns of a [`FailureGroup`] of the groups `c`, without or with its message.
macro_rules! group_columns {
    (no message) => {
        concat!(group_times!(), ", CAST(NULL AS TEXT)")
    };
    () => {
        concat!(group_times!(), ", ", newest_message!())
    };
}

macro_rules! group_times {
    () => {
        "c.failure_group, c.n,
    (SELECT min(j.since) FROM jobs AS j WHERE j.state = {failed} AND j.failure_group = c.failure_group),
    (SELECT max(j.since) FROM jobs AS j WHERE j.state = {failed} AND j.failure_group = c.failure_group)"
    };
}

// The limits are inside, so that the times and messages of only these groups are read.

const FAILURES: &str = concat!(
    "SELECT ",
    group_columns!(no message),
    " FROM (",
    first_groups!(),
    ") AS c ORDER BY c.failure_group"
);

const MESSAGES: &str = concat!(
    "SELECT c.failure_group, ",
    newest_message!(),
    " FROM (SELECT k.item() AS failure_group FROM rows($1) AS k) AS c"
);

const GROUP: &str = concat!(
    "SELECT ",
    group_columns!(),
    " FROM (SELECT failure_group, CAST(sum(n) AS BIGINT) AS n FROM failure_counts WHERE failure_group = $1
            GROUP BY failure_group) AS c WHERE c.n > 0"
);

/// Muted groups only where the others leave room, because they raise no alerts.
const LARGEST: &str = concat!(
    "SELECT ",
    group_columns!(),
    " FROM (SELECT g.failure_group, g.n FROM ",
    groups!(),
    " WHERE g.n > 0 ORDER BY ",
    is_muted!(),
    ", g.n DESC, g.failure_group LIMIT $2 + 0) AS c ORDER BY c.n DESC, c.failure_group"
);

const TOTALS: &str = concat!(
    "SELECT count(*), CAST(coalesce(sum(c.unmuted), 0) AS BIGINT), CAST(coalesce(sum(c.unmuted * c.n), 0) AS BIGINT)
FROM (SELECT g.n, 1 - ",
    is_muted!(),
    " AS unmuted FROM ",
    groups!(),
    " WHERE g.n > 0) AS c"
);

const COUNTS: &str = first_groups!();

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
            let groups = engine.failure_groups().await.unwrap();
            assert_eq!(groups.len(), listed, "of {to}");
            let groups = groups.iter();
            let groups = groups.map(|group| (group.group.clone(), group.count));
            let counts = engine.failure_counts().await.unwrap();
            assert_eq!(*counts, groups.collect::<Vec<_>>());
        }
        engine.close().await;
    }

    #[tokio::test]
    async fn the_largest_failure_groups_are_listed_with_the_totals_of_all() {
        let engine = engine_without_tasks().await;
        let none = engine.largest_failure_groups(3).await.unwrap();
        assert_eq!(*none, (vec![], FailureTotals::default()));
        let range = [1_i64, 9].map(i64::into);
        run_statements(&engine, [Statement::new(GROUPS, range)]).await;
        // Of another queue, so these groups have more jobs than the others.
        let more = "INSERT INTO failure_counts (failure_group, queue, server, n) VALUES ('group 100005', 2, 1, 2), ('group 100007', 2, 1, 1), ('group 100003', 2, 1, -1)";
        run_statements(&engine, [Statement::new(more, [])]).await;
        engine
            .mute("group 100007", "known", "ada", 1)
            .await
            .unwrap();
        // The muted group has the second most jobs, but is left out first.
        let unmuted = [5, 1, 2, 4, 6, 8, 9];
        let all = [5, 7, 1, 2, 4, 6, 8, 9];
        for limit in [0, 1, 2, 3, 7, 8, 9] {
            let found = engine.largest_failure_groups(limit).await.unwrap();
            let (groups, totals) = &*found;
            let groups = groups.iter().map(|it| (it.group.clone(), it.count));
            let groups: Vec<_> = groups.collect();
            let listed = unmuted.get(..limit).unwrap_or(&all);
            let count = |n: &i32| match n {
                5 => 3,
                7 => 2,
                _ => 1,
            };
            let expected = listed.iter().map(|n| (format!("group 10000{n}"), count(n)));
            assert_eq!(groups, expected.collect::<Vec<_>>(), "{limit}");
            let expected = FailureTotals {
                groups: 8,
                unmuted_groups: 7,
                unmuted_jobs: 9,
            };
            assert_eq!(*totals, expected);
        }
        engine.close().await;
    }
}
