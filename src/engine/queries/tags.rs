//! Tags and the jobs that have them.

use std::time::Duration;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::page::Page;
use crate::store::{Row, Statement};

impl Engine {
    /// The number of jobs with the tag, and a page of their IDs, by the time of tagging, then by ID.
    pub async fn tagged(&self, tag: &str, page: Page) -> Result<(i64, Vec<String>)> {
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        let batch = vec![
            Statement::new(COUNT, [tag.into()]),
            Statement::new(TAGGED, [tag.into(), limit.into(), offset.into()]),
        ];
        let mut answers = self.readers().read(batch).await?.into_iter();
        let total = match answers.next().unwrap_or_default().rows.first() {
            Some(row) => row.int(0)?,
            None => 0,
        };
        let rows = answers.next().unwrap_or_default().rows;
        let ids: Result<Vec<_>, _> = rows.iter().map(|row| row.text(0)).collect();
        Ok((total, ids?))
    }

    /// Tags of at least `least` jobs, most used first, each with its number of jobs.
    pub async fn top_tags(&self, least: i64, page: Page) -> Result<Vec<(String, i64)>> {
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        let statement = Statement::new(TOP, [least.into(), limit.into(), offset.into()]);
        // Reads all tags.
        let mut answers = self
            .readers()
            .read_within(TOP_TIME_MAX, vec![statement])
            .await?;
        let rows = answers.pop().unwrap_or_default().rows;
        let tag = |row: &Row| Ok((row.text(0)?, row.int(1)?));
        rows.iter().map(tag).collect()
    }
}

/// Time limit for the statement that ranks all tags.
const TOP_TIME_MAX: Duration = Duration::from_secs(4);

const COUNT: &str = "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM tag_counts WHERE tag = $1";

const TAGGED: &str = "
SELECT id FROM tags WHERE tag = $1 ORDER BY tagged_at, id LIMIT $2 + 0 OFFSET $3 + 0";

const TOP: &str = "
SELECT tag, CAST(sum(n) AS BIGINT) AS jobs FROM tag_counts GROUP BY tag HAVING sum(n) >= $1
ORDER BY jobs DESC, tag LIMIT $2 + 0 OFFSET $3 + 0";
