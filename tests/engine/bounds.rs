//! Lists that clients can make long.

use futures::StreamExt;
use futures::stream;
use switchyard::engine::{Claim, Error, QueueKey};

/// As many at a time as go in one group.
const AT_ONCE: usize = 500;

#[tokio::test]
async fn options_have_a_limit_and_those_that_are_set_can_change() {
    let engine = super::open(false).await;
    let set = |n: usize| {
        let engine = engine.clone();
        async move {
            let option = format!("option-{n}");
            engine.configure(&option, Some("1".to_owned()), None).await
        }
    };
    let done: Vec<_> = stream::iter((0..10_000).map(set))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    assert!(done.iter().all(Result::is_ok));
    let refused = set(10_000).await;
    assert!(
        matches!(refused, Err(Error::TooMany { max: 10_000, .. })),
        "{refused:?}"
    );
    set(17).await.unwrap();
    engine.configure("option-17", None, None).await.unwrap();
    set(10_000).await.unwrap();
}

#[tokio::test]
async fn a_list_of_workers_has_those_seen_last() {
    let engine = super::open(false).await;
    let queue = QueueKey::qless("work");
    let ask = |name: String| engine.claim(Claim::of(queue.clone(), name, 1), None);
    let names = (0..10_050).map(|n| format!("worker-{n}"));
    let done: Vec<_> = stream::iter(names.map(ask))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    assert!(done.iter().all(Result::is_ok));
    ask("the-last".to_owned()).await.unwrap();
    let listed = engine.workers(None).await.unwrap();
    assert_eq!(
        (listed.len(), listed[0].name.as_str()),
        (10_000, "the-last")
    );
}
