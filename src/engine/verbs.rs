//! The verbs: operations that change data. Each returns after the commit.
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
pub mod relay;

use crate::engine::verbs::batches::EACH_MAX;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::{Needs, Oldest, UnitOfWork};

/// One result per item.
type Each<T> = Result<Vec<Result<T>>>;

impl Engine {
    /// Applies a verb to each item, in order. Many items are split over several transactions, so that other requests
    /// run between them. If a later transaction fails, its items and all remaining ones get its error.
    async fn each<I: Send + 'static, T: Send + 'static>(
        &self,
        items: Vec<I>,
        now: Option<Time>,
        need: impl Fn(&mut Needs, &I),
        verb: impl FnMut(&mut UnitOfWork, &I) -> Result<T> + Clone + Send + 'static,
    ) -> Each<T> {
        let mut results = Vec::with_capacity(items.len());
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            let (mut needs, mut batch) = (Needs::default(), Vec::new());
            while let Some(item) =
                items.next_if(|_| batch.len() < EACH_MAX && batches::has_room(&needs))
            {
                need(&mut needs, &item);
                batch.push(item);
            }
            let (count, mut verb) = (batch.len(), verb.clone());
            let verbs = move |work: &mut UnitOfWork| {
                let each = batch.iter().map(|item| verb(work, item));
                Ok(each.collect::<Vec<_>>())
            };
            match self.write(needs, now, count, verbs).await {
                Ok(done) => results.extend(done),
                Err(error) if results.is_empty() => return Err(error),
                Err(error) => {
                    let left = count + items.by_ref().count();
                    results.extend((0..left).map(|_| Err(error.clone())));
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
