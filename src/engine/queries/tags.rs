//! Tags and the jobs that have them.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::page::{
    Direction, OffsetPage, PageOf, PageStart, PageStatements, Position, Range,
};
use crate::engine::queries::job_pages::time_args;
use crate::engine::queries::kept_reads::Keeping;
use crate::memory::holding;
use crate::store::{Row, Statement};

/// Tags that are listed by their numbers of jobs. The database sorts as many in memory.
const TOP_MAX: usize = 100_000;

impl Engine {
    /// The number of jobs with the tag, and a page of their IDs, by the time of tagging, then by ID.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::engine::Error::Busy).
    pub async fn tagged(&self, tag: &str, page: OffsetPage) -> Result<(i64, Vec<String>)> {
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        let batch = vec![
            Statement::new(COUNT, [tag.into()]),
            Statement::new(TAGGED, [tag.into(), limit.into(), offset.into()]),
        ];
        let permit = self.deep_page_permit(page).await?;
        let answers = holding(permit, self.readers().read(batch)).await?;
        let mut answers = answers.into_iter();
        let total = match answers.next().unwrap_or_default().rows.first() {
            Some(row) => row.int(0)?,
            None => 0,
        };
        let rows = answers.next().unwrap_or_default().rows;
        let ids: Result<Vec<_>, _> = rows.iter().map(|row| row.text(0)).collect();
        Ok((total, ids?))
    }

    /// The number of jobs with the tag, and a page of their IDs by key, by the time of tagging, then in the order in
    /// which the jobs were added.
    pub async fn tagged_page(
        &self,
        tag: &str,
        place: PageStart,
        limit: usize,
    ) -> Result<(i64, PageOf<String>)> {
        let count = Statement::new(COUNT, [tag.into()]);
        let total = self.readers().rows(count).await?;
        let total = total.first().map_or(Ok(0), |row| row.int(0))?;
        let of = [tag.into()];
        let args = |range: Range| time_args(range, &of);
        let position = |(time, job, _): &(i64, i64, String)| Position::at(*time, *job);
        let parse = |row: &Row| Ok((row.int(0)?, row.int(1)?, row.text(2)?));
        let page = self.page_of(&TAGGED_PAGES, place, limit, args, parse, position);
        Ok((total, page.await?.map(|(_, _, id)| id)))
    }

    /// Tags of at least `least` jobs, most used first, each with its number of jobs. If there are many tags, requests
    /// share a ranking of the most used ones, which can be a few seconds old. Only the first [`TOP_MAX`] are listed.
    pub async fn top_tags(&self, least: i64, page: OffsetPage) -> Result<Vec<(String, i64)>> {
        let page = OffsetPage {
            limit: page.limit.min(TOP_MAX.saturating_sub(page.offset)),
            ..page
        };
        if page.limit == 0 {
            return Ok(Vec::new());
        }
        let is_ranked = page.offset.saturating_add(page.limit) <= RANKED_MAX;
        if is_ranked && self.has_many_tags().await? {
            let ranked = self.ranked_tags().await?;
            let found = ranked.iter().filter(|(_, jobs)| *jobs >= least);
            return Ok(found.skip(page.offset).take(page.limit).cloned().collect());
        }
        self.rank_tags(least, page.limit, page.offset).await
    }

    async fn has_many_tags(&self) -> Result<bool> {
        let most = RANKED_MAX as i64;
        let rows = self.readers().rows(Statement::new(SOME, [most.into()]));
        Ok(rows.await?.first().map_or(Ok(0), |row| row.int(0))? >= most)
    }

    /// The first [`RANKED_MAX`] tags, which can be a few seconds old.
    async fn ranked_tags(&self) -> Result<Arc<[(String, i64)]>> {
        let rank = |engine: Engine| -> BoxFuture<'static, Result<Arc<[_]>>> {
            Box::pin(async move { Ok(engine.rank_tags(1, RANKED_MAX, 0).await?.into()) })
        };
        self.keep(|reads| &reads.ranked_tags, &KEEPING, (), rank)
            .await
    }

    /// Reads all tags.
    async fn rank_tags(
        &self,
        least: i64,
        limit: usize,
        offset: usize,
    ) -> Result<Vec<(String, i64)>> {
        let args = [least, limit as i64, offset as i64].map(Into::into);
        let batch = vec![Statement::new(TOP, args)];
        let mut answers = self.readers().read_within(TOP_TIME_MAX, batch).await?;
        let rows = answers.pop().unwrap_or_default().rows;
        let tag = |row: &Row| Ok((row.text(0)?, row.int(1)?));
        rows.iter().map(tag).collect()
    }
}

/// Tags in a shared ranking. If the table has fewer rows, it is fast enough to read it for each request.
const RANKED_MAX: usize = 10_000;

/// Time limit for the statement that ranks all tags.
const TOP_TIME_MAX: Duration = Duration::from_secs(4);

const KEEPING: Keeping = Keeping {
    above: Duration::ZERO,
    least: Duration::from_secs(5),
    most: Duration::from_secs(5),
    wait_max: TOP_TIME_MAX,
};

const SOME: &str = "SELECT count(*) FROM (SELECT server FROM tag_counts LIMIT $1 + 0) AS counts";

const COUNT: &str = "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM tag_counts WHERE tag = $1";

const TAGGED: &str = "
SELECT id FROM tags WHERE tag = $1 ORDER BY tagged_at, id LIMIT $2 + 0 OFFSET $3 + 0";

const TAGGED_PAGES: PageStatements = PageStatements {
    direction: Direction::Ascending,
    forward: "
SELECT tagged_at, job, id FROM tags WHERE tag = $6 AND (tagged_at, job) > ($2, $3) AND (tagged_at, job) < ($4, $5)
ORDER BY tagged_at, job LIMIT $1 + 0",
    backward: "
SELECT tagged_at, job, id FROM tags WHERE tag = $6 AND (tagged_at, job) > ($2, $3) AND (tagged_at, job) < ($4, $5)
ORDER BY tagged_at DESC, job DESC LIMIT $1 + 0",
};

const TOP: &str = "
SELECT tag, CAST(sum(n) AS BIGINT) AS jobs FROM tag_counts GROUP BY tag HAVING sum(n) >= $1
ORDER BY jobs DESC, tag LIMIT $2 + 0 OFFSET $3 + 0";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::engine_without_tasks as engine;
    use crate::engine::test_support::run_statements;

    const ADD: &str = "INSERT INTO tag_counts (tag, server, n)
WITH RECURSIVE numbers (n) AS (SELECT $1 + 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
SELECT 'tag ' || (1000000 - n), 1, n FROM numbers";

    async fn add(engine: &Engine, first: i64, last: i64) {
        let args = [first.into(), last.into()];
        run_statements(engine, [Statement::new(ADD, args)]).await;
    }

    #[tokio::test]
    async fn requests_share_a_ranking_of_many_tags() {
        let engine = engine().await;
        add(&engine, 1, 9_999).await;
        assert!(!engine.has_many_tags().await.unwrap());
        let page = |offset, limit| OffsetPage { offset, limit };
        let top = async |offset, limit| {
            let found = engine.top_tags(9_990, page(offset, limit)).await.unwrap();
            found.into_iter().map(|(_, jobs)| jobs).collect::<Vec<_>>()
        };
        assert_eq!(top(0, 2).await, [9_999, 9_998]);
        assert_eq!(top(8, 5).await, [9_991, 9_990]);
        add(&engine, 10_000, 10_001).await;
        assert!(engine.has_many_tags().await.unwrap());
        assert_eq!(top(0, 2).await, [10_001, 10_000]);
        assert_eq!(top(10, 5).await, [9_991, 9_990]);
        assert_eq!(top(9_999, 1).await, Vec::<i64>::new());
        assert_eq!(top(10_000, 1).await, Vec::<i64>::new());
        let kept = &engine.0.long_reads.ranked_tags;
        kept.clear();
        let first = engine.ranked_tags().await.unwrap();
        assert_eq!((first.len(), first[0].1), (RANKED_MAX, 10_001));
        add(&engine, 10_002, 10_002).await;
        let shared = engine.ranked_tags().await.unwrap();
        assert!(Arc::ptr_eq(&first, &shared));
        kept.clear();
        let new = engine.ranked_tags().await.unwrap();
        assert_eq!(new[0].1, 10_002);
        let all = engine.top_tags(1, page(9_999, 5)).await.unwrap();
        let jobs: Vec<i64> = all.iter().map(|(_, jobs)| *jobs).collect();
        assert_eq!(jobs, [3, 2, 1], "beyond the ranking");
        engine.close().await;
    }
}
