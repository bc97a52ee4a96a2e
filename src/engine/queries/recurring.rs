//! Recurring jobs.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::{QueueKey, can_look_up};
use crate::engine::model::page::{OffsetPage, PageOf, PageStart, Position, Range};
use crate::engine::model::recurring::{
    ALL_PAGES, IN_QUEUE, IN_QUEUE_PAGES, LOAD, Recurring, recurring,
};
use crate::engine::queries::job_lists::{reserve_for_jobs, size};
use crate::engine::queries::job_pages::time_args;
use crate::memory::holding;
use crate::store::{Arg, Row, Statement, StoreError};

impl Engine {
    /// The recurring job; `None` if it does not exist.
    pub async fn recurring(&self, id: &str) -> Result<Option<Recurring>> {
        if !can_look_up(id) {
            return Ok(None);
        }
        self.refresh_cache().await?;
        let statement = Statement::of_rows(LOAD, &[id]);
        let rows = self.readers().rows(statement).await?;
        rows.first().map(|row| Ok(recurring(row)?.0)).transpose()
    }

    /// The recurring jobs of a queue by the time their next child is due.
    ///
    /// # Errors
    /// [`ResponseTooLarge`, `Busy`](crate::engine::Error).
    pub async fn recurring_in(&self, queue: &QueueKey, page: OffsetPage) -> Result<Vec<Recurring>> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(Vec::new());
        };
        let statement = |sql| Statement::new(sql, args(page)).with(queue.id);
        let read = async {
            let found = self.readers().rows(statement(IN_QUEUE.bytes)).await?;
            let bytes = size(found.first())?;
            reserve_for_jobs(bytes).await?;
            let whole = statement(IN_QUEUE.whole).measured(bytes);
            all(&self.readers().rows(whole).await?)
        };
        holding(self.deep_page_permit(page).await?, read).await
    }

    /// The IDs of a queue's recurring jobs, by the time their next child is due.
    pub async fn recurring_ids(&self, queue: &QueueKey, page: OffsetPage) -> Result<Vec<String>> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(Vec::new());
        };
        let ids = Statement::new(IN_QUEUE.ids, args(page)).with(queue.id);
        let ids = holding(self.deep_page_permit(page).await?, self.readers().rows(ids));
        let ids = ids.await?;
        let ids = ids.iter().map(|row| row.text(0));
        Ok(ids.collect::<Result<_, StoreError>>()?)
    }

    /// A page by key of the recurring jobs of a queue, or of all, by the time their next child is due. Without bodies,
    /// and without tags of more than 16 KiB together.
    pub async fn recurring_page(
        &self,
        queue: Option<&QueueKey>,
        place: PageStart,
        limit: usize,
    ) -> Result<PageOf<Recurring>> {
        self.refresh_cache().await?;
        let (list, of) = match queue {
            None => (&ALL_PAGES, Vec::new()),
            Some(key) => match self.known_queues().get(key) {
                None => return Ok(PageOf::default()),
                Some(queue) => (&IN_QUEUE_PAGES, vec![queue.id.into()]),
            },
        };
        let args = |range: Range| time_args(range, &of);
        let parse = |row: &Row| Ok(recurring(row)?.0);
        let position = |found: &Recurring| Position::at(found.next_at.0, found.seq);
        self.page_of(list, place, limit, args, parse, position)
            .await
    }
}

fn args(page: OffsetPage) -> [Arg; 2] {
    [(page.limit as i64).into(), (page.offset as i64).into()]
}

fn all(rows: &[Row]) -> Result<Vec<Recurring>> {
    rows.iter().map(|row| Ok(recurring(row)?.0)).collect()
}
