//! Batch sizes of maintenance: how much one transaction processes, and how much it leaves.

use std::time::Duration;

use super::*;
use crate::engine::audit;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::deletions::{DeleteJobs, JobSet};
use crate::engine::model::job::QueueKey;
use crate::engine::test_support::{read_number, run_sql, run_statements};
use crate::engine::unit_of_work::Needs;
use crate::engine::unit_of_work::time_series::{HOUR, minute};
use crate::engine::verbs::admin::sessions;
use crate::engine::verbs::lmstfy::publish;
use crate::engine::{
    Claim, Engine, EngineSettings, Publish, Put, engine_without_tasks as engine, events,
};

fn long_ago(engine: &Engine) -> Option<Time> {
    Some(engine.now(None).plus_seconds(-1_000.0))
}

/// The number of rows that one transaction of the task processes.
async fn affected(engine: &Engine, task: MaintenanceTask) -> usize {
    engine
        .run_system_task(SystemTask::Maintain(task))
        .await
        .unwrap()
}

/// Publishes jobs with a creation time in the past and a time to live of `ttl_s` seconds (0: no limit).
async fn publish_long_ago(engine: &Engine, count: usize, ttl_s: u32) {
    let job = Publish {
        body: String::new(),
        delay_s: 0,
        ttl_s,
        tries: 2,
        versioned: false,
        attributes: None,
    };
    let published = engine.write(Needs::default(), long_ago(engine), count, move |work| {
        for _ in 0..count {
            publish::publish(work, &queue(), &job);
        }
        Ok(())
    });
    published.await.unwrap();
}

fn queue() -> QueueKey {
    QueueKey::lmstfy("ns", "q")
}

#[tokio::test]
async fn up_to_2000_due_jobs_are_promoted_at_once() {
    let engine = engine().await;
    for (count, first) in [(1_999, 1_999), (2_000, 2_000), (2_001, 2_000)] {
        let job = || Put {
            body: "1".to_owned(),
            delay: Some(1.0),
            ..Put::default()
        };
        let jobs = (0..count).map(|_| job()).collect();
        let put = engine.put(QueueKey::qless("q"), jobs, String::new(), long_ago(&engine));
        put.await.unwrap();
        let promoted = affected(&engine, MaintenanceTask::PromoteDue).await;
        assert_eq!(promoted, first, "{count} jobs");
        assert_eq!(
            MaintenanceTask::PromoteDue.may_have_more(promoted),
            count >= 2_000
        );
        let rest = affected(&engine, MaintenanceTask::PromoteDue).await;
        assert_eq!(rest, count - first);
    }
    engine.close().await;
}

#[tokio::test]
async fn up_to_2000_jobs_expire_at_once() {
    let engine = engine().await;
    for (count, first) in [(1_999, 1_999), (2_000, 2_000), (2_001, 2_000)] {
        publish_long_ago(&engine, count, 1).await;
        assert_eq!(
            affected(&engine, MaintenanceTask::DeleteExpired).await,
            first,
            "{count}"
        );
        assert_eq!(
            affected(&engine, MaintenanceTask::DeleteExpired).await,
            count - first
        );
    }
    engine.close().await;
}

#[tokio::test]
async fn up_to_2000_jobs_of_a_queue_are_deleted_at_once() {
    let engine = engine().await;
    for (count, first) in [(1_999, 1_999), (2_000, 2_000), (2_001, 2_000)] {
        publish_long_ago(&engine, count, 0).await;
        let delete = async || {
            let what = DeleteJobs {
                queue: queue(),
                set: JobSet::Ready,
                count: usize::MAX,
                until: engine.now(None),
            };
            engine
                .run_system_task(SystemTask::DeleteJobs(what))
                .await
                .unwrap()
        };
        assert_eq!(delete().await, first, "{count} jobs");
        assert_eq!(delete().await, count - first);
    }
    engine.close().await;
}

#[tokio::test]
async fn up_to_500_expired_leases_are_returned_at_once() {
    let engine = engine().await;
    for (count, first) in [(499, 499), (500, 500), (501, 500)] {
        publish_long_ago(&engine, count, 0).await;
        let claim = Claim {
            lease_s: Some(1.0),
            ..Claim::of(queue(), "", count)
        };
        let claimed = engine.claim(claim, long_ago(&engine)).await.unwrap();
        assert_eq!(claimed.len(), count);
        let returned = affected(&engine, MaintenanceTask::ExpireLeases).await;
        assert_eq!(returned, first, "{count} leases");
        assert_eq!(
            MaintenanceTask::ExpireLeases.may_have_more(returned),
            count >= 500
        );
        assert_eq!(
            affected(&engine, MaintenanceTask::ExpireLeases).await,
            count - first
        );
        engine.destroy(queue()).await.unwrap();
    }
    engine.close().await;
}

/// Gives each job a row of this size.
const GROW: &str = "
UPDATE jobs SET work_state = substr(hex(zeroblob(1048576)), 1, $1 - octet_length(body) - octet_length(history)
    - octet_length(tags) - coalesce(octet_length(klass), 0) - coalesce(octet_length(attributes), 0))
WHERE (seq, version) IN (SELECT seq, version FROM jobs)";

/// How many of ten jobs with rows of this size one transaction of the task processes, and whether the task continues.
async fn large_jobs(engine: &Engine, task: MaintenanceTask, size: i64) -> (usize, bool) {
    publish_long_ago(engine, 10, 0).await;
    let claim = Claim {
        lease_s: Some(1.0),
        ..Claim::of(queue(), "", 10)
    };
    engine.claim(claim, long_ago(engine)).await.unwrap();
    run_statements(engine, [Statement::new(GROW, [size.into()])]).await;
    if task == MaintenanceTask::PromoteDue {
        run_sql(engine, MAKE_DUE).await;
    }
    let run = async || {
        let done = engine
            .submit_system_task(SystemTask::Maintain(task), None)
            .await;
        done.map(|done| (done.affected_rows, done.has_more_work))
            .unwrap()
    };
    let first = run().await;
    let mut left = 10 - first.0;
    while left > 0 {
        let (more, has_more_work) = run().await;
        left -= more;
        assert_eq!(has_more_work, left > 0, "{left} are left");
    }
    engine.flush().await.unwrap();
    first
}

const MAKE_DUE: &str = "
UPDATE jobs SET state = {scheduled}, lease_id = NULL, lease_until = NULL, worker = NULL
WHERE (seq, version) IN (SELECT seq, version FROM jobs)";

#[tokio::test]
async fn jobs_of_4_mib_are_promoted_at_once_or_expire_at_once() {
    let engine = engine().await;
    for task in [MaintenanceTask::PromoteDue, MaintenanceTask::ExpireLeases] {
        // The last job may exceed the limit.
        for (size, expected) in [(1_048_575, 5), (1_048_576, 4), (1_048_577, 4)] {
            let done = large_jobs(&engine, task, size).await;
            assert_eq!(done, (expected, true), "{task:?}, {size} bytes each");
        }
        // A single job may be larger.
        assert_eq!(large_jobs(&engine, task, 2_000_000).await, (3, true));
    }
    engine.close().await;
}

/// Inserts sessions last used in this order, from the first number to the last.
const SESSIONS: &str = "
INSERT INTO sessions (hash, name, proof, created_at, seen_at)
WITH RECURSIVE numbers (n) AS (SELECT $2 + 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $3)
SELECT 'hash ' || n, 'name ' || n, '', $1 + n, $1 + n FROM numbers";

#[tokio::test]
async fn the_10000_sessions_used_last_are_kept() {
    let engine = engine().await;
    let now = engine.now(None);
    for (from, to, kept) in [
        (1_i64, 9_999_i64, 9_999),
        (10_000, 10_000, 10_000),
        (10_001, 10_001, 10_000),
    ] {
        let args = [now.0.into(), from.into(), to.into()];
        run_statements(&engine, [Statement::new(SESSIONS, args)]).await;
        run_statements(&engine, sessions::delete_old(now)).await;
        let left = read_number(&engine, "SELECT count(*) FROM sessions").await;
        assert_eq!(left, kept, "of {to}");
    }
    let first = "SELECT count(*) FROM sessions WHERE hash = 'hash 1'";
    assert_eq!(read_number(&engine, first).await, 0);
    engine.close().await;
}

const ENTRIES: &str = "
INSERT INTO audit (id, at, who, role, action, target, link, before, after, items, done, said, request_id, source)
WITH RECURSIVE numbers (n) AS (SELECT $2 + 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $3)
SELECT 'id ' || n, $1 + n, 'ada', 'admin', '', '', '', '', '', 0, 1, '', '', '' FROM numbers";

const CHANGES: &str = "UPDATE audit SET items = 1, who = $1";

async fn drop_surplus(engine: &Engine, now: Time) {
    let actor = audit::Actor::default();
    engine.drop_surplus_entries(&actor, now).await.unwrap();
}

#[tokio::test]
async fn the_newest_100000_audit_entries_are_kept() {
    let engine = engine().await;
    let now = engine.now(None);
    for (from, to, kept) in [
        (1_i64, 99_999_i64, 99_999),
        (100_000, 100_000, 100_000),
        (100_001, 100_001, 100_000),
    ] {
        let args = [now.0.into(), from.into(), to.into()];
        run_statements(&engine, [Statement::new(ENTRIES, args)]).await;
        drop_surplus(&engine, now).await;
        let left = read_number(&engine, "SELECT count(*) FROM audit").await;
        assert_eq!(left, kept, "of {to}");
    }
    let first = "SELECT count(*) FROM audit WHERE id = 'id 1'";
    assert_eq!(read_number(&engine, first).await, 0);
    engine.close().await;
}

#[tokio::test]
async fn changes_of_users_are_kept_for_30_days() {
    let engine = engine().await;
    let now = engine.now(None);
    let args = [now.0.into(), 1.into(), 100_010.into()];
    run_statements(&engine, [Statement::new(ENTRIES, args)]).await;
    let age = |seconds: f64| now.plus_seconds(30.0 * 86_400.0 + seconds);
    for (who, at, kept) in [
        ("ada", now, 100_010),
        ("ada", age(0.0), 100_010),
        // An entry follows the one before it by 1 µs.
        ("ada", age(5e-6), 100_005),
        ("ada", age(1.0), 100_000),
    ] {
        run_statements(&engine, [Statement::new(CHANGES, [who.into()])]).await;
        drop_surplus(&engine, at).await;
        let left = read_number(&engine, "SELECT count(*) FROM audit").await;
        assert_eq!(left, kept, "{who} {at:?}");
    }
    let more = [now.0.into(), 100_011.into(), 100_020.into()];
    run_statements(&engine, [Statement::new(ENTRIES, more)]).await;
    let who = audit::AUDIT_ANONYMOUS.into();
    run_statements(&engine, [Statement::new(CHANGES, [who])]).await;
    drop_surplus(&engine, now).await;
    let left = read_number(&engine, "SELECT count(*) FROM audit").await;
    assert_eq!(left, 100_000, "without credentials");
    engine.close().await;
}

#[tokio::test]
async fn the_newest_100000_events_are_kept() {
    let engine = engine().await;
    let add = "INSERT INTO events (first, n, at, entries) VALUES (1, 1, 0, '[]'), (2, 1, 0, '[]')";
    run_statements(&engine, [Statement::new(add, [])]).await;
    for (last, kept) in [(99_999_i64, 2), (100_000, 2), (100_001, 1), (100_002, 0)] {
        let number = Statement::new("UPDATE state SET last_event = $1", [last.into()]);
        run_statements(&engine, [number, events::delete_old()]).await;
        let left = read_number(&engine, "SELECT count(*) FROM events").await;
        assert_eq!(left, kept, "after event {last}");
    }
    let many = "INSERT INTO events (first, n, at, entries)
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
        SELECT n, 1, 0, '[]' FROM numbers";
    let many = Statement::new(many, [(events::DELETED_ROWS_MAX + 3).into()]);
    let number = Statement::new("UPDATE state SET last_event = 200000", []);
    run_statements(&engine, [number, many, events::delete_old()]).await;
    let left = read_number(&engine, "SELECT count(*) FROM events").await;
    assert_eq!(left, 3);
    engine.close().await;
}

/// Counts of tags and of queues in a failure group: every second one is 0, as the sum of the rows of two servers.
const COUNTS: [&str; 2] = [
    "INSERT INTO tag_counts (tag, server, n)
WITH RECURSIVE numbers (n) AS (SELECT $1 + 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
SELECT 'tag ' || n, s.server, CASE WHEN s.server = 1 THEN 1 ELSE n % 2 - 1 END
FROM numbers CROSS JOIN (SELECT 1 AS server UNION ALL SELECT 2) AS s",
    "INSERT INTO failure_counts (failure_group, queue, server, n)
WITH RECURSIVE numbers (n) AS (SELECT $1 + 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
SELECT 'g', n, s.server, CASE WHEN s.server = 1 THEN 1 ELSE n % 2 - 1 END
FROM numbers CROSS JOIN (SELECT 1 AS server UNION ALL SELECT 2) AS s",
];

#[tokio::test]
async fn a_part_of_the_counts_is_pruned_at_once() {
    let engine = engine().await;
    let add = COUNTS.map(|sql| Statement::new(sql, [10_001.into(), 12_500.into()]));
    run_statements(&engine, add).await;
    let left = async || {
        let tags = read_number(&engine, "SELECT count(*) FROM tag_counts").await;
        let failures = read_number(&engine, "SELECT count(*) FROM failure_counts").await;
        (tags, failures)
    };
    // 2,000 of the 5,000 rows are read, so 1,000 are deleted. The last part of the tags is not full, so the failures
    // follow in the same transaction.
    for expected in [
        (4_000, 5_000),
        (3_000, 5_000),
        (2_500, 4_000),
        (2_500, 3_000),
        (2_500, 2_500),
        (2_500, 2_500),
    ] {
        affected(&engine, MaintenanceTask::CleanUpStatistics).await;
        assert_eq!(left().await, expected);
    }
    for sql in ["tag_counts", "failure_counts"] {
        let sql = match sql {
            "tag_counts" => "SELECT count(*) FROM tag_counts GROUP BY tag HAVING sum(n) = 0",
            _ => "SELECT count(*) FROM failure_counts GROUP BY queue HAVING sum(n) = 0",
        };
        let rows = engine.readers().rows(Statement::new(sql, [])).await;
        assert!(rows.unwrap().is_empty(), "{sql}");
    }
    // Once a day.
    let add = COUNTS.map(|sql| Statement::new(sql, [20_002.into(), 20_002.into()]));
    run_statements(&engine, add).await;
    affected(&engine, MaintenanceTask::CleanUpStatistics).await;
    assert_eq!(left().await, (2_502, 2_502));
    engine.close().await;
}

const OLD_STATISTICS: [&str; 2] = [
    "INSERT INTO queues (id, protocol, namespace, name, first_seen)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 4500)
SELECT n, 'qless', '', 'queue ' || n, 0 FROM numbers",
    "INSERT INTO tallies (kind, queue, day, slot, server, n) SELECT {kind_wait}, id, 1, 200, 0, 1 FROM queues",
];

#[tokio::test]
async fn the_statistics_of_2000_queues_are_pruned_at_once() {
    let engine = engine().await;
    run_statements(&engine, OLD_STATISTICS.map(|sql| Statement::new(sql, []))).await;
    // A part is repeated if as many rows as possible were deleted. The next one begins with its last queue.
    for expected in [2_500, 2_500, 501, 0] {
        affected(&engine, MaintenanceTask::CleanUpStatistics).await;
        let left = read_number(
            &engine,
            "SELECT count(*) FROM tallies WHERE kind = {kind_wait}",
        )
        .await;
        assert_eq!(left, expected);
    }
    engine.close().await;
}

const OLD_MINUTES: &str = "
INSERT INTO tallies (kind, queue, day, slot, server, n) SELECT {kind_minute}, id, $1, 0, 0, 1 FROM queues";

#[tokio::test]
async fn the_minutes_of_2000_queues_are_aggregated_at_once() {
    let engine = engine().await;
    let old = minute(engine.now(None)) - 27 * HOUR;
    let [queues, _] = OLD_STATISTICS;
    let minutes = || Statement::new(OLD_MINUTES, [old.into()]);
    run_statements(&engine, [Statement::new(queues, []), minutes()]).await;
    let left = async || {
        let minutes = "SELECT count(*) FROM tallies WHERE kind = {kind_minute}";
        let hours =
            "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM tallies WHERE kind = {kind_hour}";
        (
            read_number(&engine, minutes).await,
            read_number(&engine, hours).await,
        )
    };
    // A part begins with the last queue of the one before it.
    for expected in [(2_500, 2_000), (501, 3_999), (0, 4_500), (0, 4_500)] {
        affected(&engine, MaintenanceTask::CleanUpStatistics).await;
        assert_eq!(left().await, expected);
    }
    // Once an hour.
    run_statements(&engine, [minutes()]).await;
    affected(&engine, MaintenanceTask::CleanUpStatistics).await;
    assert_eq!(left().await, (4_500, 4_500));
    engine.close().await;
}

const FORGOTTEN_QUEUES: &str = "
INSERT INTO queues (id, protocol, namespace, name, first_seen, forgotten)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2300)
SELECT n, 'lmstfy', 'ns', 'queue ' || n, 0, 1 FROM numbers";

/// Deletes empty queues at once.
async fn engine_with_forgotten_queues() -> Engine {
    let options = EngineSettings {
        database: "sqlite::memory:".to_owned(),
        without_tasks: true,
        empty_queue_age: Some(Duration::ZERO),
        ..EngineSettings::default()
    };
    let engine = Engine::open(&options).await.unwrap();
    run_statements(&engine, [Statement::new(FORGOTTEN_QUEUES, [])]).await;
    engine
}

#[tokio::test]
async fn the_statistics_of_a_deleted_queue_move_a_part_at_a_time() {
    const STATISTICS: &str = "
    INSERT INTO tallies (kind, queue, day, slot, server, n)
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2500)
    SELECT k.kind, 7, n, 3, 0, 2 FROM numbers CROSS JOIN (SELECT {kind_minute} AS kind UNION ALL SELECT {kind_wait}) AS k";
    let engine = engine_with_forgotten_queues().await;
    run_statements(&engine, [Statement::new(STATISTICS, [])]).await;
    let count = |sql: &'static str| read_number(&engine, sql);
    let mut left = 5_000;
    while count("SELECT count(*) FROM queues WHERE id <= 7").await > 0 {
        affected(&engine, MaintenanceTask::DeleteEmptyQueues).await;
        let now_left = count("SELECT count(*) FROM tallies WHERE queue = 7").await;
        assert!(left - now_left <= 2_000, "{left} - {now_left}");
        if now_left == left {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        left = now_left;
    }
    assert_eq!(left, 0);
    let kept = "SELECT CAST(sum(n) AS BIGINT) FROM tallies WHERE queue = 0";
    assert_eq!(count(kept).await, 5_000);
    engine.close().await;
}

#[tokio::test]
async fn up_to_200_empty_queues_are_deleted_at_once() {
    let engine = engine_with_forgotten_queues().await;
    let mut left = 2_300;
    let mut transactions = 0;
    // The first check notes the queues. They are deleted by a check 5 s later.
    while left > 0 {
        affected(&engine, MaintenanceTask::DeleteEmptyQueues).await;
        let now_left = read_number(&engine, "SELECT count(*) FROM queues").await;
        assert!(left - now_left <= 200, "{left} - {now_left}");
        match now_left == left {
            true => tokio::time::sleep(Duration::from_millis(20)).await,
            false => transactions += 1,
        }
        left = now_left;
    }
    assert!(transactions >= 12, "{transactions}");
    engine.close().await;
}

#[tokio::test]
async fn up_to_1000_old_audit_entries_are_deleted_at_once() {
    let engine = engine().await;
    let old = engine.now(None).plus_seconds(-91.0 * 86_400.0);
    let args = [old.0.into(), 1.into(), 2_500.into()];
    run_statements(&engine, [Statement::new(ENTRIES, args)]).await;
    for expected in [1_500, 500, 0] {
        affected(&engine, MaintenanceTask::CleanUpStatistics).await;
        let left = read_number(&engine, "SELECT count(*) FROM audit").await;
        assert_eq!(left, expected);
    }
    engine.close().await;
}
