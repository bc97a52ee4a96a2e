//! Records by label.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::page::Page;
use crate::engine::model::queue::Queue;
use crate::engine::model::record::Record;
use crate::engine::queries::record_batches::{found, records};
use crate::store::{Statement, StatementResult, StoreError};

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
    Labelled(String),
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
        let labelled = |row: &crate::store::Row| {
            Ok(LabelCounts {
                label: row.text_or_null(0)?,
                count: row.int(1)?,
            })
        };
        rows.iter().map(labelled).collect()
    }

    /// A page of records with shortened texts, least recently modified first, and their total number.
    ///
    /// # Errors
    /// [`NoSuchQueue`](crate::engine::Error).
    pub async fn records_of(
        &self,
        queue: &Queue,
        which: &LabelFilter,
        page: Page,
    ) -> Result<(Vec<Record>, i64)> {
        let (list, count) = match which {
            LabelFilter::All => (ALL, COUNT_ALL),
            LabelFilter::Labelled(_) => (LABELLED, COUNT_LABELLED),
            LabelFilter::Others => (OTHERS, COUNT_OTHERS),
        };
        let id = self.existing_queue_id(queue).await?;
        let page = [(page.limit as i64).into(), (page.offset as i64).into()];
        let mut list = Statement::new(list, [id.into()].into_iter().chain(page));
        let mut count = Statement::new(count, [id.into()]);
        if let LabelFilter::Labelled(label) = which {
            (list, count) = (list.with(label.as_str()), count.with(label.as_str()));
        }
        let mut answers = self.readers().read(vec![list, count]).await?.into_iter();
        let mut rows = || answers.next().unwrap_or_else(StatementResult::default).rows;
        let records: Result<_, StoreError> =
            rows().iter().map(|row| Ok(found(row)?.record)).collect();
        let count = rows().first().map_or(Ok(0), |row| row.int(0))?;
        Ok((records?, count))
    }
}

const LABELS: &str = "
SELECT label, count(*) FROM jobs WHERE queue = $1 AND state = {record}
GROUP BY label ORDER BY count(*) DESC, label LIMIT $2 + 0";

const ALL: &str = records!(brief: "queue = $1 ORDER BY updated_at, seq LIMIT $2 + 0 OFFSET $3 + 0");
const LABELLED: &str = records!(brief: "queue = $1 AND label = $4 ORDER BY updated_at, seq LIMIT $2 + 0 OFFSET $3 + 0");
const OTHERS: &str = records!(brief: "queue = $1 AND label IS NULL ORDER BY updated_at, seq LIMIT $2 + 0 OFFSET $3 + 0");

const COUNT_ALL: &str = "SELECT count(*) FROM jobs WHERE queue = $1 AND state = {record}";
const COUNT_LABELLED: &str =
    "SELECT count(*) FROM jobs WHERE queue = $1 AND state = {record} AND label = $2";
const COUNT_OTHERS: &str =
    "SELECT count(*) FROM jobs WHERE queue = $1 AND state = {record} AND label IS NULL";
