//! Limits of lists that clients can make long.

use futures::StreamExt;
use futures::stream;
use switchyard::engine::{Claim, Error, JobKey, OffsetPage, PageStart, Put, QueueKey, Recur};

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

/// Earlier versions stored classes of any length, as the engine still does. On Postgres, jobs with them never existed,
/// because the index on the class has a limit of its own.
#[tokio::test]
async fn a_long_class_counts_towards_a_response_and_lists_show_its_beginning() {
    const CLASS_BYTES: usize = 4 << 20;
    const JOBS: usize = 17;
    let engine = super::open(false).await;
    let is_postgres = super::database::postgres().is_some();
    let queue = QueueKey::qless("work");
    let (mut keys, klass) = (Vec::new(), Some("c".repeat(CLASS_BYTES)));
    for n in 0..JOBS {
        let put = Put {
            id: Some(format!("j{n}")),
            body: "1".to_owned(),
            klass: klass.clone(),
            ..Put::default()
        };
        if !is_postgres {
            let done = engine.put(queue.clone(), vec![put], "w".to_owned(), None);
            done.await.unwrap().remove(0).unwrap();
            keys.push(JobKey::qless(format!("j{n}")));
        }
        let recur = Recur {
            body: "1".to_owned(),
            klass: klass.clone(),
            interval_s: 60.0,
            ..Recur::default()
        };
        let done = engine.recur(queue.clone(), vec![recur], None).await;
        done.unwrap().remove(0).unwrap();
    }
    let page = OffsetPage {
        limit: JOBS,
        offset: 0,
    };
    let whole = engine.jobs_by_key(&keys).await;
    assert_eq!(matches!(whole, Err(Error::ResponseTooLarge)), !is_postgres);
    let whole = engine.recurring_in(&queue, page).await;
    assert!(matches!(whole, Err(Error::ResponseTooLarge)));
    assert!(engine.jobs_by_key(&keys[keys.len() / 2..]).await.is_ok());
    let listed = engine.short_jobs_by_key(&keys).await.unwrap();
    let classes = listed.into_iter().flatten().map(|job| job.klass);
    let listed = engine.recurring_page(Some(&queue), PageStart::First, JOBS);
    let listed = listed.await.unwrap().rows;
    let classes = classes.chain(listed.into_iter().map(|it| it.klass));
    let lengths: Vec<_> = classes.flatten().map(|class| class.len()).collect();
    assert_eq!(lengths, vec![1_024; keys.len() + JOBS]);
}
