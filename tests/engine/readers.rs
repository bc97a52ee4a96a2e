//! Canceled reads.

use switchyard::engine::QueueKey;

use crate::{new, open};

#[tokio::test]
async fn a_canceled_read_does_not_affect_later_reads() {
    let engine = open(false).await;
    let queue = QueueKey::qless("q");
    for round in 0..60 {
        for patience in 0..8 {
            let give_up = async {
                for _ in 0..patience {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                () = give_up => {}
                _ = engine.queues(None) => {}
            }
        }
        let done = engine
            .put(
                queue.clone(),
                vec![new(&round.to_string())],
                "client".to_owned(),
                None,
            )
            .await;
        assert_eq!(done.unwrap(), [Ok(round.to_string())]);
        for _ in 0..6 {
            let queues = engine.queues(None).await.unwrap();
            assert_eq!(queues[0].counts.waiting, round + 1);
        }
    }
}
