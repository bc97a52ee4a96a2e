//! Reads the completions and failures of the busiest queues, for a chart of each.

use std::collections::HashMap;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::QueueId;
use crate::engine::queries::series::ALL_QUEUES_TIME_MAX;
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::unit_of_work::time_series::HOUR;
use crate::store::{Statement, StoreError};

/// Completions and failures of a queue in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub completed: i64,
    pub failed: i64,
}

impl Engine {
    /// The queues with the most completions and failures, at most `limit`, and their numbers in each span. The spans
    /// are as for [`series`](Engine::series).
    pub async fn busiest(
        &self,
        from: i64,
        width: i64,
        count: usize,
        limit: i64,
    ) -> Result<Vec<(QueueId, Vec<Activity>)>> {
        self.store_deferred().await;
        let to = from.saturating_add(width.saturating_mul(count as i64));
        let has_hours = width % HOUR == 0 && from.rem_euclid(HOUR) == 0;
        let (first_hour, last_hour) = match has_hours {
            true => (from.div_euclid(HOUR), to.div_euclid(HOUR)),
            false => (0, 0),
        };
        let busiest = [from, to, first_hour, last_hour, limit].map(Into::into);
        let busiest = vec![Statement::new(BUSIEST, busiest)];
        let found = self
            .readers()
            .read_within(ALL_QUEUES_TIME_MAX, busiest)
            .await?;
        let rows = found.iter().flat_map(|answer| &answer.rows);
        let ids = rows.map(|row| Ok((row.int(0)?,)));
        let ids: Vec<(QueueId,)> = ids.collect::<Result<_, StoreError>>()?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let statement = |kind: Kind, from: i64, to: i64, width: i64| {
            let statement = Statement::of_rows(ACTIVITY, &ids).with(kind as i64);
            statement.with(from).with(to).with(width)
        };
        let mut batch = vec![statement(Kind::Minute, from, to, width)];
        if has_hours {
            batch.push(statement(Kind::Hour, first_hour, last_hour, width / HOUR));
        }
        let mut found: HashMap<QueueId, Vec<Activity>> = HashMap::new();
        let answers = self
            .readers()
            .read_within(ALL_QUEUES_TIME_MAX, batch)
            .await?;
        for row in answers.iter().flat_map(|answer| &answer.rows) {
            let spans = found.entry(row.int(0)?);
            let spans = spans.or_insert_with(|| vec![Activity::default(); count]);
            let span = usize::try_from(row.int(1)?).ok();
            if let Some(span) = span.and_then(|span| spans.get_mut(span)) {
                span.completed += row.int(2)?;
                span.failed += row.int(3)?;
            }
        }
        let spans = |(id,): (QueueId,)| Some((id, found.remove(&id)?));
        Ok(ids.into_iter().filter_map(spans).collect())
    }
}

/// The condition of a slot `t.slot` with completions or failures.
macro_rules! is_activity {
    () => {
        "(t.slot = {series_failed} OR t.slot >= {series_runs}
            OR (t.slot >= {series_former_runs} AND t.slot < {series_waits}))"
    };
}

// A subquery per queue: grouping the rows of all queues would sort them.
const BUSIEST: &str = concat!(
    "
SELECT s.id, s.n FROM (
    SELECT q.id, CAST(coalesce((SELECT sum(t.n) FROM tallies AS t
            WHERE t.kind = {kind_minute} AND t.queue = q.id AND t.day >= $1 AND t.day < $2 AND ",
    is_activity!(),
    "), 0) + coalesce((SELECT sum(t.n) FROM tallies AS t
            WHERE t.kind = {kind_hour} AND t.queue = q.id AND t.day >= $3 AND t.day < $4 AND ",
    is_activity!(),
    "), 0) AS BIGINT) AS n
    FROM queues AS q) AS s
WHERE s.n > 0 ORDER BY 2 DESC, 1 LIMIT $5 + 0"
);

const ACTIVITY: &str = concat!(
    "
SELECT t.queue, (t.day - $3) / $5,
    CAST(sum(CASE WHEN t.slot = {series_failed} THEN 0 ELSE t.n END) AS BIGINT),
    CAST(sum(CASE WHEN t.slot = {series_failed} THEN t.n ELSE 0 END) AS BIGINT)
FROM tallies AS t
WHERE t.kind = $2 AND t.queue IN (SELECT int(0) FROM rows($1)) AND t.day >= $3 AND t.day < $4 AND ",
    is_activity!(),
    " GROUP BY 1, 2"
);
