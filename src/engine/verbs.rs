//! The verbs: functions that change data. Each returns after the commit.
//!
//! A verb on several items handles each separately, in order, and returns a result for each.

pub mod admin;
pub mod batches;
pub mod claim;
pub mod jobq;
pub mod leases;
pub mod lifecycle;
pub mod lmstfy;
pub mod qless;
pub mod queue_limit;
pub mod relay;
pub mod reschedule;

use std::sync::Arc;

use crate::engine::verbs::batches::{EACH_MAX, next_needs};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::{Needs, Oldest, UnitOfWork};

/// One result per item.
type ItemResults<T> = Result<Vec<Result<T>>>;

impl Engine {
    /// Applies a verb to each item, in order. Many items are split over several transactions, so that other requests
    /// run between them; items whose jobs are too large for one transaction are split further. If a later transaction
    /// fails, its items and all remaining ones get its error.
    async fn apply_in_batches<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        items: Vec<I>,
        now: Option<Time>,
        need: impl Fn(&mut Needs, &I),
        mut verb: impl FnMut(&mut UnitOfWork, &I) -> Result<T> + Clone + Send + 'static,
    ) -> ItemResults<T> {
        let items = Arc::new(items);
        let each = move |work: &mut UnitOfWork, items: &[I]| {
            Ok(items.iter().map(|item| verb(work, item)).collect())
        };
        let (mut results, error) = self.in_batches(&items, now, need, each).await;
        match error {
            None => Ok(results),
            Some(error) if results.is_empty() => Err(error),
            Some(error) => {
                let left = results.len()..items.len();
                results.extend(left.map(|_| Err(error.clone())));
                Ok(results)
            }
        }
    }

    /// Like [`Engine::apply_in_batches`], but ends with the first error, so that no further ones are kept.
    async fn apply_until_error<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        items: Vec<I>,
        now: Option<Time>,
        need: impl Fn(&mut Needs, &I),
        mut verb: impl FnMut(&mut UnitOfWork, &I) -> Result<T> + Clone + Send + 'static,
    ) -> Result<Vec<T>> {
        let each = move |work: &mut UnitOfWork, items: &[I]| {
            items.iter().map(|item| verb(work, item)).collect()
        };
        let (results, error) = self.in_batches(&Arc::new(items), now, need, each).await;
        error.map_or(Ok(results), Err)
    }

    /// Runs `verbs` on the items, split over transactions. It returns one result per item. Also returns the error that
    /// ended it before all items were done.
    async fn in_batches<I: Send + Sync + 'static, R: Send + 'static>(
        &self,
        items: &Arc<Vec<I>>,
        now: Option<Time>,
        need: impl Fn(&mut Needs, &I),
        verbs: impl FnMut(&mut UnitOfWork, &[I]) -> Result<Vec<R>> + Clone + Send + 'static,
    ) -> (Vec<R>, Option<Error>) {
        let mut results = Vec::with_capacity(items.len());
        let mut max = EACH_MAX;
        while results.len() < items.len() {
            let (needs, range) = next_needs(items, results.len(), max, &need);
            let count = range.len();
            let (some, mut verbs) = (Arc::clone(items), verbs.clone());
            let verbs = move |work: &mut UnitOfWork| {
                verbs(work, some.get(range.clone()).unwrap_or_default())
            };
            match self.write(needs, now, count, verbs).await {
                Ok(some) => results.extend(some),
                Err(Error::Oversized) if count > 1 => max = count / 2,
                Err(error) => return (results, Some(error)),
            }
        }
        (results, None)
    }
}

fn needs_of_jobs<'a>(keys: impl IntoIterator<Item = &'a JobKey>) -> Needs {
    Needs {
        jobs: keys.into_iter().cloned().collect(),
        ..Needs::default()
    }
}

fn needs_of_oldest(oldest: Oldest) -> Needs {
    Needs {
        oldest: Some(oldest),
        ..Needs::default()
    }
}
