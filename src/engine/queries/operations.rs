//! Bulk operations.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::page::Page;
use crate::engine::operations::rows;
use crate::engine::operations::{Operation, Skip};
use crate::store::Statement;

impl Engine {
    /// The operation with this ID.
    pub async fn operation(&self, id: i64) -> Result<Option<Operation>> {
        let rows = self.readers().rows(rows::load(&[id])).await?;
        let first = rows.first().map(rows::operation).transpose()?;
        Ok(first.map(|(operation, _)| operation))
    }

    /// The number of operations, and a page of them, newest first.
    pub async fn operations(&self, page: Page) -> Result<(i64, Vec<Operation>)> {
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        let batch = vec![
            Statement::new(rows::COUNT, []),
            Statement::new(rows::NEWEST, [limit.into(), offset.into()]),
        ];
        let mut answers = self.readers().read(batch).await?.into_iter();
        let mut next = || answers.next().unwrap_or_default().rows;
        let total = next().first().map_or(Ok(0), |row| row.int(0))?;
        let found = next();
        let found = found.iter().map(|row| Ok(rows::operation(row)?.0));
        Ok((total, found.collect::<Result<_>>()?))
    }

    /// The jobs that the operation skipped, in order. Only the first 1,000 are stored.
    pub async fn skips(&self, id: i64, page: Page) -> Result<Vec<Skip>> {
        let args = [id, page.limit as i64, page.offset as i64];
        let skips = Statement::new(rows::SKIPS, args.map(Into::into));
        let rows = self.readers().rows(skips).await?;
        rows.iter().map(|row| Ok(rows::skip(row)?)).collect()
    }
}
