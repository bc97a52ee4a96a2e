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
        verb: impl FnMut(&mut UnitOfWork, &I) -> Result<T> + Clone + Send + 'static,
    ) -> ItemResults<T> {
        let mut results = Vec::with_capacity(items.len());
        let items = Arc::new(items);
        let (mut done, mut max) = (0, EACH_MAX);
        while done < items.len() {
            let (needs, range) = next_needs(&items, done, max, &need);
            let (count, next) = (range.len(), range.end);
            let (some, mut verb) = (Arc::clone(&items), verb.clone());
            let verbs = move |work: &mut UnitOfWork| {
                let some = some.get(range.clone()).unwrap_or_default().iter();
                Ok(some.map(|item| verb(work, item)).collect::<Vec<_>>())
            };
            match self.write(needs, now, count, verbs).await {
                Ok(some) => {
                    results.extend(some);
                    done = next;
                }
                Err(Error::Oversized) if count > 1 => max = count / 2,
                Err(error) if results.is_empty() => return Err(error),
                Err(error) => {
                    results.extend((done..items.len()).map(|_| Err(error.clone())));
                    done = items.len();
                }
            }
        }
        Ok(results)
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
