//! Reads and changes of the caches that finish in any order, and the list of deleted queues.

use super::refresh::list_deleted;
use super::*;
use crate::engine::model::job::QueueKey;
use crate::engine::test_support::{read_number, run_sql, run_statements};
use crate::engine::{Put, engine_without_tasks as engine};
use crate::store::ENDLESS_STATEMENT;

/// Reads what has changed since the revision that the caches have now, or have when everything has been read.
async fn read(engine: &Engine, mut refresh: Refresh) -> Refresh {
    while let Some(statements) = refresh.next_statements() {
        let answers = engine.readers().read(statements).await.unwrap();
        refresh.take(answers).unwrap();
    }
    refresh
}

fn apply(engine: &Engine, refresh: Refresh) {
    let caches = &engine.0.caches;
    refresh.apply(caches, engine.subscriptions()).unwrap();
}

async fn set_heartbeat(engine: &Engine, seconds: &str) {
    let value = Some(seconds.to_owned());
    engine.configure("heartbeat", value, None).await.unwrap();
}

fn heartbeat(engine: &Engine) -> f64 {
    engine.config().number("heartbeat")
}

#[tokio::test]
async fn an_older_read_does_not_replace_a_change_of_this_server() {
    let engine = engine().await;
    set_heartbeat(&engine, "1").await;
    let known = engine.0.caches.revision();
    let reads = [
        read(&engine, Refresh::of_everything()).await,
        read(&engine, Refresh::since(known)).await,
        read(&engine, Refresh::since(0)).await,
    ];
    set_heartbeat(&engine, "2").await;
    for older in reads {
        apply(&engine, older);
        assert!((heartbeat(&engine) - 2.0).abs() < f64::EPSILON);
    }
    engine.close().await;
}

#[tokio::test]
async fn a_change_of_this_server_does_not_replace_a_newer_read() {
    let engine = engine().await;
    let caches = &engine.0.caches;
    let change = |seconds: &str| CacheChanges {
        changed_options: vec![("heartbeat".to_owned(), Some(seconds.to_owned()))],
        ..CacheChanges::default()
    };
    let known = caches.revision();
    caches.apply(change("1"), Some(known));
    assert!((heartbeat(&engine) - 1.0).abs() < f64::EPSILON);
    // Read by another task between the commit of this change and its application.
    caches.apply(change("3"), Some(known + 2));
    caches.apply(change("2"), Some(known + 1));
    assert!((heartbeat(&engine) - 3.0).abs() < f64::EPSILON);
    assert_eq!(caches.revision(), known + 3);
    engine.close().await;
}

/// Another server sets options, as far as the caches of this one can tell.
const SET: [&str; 2] = [
    "INSERT INTO config (option, value) VALUES ('heartbeat', '7') ON CONFLICT (option) DO UPDATE SET value = '7'",
    "UPDATE state SET revision = revision + 1, config_revision = revision + 1",
];

#[tokio::test]
async fn only_the_kinds_that_have_changed_are_read() {
    let engine = engine().await;
    let known = engine.0.caches.revision();
    run_sql(&engine, "INSERT INTO tracked (id, since) VALUES ('a', 1)").await;
    run_statements(&engine, SET.map(|sql| Statement::new(sql, []))).await;
    let changed = read(&engine, Refresh::since(known)).await;
    apply(&engine, changed);
    assert!((heartbeat(&engine) - 7.0).abs() < f64::EPSILON);
    assert_eq!(engine.known_tracked().count(), 0, "not read");
    let everything = read(&engine, Refresh::of_everything()).await;
    apply(&engine, everything);
    assert_eq!(engine.known_tracked().count(), 1);
    engine.close().await;
}

const LOSE: [&str; 3] = [
    "DELETE FROM config",
    "DELETE FROM queues WHERE name = 'lost'",
    "UPDATE state SET revision = revision - 1, config_revision = 0",
];

#[tokio::test]
async fn everything_is_read_from_a_database_that_has_lost_commits() {
    let engine = engine().await;
    set_heartbeat(&engine, "5").await;
    let (queue, put) = (QueueKey::qless("lost"), Put::default());
    let put = engine.put(queue.clone(), vec![put], String::new(), None);
    put.await.unwrap();
    let known = engine.0.caches.revision();
    run_statements(&engine, LOSE.map(|sql| Statement::new(sql, []))).await;
    let caches = &engine.0.caches;
    assert!(!caches.take_lost_history());
    let found = read(&engine, Refresh::since(known)).await;
    apply(&engine, found);
    assert!((heartbeat(&engine) - 60.0).abs() < f64::EPSILON);
    assert_eq!(engine.known_queues().get(&queue), None);
    assert_eq!(caches.revision(), known - 1);
    // The writer takes this into account once.
    assert!(caches.take_lost_history());
    assert!(!caches.take_lost_history());
    engine.close().await;
}

const QUEUES_WITH_RECURRING_JOBS: &str = "
INSERT INTO recurring (id, seq, queue, next_at, interval, made, backlog, priority, retries, tags, body, version)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 30)
SELECT 'r' || n, n, n % 3 * 10, 0, 1, 0, 0, 0, 0, '[]', '1', 1 FROM numbers";

#[tokio::test]
async fn queues_with_recurring_jobs_are_read() {
    let engine = engine().await;
    run_sql(&engine, QUEUES_WITH_RECURRING_JOBS).await;
    let everything = read(&engine, Refresh::of_everything()).await;
    apply(&engine, everything);
    let recurring_in = engine.0.caches.recurring_in();
    assert_eq!(*recurring_in, HashSet::from([0, 10, 20]));
    run_sql(&engine, "DELETE FROM recurring").await;
    let everything = read(&engine, Refresh::of_everything()).await;
    apply(&engine, everything);
    assert!(engine.0.caches.recurring_in().is_empty());
    engine.close().await;
}

#[tokio::test]
async fn the_last_10000_deleted_queues_are_listed() {
    let engine = engine().await;
    let all: Vec<(QueueId,)> = (1..=10_001).map(|id| (id,)).collect();
    let mut listed = 0;
    for (count, kept) in [(9_999, 9_999), (10_000, 10_000), (10_001, 10_000)] {
        let more: Vec<_> = all[listed..count].to_vec();
        listed = count;
        let revision = i64::try_from(count).unwrap();
        run_statements(&engine, list_deleted(&more, revision)).await;
        let left = read_number(&engine, "SELECT count(*) FROM deleted_queues").await;
        assert_eq!(left, kept, "of {count}");
    }
    let oldest = read_number(&engine, "SELECT min(id) FROM deleted_queues").await;
    assert_eq!(oldest, 2);
    engine.close().await;
}

/// A deleted queue and a new one with the same name.
#[tokio::test]
async fn the_name_of_a_deleted_queue_can_be_used_again() {
    let engine = engine().await;
    let (queues, key) = (engine.known_queues(), QueueKey::lmstfy("ns", "reply"));
    let queue = |id| Queue {
        id,
        key: key.clone(),
        first_seen: Time(0),
        pause: None,
        forgotten: false,
    };
    for (add_first, id) in [(true, 10), (false, 20)] {
        queues.add(queue(id));
        if add_first {
            queues.add(queue(id + 1));
            queues.remove(id);
        } else {
            queues.remove(id);
            queues.add(queue(id + 1));
        }
        assert_eq!(queues.get(&key).map(|queue| queue.id), Some(id + 1));
        assert_eq!(queues.by_id(id), None);
        assert_eq!(queues.count(), 1);
        queues.remove(id + 1);
        assert_eq!((queues.get(&key), queues.count()), (None, 0));
    }
    engine.close().await;
}

#[tokio::test]
async fn a_guest_who_reloads_the_caches_does_not_wait_for_other_guests() {
    let engine = engine().await;
    set_heartbeat(&engine, "1").await;
    let revision = engine.0.caches.revision();
    run_sql(
        &engine,
        "UPDATE config SET value = '2' WHERE option = 'heartbeat'",
    )
    .await;
    let revise = Statement::new(refresh::INVALIDATE_ALL[0], []);
    run_statements(&engine, vec![revise]).await;
    let guest = engine.for_guests();
    let others: Vec<_> = (0..8)
        .map(|_| {
            let guest = guest.clone();
            tokio::spawn(async move {
                guest
                    .readers()
                    .rows(Statement::new(ENDLESS_STATEMENT, []))
                    .await
            })
        })
        .collect();
    // They have taken or await all permits.
    tokio::task::yield_now().await;
    guest.apply_changes(revision, revision + 1).await.unwrap();
    assert!((heartbeat(&engine) - 2.0).abs() < f64::EPSILON);
    others.iter().for_each(tokio::task::JoinHandle::abort);
    engine.close().await;
}
