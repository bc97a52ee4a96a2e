//! Records by label.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::page::{Direction, PageOf, PageStart, PageStatements, Position, Range};
use crate::engine::model::queue::Queue;
use crate::engine::model::record::Record;
use crate::engine::queries::job_pages::time_args;
use crate::engine::queries::record_batches::{record, records};
use crate::store::{Arg, Row, Statement};

/// The most labels that are listed; the rarest are left out.
const LABELS_MAX: i64 = 200;

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
    /// The number of records per label, most frequent label first.
    ///
    /// # Errors
    /// [`NoSuchQueue`](crate::engine::Error).
    pub async fn labels(&self, queue: &Queue) -> Result<Vec<LabelCounts>> {
        let args = [
            self.existing_queue_id(queue).await?.into(),
            LABELS_MAX.into(),
        ];
        let rows = self.readers().rows(Statement::new(LABELS, args)).await?;
        let labeled = |row: &Row| {
            Ok(LabelCounts {
                label: row.text_or_null(0)?,
                count: row.int(1)?,
            })
        };
        rows.iter().map(labeled).collect()
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
        let (list, count) = match which {
            LabelFilter::All => (&ALL, COUNT_ALL),
            LabelFilter::Labeled(_) => (&LABELED, COUNT_LABELED),
            LabelFilter::Others => (&OTHERS, COUNT_OTHERS),
        };
        let id = self.existing_queue_id(queue).await?;
        let mut count = Statement::new(count, [id.into()]);
        let mut of: Vec<Arg> = vec![id.into()];
        if let LabelFilter::Labeled(label) = which {
            count = count.with(label.as_str());
            of.push(label.as_str().into());
        }
        let args = |range: Range| time_args(range, &of);
        let parse = |row: &Row| Ok(record(row)?);
        let position = |record: &Record| Position::at(record.modified.0, record.seq);
        let page = self.page_of(list, place, limit, args, parse, position);
        let page = page.await?;
        let rows = self.readers().rows(count).await?;
        let count = rows.first().map_or(Ok(0), |row| row.int(0))?;
        Ok((page, count))
    }
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

const COUNT_ALL: &str = "SELECT count(*) FROM jobs WHERE queue = $1 AND state = {record}";
const COUNT_LABELED: &str =
    "SELECT count(*) FROM jobs WHERE queue = $1 AND state = {record} AND label = $2";
const COUNT_OTHERS: &str =
    "SELECT count(*) FROM jobs WHERE queue = $1 AND state = {record} AND label IS NULL";
