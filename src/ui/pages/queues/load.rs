//! Loads the list of queues.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::queue::QueueRow;
use crate::ui::present::{listed_queues, queue_row, without_forgotten};

pub async fn load_queues(engine: &Engine) -> Result<Vec<QueueRow>> {
    Ok(without_forgotten(
        listed_queues(engine).await?.iter().map(queue_row),
    ))
}

/// All queues, except forgotten ones that are idle.
#[server]
pub async fn queues() -> Result<Vec<QueueRow>, PageError> {
    read(Role::Viewer, async |context| {
        load_queues(&context.engine).await
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Error, QueueKey, engine_without_tasks};
    use crate::memory::{of_request, reserve_page};
    use crate::ui::pages::dead_letters::load::load_dead;
    use crate::ui::pages::namespaces::load::{load_namespace, load_namespaces};
    use crate::ui::pages::overview::load::load_overview;
    use crate::ui::pages::recurring::load::load_recurring_jobs;
    use crate::ui::pages::scheduled::load::load_scheduled;
    use crate::ui::present::total;

    #[tokio::test]
    async fn pages_with_thousands_of_queues_reserve_their_memory_before_they_are_built() {
        let engine = engine_without_tasks().await;
        let pauses = (0..2_800).map(|n| {
            let queue = QueueKey::qless(n.to_string());
            engine.pause(queue, true, None)
        });
        futures::future::try_join_all(pauses).await.unwrap();
        let page = Default::default();
        let errors = async |engine: &Engine| {
            let pages = async {
                [
                    load_queues(engine).await.err(),
                    load_overview(engine).await.err(),
                    load_scheduled(engine, &page).await.err(),
                    load_dead(engine, "", "", 0).await.err(),
                    load_namespaces(engine, true).await.err(),
                    load_namespace(engine, "ns", true).await.err(),
                    load_recurring_jobs(engine, None, &page).await.err(),
                ]
            };
            of_request(Box::pin(pages)).await.0
        };
        let others = of_request(async {
            reserve_page(usize::MAX, false).await.unwrap();
            let guest = engine.for_guests();
            let errors = tokio::join!(errors(&engine), errors(&guest));
            // Each page shows the counts of the whole server.
            (errors, total(&engine).await.err())
        });
        let (of_users, of_guests) = ([const { Some(Error::Busy) }; 7], [const { None }; 7]);
        assert_eq!(others.await.0, ((of_users, of_guests.clone()), None));
        assert_eq!(errors(&engine).await, of_guests);
        engine.close().await;
    }
}
