//! Limits of lists that clients can make long.

use futures::StreamExt;
use futures::stream;
use switchyard::engine::{Claim, Error, JobKey, Put, QueueKey};

/// The maximum number of items in one transaction.
const AT_ONCE: usize = 500;

#[tokio::test]
async fn the_number_of_options_is_limited_and_existing_options_can_change() {
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
async fn a_job_has_at_most_2000_tags() {
    let engine = super::open(false).await;
    let queue = QueueKey::qless("work");
    let tags =
        |range: std::ops::Range<usize>| range.map(|n| format!("tag-{n}")).collect::<Vec<_>>();
    let put = |id: &str, n| Put {
        id: Some(id.to_owned()),
        body: "1".to_owned(),
        tags: Some(tags(0..n)),
        ..Put::default()
    };
    let jobs = vec![put("less", 1_999), put("all", 2_000), put("more", 2_001)];
    let done = engine.put(queue, jobs, "w".to_owned(), None).await.unwrap();
    let is_refused: Vec<_> = done.iter().map(Result::is_err).collect();
    assert_eq!(is_refused, [false, false, true]);
    let tag = async |id: &str, range| {
        let done = engine
            .tag(vec![(JobKey::qless(id), tags(range))], None)
            .await;
        done.unwrap().remove(0)
    };
    // A tag that the job already has does not count again.
    assert_eq!(tag("less", 0..2_000).await.unwrap().len(), 2_000);
    assert!(matches!(
        tag("all", 2_000..2_001).await,
        Err(Error::TooMany { max: 2_000, .. })
    ));
}

#[tokio::test]
async fn the_worker_list_is_limited_to_the_last_seen() {
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
