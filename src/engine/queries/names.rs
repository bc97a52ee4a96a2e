//! Names of workers, tags and failure groups, for suggestions.

use std::sync::PoisonError;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::store::Statement;

/// Names of each kind that are read: the first ones, and those from `part` on. So names that begin with `part` are
/// included even if there are many.
const FIRST_MAX: i64 = 2_000;
const FROM_PART_MAX: i64 = 100;

/// Names, unordered and possibly with duplicates.
#[derive(Debug, Default)]
pub struct Names {
    pub workers: Vec<String>,
    pub tags: Vec<String>,
    pub failures: Vec<String>,
}

impl Engine {
    /// Candidates for names that contain `part`.
    pub async fn matching_names(&self, part: &str, now: Option<Time>) -> Result<Names> {
        self.refresh_cache().await?;
        let forgotten = self
            .now(now)
            .plus_seconds(-self.config().number("max-worker-age"));
        let spans = [("", FIRST_MAX), (part, FROM_PART_MAX)];
        let batch = spans.into_iter().flat_map(|(from, most)| {
            let workers = [from.into(), most.into(), forgotten.0.into()];
            [
                Statement::new(WORKERS, workers),
                Statement::new(TAGS, [from.into(), most.into()]),
                Statement::new(FAILURES, [from.into(), most.into()]),
            ]
        });
        let answers = self.readers().read(batch.collect()).await?;
        let mut names = Names::default();
        for (number, answer) in answers.iter().enumerate() {
            let of = match number % 3 {
                0 => &mut names.workers,
                1 => &mut names.tags,
                _ => &mut names.failures,
            };
            for row in &answer.rows {
                of.push(row.text(0)?);
            }
        }
        // Workers that were active since they were last saved.
        let seen = self
            .deferred_state()
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let seen = seen.iter().filter(|(_, last)| **last > forgotten);
        names.workers.extend(seen.map(|(name, _)| name.clone()));
        Ok(names)
    }
}

const WORKERS: &str = "
SELECT name FROM workers WHERE protocol = 'qless' AND name >= $1 AND last_seen > $3 ORDER BY name LIMIT $2 + 0";

const TAGS: &str = "
SELECT t.tag FROM (SELECT tag, n FROM tag_counts WHERE tag >= $1 ORDER BY tag, server LIMIT $2 + 0) AS t
GROUP BY t.tag HAVING sum(t.n) > 0";

const FAILURES: &str = "
SELECT c.failure_group FROM (SELECT failure_group, n FROM failure_counts WHERE failure_group >= $1
    ORDER BY failure_group, queue, server LIMIT $2 + 0) AS c
GROUP BY c.failure_group HAVING sum(c.n) > 0";
