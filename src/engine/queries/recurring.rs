//! Recurring jobs.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::QueueKey;
use crate::engine::model::page::Page;
use crate::engine::model::recurring::{ALL, IN, LOAD, Recurring, recurring};
use crate::store::Statement;

impl Engine {
    /// The recurring job; `None` if it does not exist.
    pub async fn recurring(&self, id: &str) -> Result<Option<Recurring>> {
        self.refresh_cache().await?;
        let statement = Statement::of_rows(LOAD, &[id]);
        let rows = self.readers().rows(statement).await?;
        rows.first().map(|row| Ok(recurring(row)?.0)).transpose()
    }

    /// The recurring jobs of one queue, or of all, by the time their next child is due.
    pub async fn recurring_in(
        &self,
        queue: Option<&QueueKey>,
        page: Page,
    ) -> Result<Vec<Recurring>> {
        self.refresh_cache().await?;
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        let statement = match queue {
            None => Statement::new(ALL, [limit.into(), offset.into()]),
            Some(key) => match self.known_queues().get(key) {
                None => return Ok(Vec::new()),
                Some(queue) => Statement::new(IN, [limit.into(), offset.into(), queue.id.into()]),
            },
        };
        let rows = self.readers().rows(statement).await?;
        rows.iter().map(|row| Ok(recurring(row)?.0)).collect()
    }
}
