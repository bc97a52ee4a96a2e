//! Bulk operations.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::page::{PageOf, PageStart, Position, Range};
use crate::engine::operations::rows;
use crate::engine::operations::{Operation, Skip};
use crate::store::{Row, Statement};

impl Engine {
    /// The operation with this ID.
    pub async fn operation(&self, id: i64) -> Result<Option<Operation>> {
        let rows = self.readers().rows(rows::load(&[id])).await?;
        let first = rows.first().map(rows::operation).transpose()?;
        Ok(first.map(|(operation, _)| operation))
    }

    /// The number of operations, and a page of them, newest first.
    pub async fn operations(
        &self,
        place: PageStart,
        limit: usize,
    ) -> Result<(i64, PageOf<Operation>)> {
        let total = self.readers().rows(Statement::new(rows::COUNT, [])).await?;
        let total = total.first().map_or(Ok(0), |row| row.int(0))?;
        let args = |range: Range| vec![range.from.time.into(), range.to.time.into()];
        let parse = |row: &Row| Ok(rows::operation(row)?.0);
        let position = |operation: &Operation| Position::at(operation.id, 0);
        let page = self.page_of(&rows::NEWEST, place, limit, args, parse, position);
        Ok((total, page.await?))
    }

    /// A page of the jobs that the operation skipped, in order. Only the first 1,000 are stored.
    pub async fn skips(&self, id: i64, place: PageStart, limit: usize) -> Result<PageOf<Skip>> {
        let args = |range: Range| vec![range.from.time.into(), range.to.time.into(), id.into()];
        let parse = |row: &Row| Ok((row.int(6)?, rows::skip(row)?));
        let position = |(number, _): &(i64, Skip)| Position::at(*number, 0);
        let page = self.page_of(&rows::SKIPS, place, limit, args, parse, position);
        Ok(page.await?.map(|(_, skip)| skip))
    }
}
