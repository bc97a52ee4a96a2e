//! Records by label.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::QueueId;
use crate::engine::model::page::{Direction, PageOf, PageStart, PageStatements, Position, Range};
use crate::engine::model::queue::Queue;
use crate::engine::model::record::Record;
use crate::engine::queries::job_pages::time_args;
use crate::engine::queries::kept_reads::Keeping;
use crate::engine::queries::record_batches::{record, records};
use crate::store::{Arg, Row, Statement};

/// The most labels that are listed; the rarest are left out.
const LABELS_MAX: i64 = 200;

/// The most records that are counted by label for each request.
const COUNTED_MAX: i64 = 50_000;

/// Time limit for counting the labels of a large queue, and for waiting until those of others are counted.
const LABELS_TIME_MAX: Duration = Duration::from_secs(4);

const KEEPING: Keeping = Keeping {
    above: Duration::ZERO,
    least: Duration::from_secs(5),
    most: Duration::from_secs(30),
    wait_max: LABELS_TIME_MAX,
};

/// The number of records with a label; those without one are counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelCounts {
    /// See [`crate::query::label`].
    pub label: Option<String>,
    pub count: i64,
}

/// Selects records of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelFilter {
    All,
    Labeled(String),
    /// Records without a label.
    Others,
}

impl Engine {
    /// The number of records per label, most frequent label first. In a large queue, requests share the numbers, which
    /// can be some seconds old; there are none if counting takes longer than 4 s.
    ///
    /// # Errors
    /// [`NoSuchQueue`](crate::engine::Error).
    pub async fn labels(&self, queue: &Queue) -> Result<Arc<[LabelCounts]>> {
        let id = self.existing_queue_id(queue).await?;
        if self.count_records(queue).await? <= COUNTED_MAX {
            let rows = self.readers().rows(count_labels(id)).await?;
            return labels(&rows);
        }
        let read = move |engine: Engine| -> BoxFuture<'static, _> {
            Box::pin(async move { engine.count_labels_of_many(id).await })
        };
        self.keep(|reads| &reads.labels, &KEEPING, id, read).await
    }

    async fn count_labels_of_many(&self, queue: QueueId) -> Result<Arc<[LabelCounts]>> {
        let batch = vec![count_labels(queue)];
        let rows = match self.readers().read_within(LABELS_TIME_MAX, batch).await {
            Err(error) if error.is_too_slow() => Vec::new(),
            read => read?.pop().unwrap_or_default().rows,
        };
        labels(&rows)
    }

    async fn count_records(&self, queue: &Queue) -> Result<i64> {
        let counts = self.queue(&queue.key, None).await?;
        Ok(counts.map_or(0, |queue| queue.counts.records))
    }

    /// The number of records with this label, or without one.
    async fn count_of(&self, queue: &Queue, label: Option<&str>) -> Result<i64> {
        let id = self.existing_queue_id(queue).await?.into();
        let count = match label {
            Some(label) => Statement::new(COUNT_LABELED, [id, label.into()]),
            None => Statement::new(COUNT_OTHERS, [id]),
        };
        let rows = if self.count_records(queue).await? <= COUNTED_MAX {
            self.readers().rows(count).await?
        } else {
            let frequent = self.labels(queue).await?;
            if let Some(known) = frequent.iter().find(|it| it.label.as_deref() == label) {
                return Ok(known.count);
            }
            let reading = self.readers().read_within(LABELS_TIME_MAX, vec![count]);
            reading.await?.pop().unwrap_or_default().rows
        };
        rows.first().map_or(Ok(0), |row| Ok(row.int(0)?))
    }

    /// A page of records with shortened texts, least recently modified first, and their total number.
    ///
    /// # Errors
    /// [`NoSuchQueue`](crate::engine::Error).
    pub async fn records_of(
        &self,
        queue: &Queue,
        which: &LabelFilter,
        place: PageStart,
        limit: usize,
    ) -> Result<(PageOf<Record>, i64)> {
        let list = match which {
            LabelFilter::All => &ALL,
            LabelFilter::Labeled(_) => &LABELED,
            LabelFilter::Others => &OTHERS,
        };
        let id = self.existing_queue_id(queue).await?;
        let mut of: Vec<Arg> = vec![id.into()];
        if let LabelFilter::Labeled(label) = which {
            of.push(label.as_str().into());
        }
        let args = |range: Range| time_args(range, &of);
        let parse = |row: &Row| Ok(record(row)?);
        let position = |record: &Record| Position::at(record.modified.0, record.seq);
        let page = self.page_of(list, place, limit, args, parse, position);
        let page = page.await?;
        let count = match which {
            LabelFilter::All => self.count_records(queue).await?,
            LabelFilter::Labeled(label) => self.count_of(queue, Some(label)).await?,
            LabelFilter::Others => self.count_of(queue, None).await?,
        };
        Ok((page, count))
    }
}

fn count_labels(queue: QueueId) -> Statement {
    Statement::new(LABELS, [queue.into(), LABELS_MAX.into()])
}

fn labels(rows: &[Row]) -> Result<Arc<[LabelCounts]>> {
    let labeled = |row: &Row| {
        Ok(LabelCounts {
            label: row.text_or_null(0)?,
            count: row.int(1)?,
        })
    };
    rows.iter().map(labeled).collect()
}

const LABELS: &str = "
SELECT label, count(*) FROM jobs WHERE queue = $1 AND state = {record}
GROUP BY label ORDER BY count(*) DESC, label LIMIT $2 + 0";

const ALL: PageStatements = PageStatements {
    direction: Direction::Ascending,
    forward: records!(
        brief:
            "queue = $6 AND (updated_at, seq) > ($2, $3) AND (updated_at, seq) < ($4, $5)
             ORDER BY updated_at, seq LIMIT $1 + 0"
    ),
    backward: records!(
        brief:
            "queue = $6 AND (updated_at, seq) > ($2, $3) AND (updated_at, seq) < ($4, $5)
             ORDER BY updated_at DESC, seq DESC LIMIT $1 + 0"
    ),
};

const LABELED: PageStatements = PageStatements {
    direction: Direction::Ascending,
    forward: records!(
        brief:
            "queue = $6 AND label = $7 AND (updated_at, seq) > ($2, $3) AND (updated_at, seq) < ($4, $5)
             ORDER BY updated_at, seq LIMIT $1 + 0"
    ),
    backward: records!(
        brief:
            "queue = $6 AND label = $7 AND (updated_at, seq) > ($2, $3) AND (updated_at, seq) < ($4, $5)
             ORDER BY updated_at DESC, seq DESC LIMIT $1 + 0"
    ),
};

const OTHERS: PageStatements = PageStatements {
    direction: Direction::Ascending,
    forward: records!(
        brief:
            "queue = $6 AND label IS NULL AND (updated_at, seq) > ($2, $3) AND (updated_at, seq) < ($4, $5)
             ORDER BY updated_at, seq LIMIT $1 + 0"
    ),
    backward: records!(
        brief:
            "queue = $6 AND label IS NULL AND (updated_at, seq) > ($2, $3) AND (updated_at, seq) < ($4, $5)
             ORDER BY updated_at DESC, seq DESC LIMIT $1 + 0"
    ),
};

const COUNT_LABELED: &str =
    "SELECT count(*) FROM jobs WHERE queue = $1 AND state = {record} AND label = $2";
const COUNT_OTHERS: &str =
    "SELECT count(*) FROM jobs WHERE queue = $1 AND state = {record} AND label IS NULL";
