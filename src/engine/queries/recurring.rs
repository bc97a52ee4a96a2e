//! Recurring jobs.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::{QueueId, QueueKey, can_look_up};
use crate::engine::model::page::{OffsetPage, PageOf, PageStart, Position, Range};
use crate::engine::model::recurring::{
    ALL_PAGES, IN_QUEUE, IN_QUEUE_PAGES, LOAD, Recurring, recurring,
};
use crate::engine::queries::job_pages::time_args;
use crate::store::{Arg, Row, Statement};

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
        let args = args(page, queue.id);
        let found = self.page_of_rows(&IN_QUEUE, &args, page).await?;
        let found = found.rows.iter().map(|row| Ok(recurring(row)?.0));
        found.collect()
    }

    /// The IDs of a queue's recurring jobs, by the time their next child is due.
    pub async fn recurring_ids(&self, queue: &QueueKey, page: OffsetPage) -> Result<Vec<String>> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(Vec::new());
        };
        let args = args(page, queue.id).into();
        self.page_of_ids(&IN_QUEUE, args, page).await
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

fn args(page: OffsetPage, queue: QueueId) -> [Arg; 3] {
    let (limit, offset) = (page.limit as i64, page.offset as i64);
    [limit.into(), offset.into(), queue.into()]
}
