//! Tags and dependencies are rows of their own, so transactions are bounded by their number too: one below, at, and one
//! above each limit.

use super::limits::distinct_times;
use super::*;
use switchyard::engine::{JobAction, Recur};

/// The number of transactions in which the events since `before` were published.
async fn transactions_since(engine: &Engine, before: i64) -> usize {
    let (events, _) = engine.events(before, 1_000, Some("log")).await.unwrap();
    distinct_times(events.iter().map(|event| &event.when))
}

fn tagged(id: &str, tags: usize) -> Put {
    Put {
        tags: Some((0..tags).map(|n| n.to_string()).collect()),
        ..new(id)
    }
}

/// Each tag is a row to delete.
#[tokio::test]
async fn a_transaction_removes_2048_tags_of_several_jobs() {
    let engine = open(false).await;
    for (tags, expected) in [(2_047, 1), (2_048, 1), (2_049, 2)] {
        let put = async || {
            add(&engine, &q(), vec![tagged("a", 1_000)]).await;
            add(&engine, &q(), vec![tagged("b", tags - 1_000)]).await;
            engine.last_event().await.unwrap()
        };
        let before = put().await;
        add(&engine, &q(), vec![tagged("a", 0), tagged("b", 0)]).await;
        assert_eq!(transactions_since(&engine, before).await, expected, "put");
        let before = put().await;
        let both = vec![JobKey::qless("a"), JobKey::qless("b")];
        engine.cancel(both, None).await.unwrap();
        assert_eq!(
            transactions_since(&engine, before).await,
            expected,
            "{tags}"
        );
    }
    assert_eq!(engine.check(None).await.unwrap(), []);
}

#[tokio::test]
async fn a_transaction_of_an_operation_removes_2048_tags_of_several_jobs() {
    let engine = open(false).await;
    for (tags, expected) in [(2_047, 1), (2_048, 1), (2_049, 2)] {
        add(&engine, &q(), vec![tagged("a", 1_000)]).await;
        add(&engine, &q(), vec![tagged("b", tags - 1_000)]).await;
        let before = engine.last_event().await.unwrap();
        operations::run(&engine, JobAction::Cancel, "state:waiting").await;
        assert_eq!(
            transactions_since(&engine, before).await,
            expected,
            "{tags}"
        );
    }
    assert_eq!(engine.check(None).await.unwrap(), []);
}

/// Each dependent is a row to change.
#[tokio::test]
async fn a_transaction_releases_2048_dependents_of_several_jobs() {
    let engine = open(false).await;
    for (dependents, expected) in [(2_047, 1), (2_048, 1), (2_049, 3)] {
        let (from, to) = (
            QueueKey::qless(format!("{dependents} from")),
            QueueKey::qless(format!("{dependents} to")),
        );
        let root = |n: usize| format!("{dependents}-{n}");
        add(&engine, &from, (0..21).map(|n| new(&root(n))).collect()).await;
        let leaf = |n: usize| Put {
            depends: Some(vec![root(n / 100)]),
            ..new(&format!("{dependents}-leaf-{n}"))
        };
        add(&engine, &to, (0..dependents).map(leaf).collect()).await;
        let roots = engine.claim(Claim::of(from, "w", 21), None).await.unwrap();
        let roots = roots.into_iter();
        let done = roots.map(|job| (job.key, "1".to_owned(), None)).collect();
        let done = engine.complete(done, holder("w"), None).await.unwrap();
        assert!(done.iter().all(Result::is_ok));
        let page = OffsetPage {
            limit: 3_000,
            ..PAGE
        };
        let released = engine.jobs(EffectiveState::Waiting, Some(&to), page, None);
        let released = released.await.unwrap();
        let times = released.iter().map(|job| &job.ready_at);
        assert_eq!(
            (released.len(), distinct_times(times)),
            (dependents, expected)
        );
    }
    assert_eq!(engine.check(None).await.unwrap(), []);
}

#[tokio::test]
async fn a_transaction_creates_children_with_16_kib_of_tags() {
    let engine = open(false).await;
    for (bytes, expected) in [(8_191, 1), (8_192, 2), (8_193, 2)] {
        let queue = QueueKey::qless(bytes.to_string());
        let recurring = Recur {
            id: Some(bytes.to_string()),
            body: "1".to_owned(),
            interval_s: 1e-6,
            // With its quotes, it has as many bytes as stated.
            tags: vec!["x".repeat(bytes - 2)],
            ..Recur::default()
        };
        let made = engine.recur(queue.clone(), vec![recurring], None).await;
        made.unwrap().into_iter().for_each(|id| drop(id.unwrap()));
        let claim = Claim::of(queue, "w", 3);
        let claimed = engine.claim(claim, None).await.unwrap();
        let leases = claimed.iter().filter_map(|job| job.lease.as_ref());
        let times: Vec<_> = leases.map(|lease| &lease.until).collect();
        assert_eq!(
            (times.len(), distinct_times(times)),
            (3, expected),
            "{bytes} bytes"
        );
    }
}
