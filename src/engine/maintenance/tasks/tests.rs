//! Batch sizes of maintenance: how much one transaction processes, and how much it leaves.

use super::*;
use crate::engine::audit;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::deletions::{DeleteJobs, JobSet};
use crate::engine::model::job::QueueKey;
use crate::engine::unit_of_work::Needs;
use crate::engine::verbs::admin::sessions;
use crate::engine::verbs::lmstfy::publish;
use crate::engine::{Claim, Engine, Publish, Put, engine_without_tasks as engine, events};

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

async fn write(engine: &Engine, statements: impl IntoIterator<Item = Statement>) {
    let statements: Vec<Statement> = statements.into_iter().collect();
    let write = engine.write(Needs::default(), None, 1, move |work| {
        work.add_statements(statements.iter().cloned());
        Ok(())
    });
    write.await.unwrap();
}

async fn count(engine: &Engine, sql: &'static str) -> i64 {
    let rows = engine.readers().rows(Statement::new(sql, [])).await;
    rows.unwrap()[0].int(0).unwrap()
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
        write(&engine, [Statement::new(SESSIONS, args)]).await;
        write(&engine, sessions::drop_old(now)).await;
        let left = count(&engine, "SELECT count(*) FROM sessions").await;
        assert_eq!(left, kept, "of {to}");
    }
    let first = "SELECT count(*) FROM sessions WHERE hash = 'hash 1'";
    assert_eq!(count(&engine, first).await, 0);
    engine.close().await;
}

const ENTRIES: &str = "
INSERT INTO audit (id, at, who, role, action, target, link, before, after, items, done, said, request_id, source)
WITH RECURSIVE numbers (n) AS (SELECT $2 + 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $3)
SELECT 'id ' || n, $1 + n, 'ada', 'admin', '', '', '', '', '', 0, 1, '', '', '' FROM numbers";

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
        write(&engine, [Statement::new(ENTRIES, args)]).await;
        write(&engine, audit::drop_old(now)).await;
        let left = count(&engine, "SELECT count(*) FROM audit").await;
        assert_eq!(left, kept, "of {to}");
    }
    let first = "SELECT count(*) FROM audit WHERE id = 'id 1'";
    assert_eq!(count(&engine, first).await, 0);
    engine.close().await;
}

#[tokio::test]
async fn the_newest_100000_events_are_kept() {
    let engine = engine().await;
    let add = "INSERT INTO events (first, n, at, entries) VALUES (1, 1, 0, '[]'), (2, 1, 0, '[]')";
    write(&engine, [Statement::new(add, [])]).await;
    for (last, kept) in [(99_999_i64, 2), (100_000, 2), (100_001, 1), (100_002, 0)] {
        let number = Statement::new("UPDATE state SET last_event = $1", [last.into()]);
        write(&engine, [number, events::drop_old()]).await;
        let left = count(&engine, "SELECT count(*) FROM events").await;
        assert_eq!(left, kept, "after event {last}");
    }
    engine.close().await;
}
