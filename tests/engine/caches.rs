//! The caches of servers that share a database: each reads only what has changed, and after a failover to a standby
//! without the last commits everything.

use sqlx::AssertSqlSafe;
use sqlx::Connection;
use sqlx::postgres::PgConnection;

use super::*;
use switchyard::engine::Recur;

/// Two servers on a new database, and a connection to it; `None` with SQLite.
async fn pair() -> Option<(Engine, Engine, PgConnection)> {
    database::postgres()?;
    let options = EngineSettings {
        empty_queue_age: Some(Duration::ZERO),
        ..options()
    };
    let one = Engine::open(&options).await.unwrap();
    let other = Engine::open(&options).await.unwrap();
    let database = PgConnection::connect(&options.database).await.unwrap();
    Some((one, other, database))
}

async fn run(database: &mut PgConnection, sql: &str) {
    let sql = AssertSqlSafe(sql.to_owned());
    sqlx::raw_sql(sql).execute(database).await.unwrap();
}

async fn set(engine: &Engine, option: &str, value: &str) {
    let value = Some(value.to_owned());
    engine.configure(option, value, None).await.unwrap();
}

async fn option(engine: &Engine, option: &str) -> Option<String> {
    engine.options().await.unwrap().get(option)
}

async fn publish(engine: &Engine, name: &str) -> QueueKey {
    let (queue, job) = (QueueKey::lmstfy("ns", name), lmstfy_job("1"));
    engine.publish(queue.clone(), vec![job]).await.unwrap();
    queue
}

/// What another server has in memory is changed in the database without a new revision. So it is seen only by a server
/// that reads all data of the kind again.
const HIDDEN: &str = "
UPDATE config SET value = '99' WHERE option = 'grace-period';
UPDATE tokens SET description = 'hidden';
INSERT INTO tracked (id, since) VALUES ('hidden', 1) ON CONFLICT DO NOTHING;
UPDATE queues SET paused = 1 WHERE name = 'kept'";

/// Which of the hidden changes the server sees: options, tokens, tracked jobs, queues.
async fn seen(engine: &Engine) -> [bool; 4] {
    let tokens = engine.tokens().await.unwrap();
    let (_, tracked) = engine.tracked().await.unwrap();
    let kept = QueueKey::lmstfy("ns", "kept");
    let kept = engine.known_queues().get(&kept).unwrap();
    [
        option(engine, "grace-period").await.as_deref() == Some("99"),
        tokens.iter().any(|token| token.description == "hidden"),
        tracked.iter().any(|id| id == "hidden"),
        kept.pause.is_some(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_makes_other_servers_read_only_its_kind() {
    let Some((one, other, mut database)) = pair().await else {
        return;
    };
    set(&one, "grace-period", "1").await;
    one.create_token("ns", "first", None).await.unwrap();
    publish(&one, "kept").await;
    // From this revision on, the list is complete.
    let listed = "INSERT INTO deleted_queues (id, revision) VALUES (0, 0)";
    run(&mut database, listed).await;
    let is_deleted = async |engine: &Engine, queue: &QueueKey| {
        engine.options().await.unwrap();
        engine.known_queues().get(queue).is_none()
    };
    let gone = publish(&one, "gone").await;
    one.destroy(gone.clone()).await.unwrap();
    assert_eq!(seen(&other).await, [false; 4]);
    run(&mut database, HIDDEN).await;
    assert_eq!(seen(&other).await, [false; 4]);

    // A new recurring job, whose queue is created.
    let recur = Recur {
        id: Some("r".to_owned()),
        body: "1".to_owned(),
        interval_s: 1_000.0,
        ..Recur::default()
    };
    let recurred = one.recur(q(), vec![recur], None).await.unwrap();
    assert!(recurred.iter().all(Result::is_ok));
    let claimed = other.claim(Claim::of(q(), "w", 1), None).await.unwrap();
    assert_eq!(claimed.len(), 1, "a child of the recurring job");
    assert_eq!(seen(&other).await, [false; 4]);
    assert_reads_only_recurring_jobs_of_changed_queues(&one, &other, &mut database).await;
    assert_eq!(seen(&other).await, [false; 4]);

    eventually("deleted", || async { is_deleted(&other, &gone).await }).await;
    assert_eq!(seen(&other).await, [false; 4]);

    let put = one.put(q(), vec![new("a")], String::new(), None);
    put.await.unwrap();
    let tracked = one
        .track(vec![(JobKey::qless("a"), Vec::new())], None)
        .await;
    assert!(tracked.unwrap().iter().all(Result::is_ok));
    assert_eq!(seen(&other).await, [false, false, true, false]);
    set(&one, "heartbeat", "7").await;
    assert_eq!(option(&other, "heartbeat").await.as_deref(), Some("7"));
    assert_eq!(seen(&other).await, [true, false, true, false]);
    one.create_token("ns", "second", None).await.unwrap();
    assert_eq!(seen(&other).await, [true, true, true, false]);
    one.close().await;
    other.close().await;
}

/// Each server knows the queues. The database has a recurring job in one of them that no server has announced.
async fn assert_reads_only_recurring_jobs_of_changed_queues(
    one: &Engine,
    other: &Engine,
    database: &mut PgConnection,
) {
    let queues = ["first", "second", "unannounced"].map(QueueKey::qless);
    for queue in &queues {
        let put = one.put(queue.clone(), vec![new(&queue.name)], String::new(), None);
        put.await.unwrap();
        let claimed = other.claim(Claim::of(queue.clone(), "w", 1), None).await;
        assert_eq!(claimed.unwrap().len(), 1);
    }
    run(database, UNANNOUNCED).await;
    let mut found = Vec::new();
    for _ in 0..2 {
        for queue in &queues[..2] {
            let recur = Recur {
                body: "1".to_owned(),
                interval_s: 1_000.0,
                ..Recur::default()
            };
            let recurred = one.recur(queue.clone(), vec![recur], None).await.unwrap();
            assert!(recurred.iter().all(Result::is_ok));
        }
        for queue in &queues {
            let claimed = other.claim(Claim::of(queue.clone(), "w", 9), None).await;
            found.push(claimed.unwrap().len());
        }
    }
    assert_eq!(found, [1, 1, 0, 1, 1, 0], "children per queue");
}

const UNANNOUNCED: &str = "
INSERT INTO recurring (id, seq, queue, next_at, interval, made, backlog, priority, retries, tags, body, version)
SELECT 'unannounced', 1000000, id, 0, 1000000000, 0, 0, 0, 0, '[]', '1', 1 FROM queues WHERE name = 'unannounced'";

/// The database as a standby has it that lacks the last two changes.
const LOSE: &str = "
UPDATE config SET value = '10' WHERE option = 'heartbeat';
DELETE FROM jobs;
DELETE FROM tallies;
DELETE FROM queues WHERE name = 'lost';
UPDATE state SET revision = revision - 2, config_revision = revision - 2";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_read_everything_after_a_failover_that_loses_commits() {
    let Some((one, other, mut database)) = pair().await else {
        return;
    };
    set(&one, "heartbeat", "10").await;
    set(&one, "heartbeat", "20").await;
    let lost = QueueKey::qless("lost");
    let put = one.put(lost.clone(), vec![new("lost")], String::new(), None);
    put.await.unwrap();
    for engine in [&one, &other] {
        assert_eq!(option(engine, "heartbeat").await.as_deref(), Some("20"));
    }
    run(&mut database, LOSE).await;
    for engine in [&one, &other] {
        assert_eq!(option(engine, "heartbeat").await.as_deref(), Some("10"));
        assert!(engine.known_queues().get(&lost).is_none());
    }
    // Writes continue, and the other server sees them.
    for (value, engine, reader) in [("11", &one, &other), ("12", &other, &one)] {
        set(engine, "heartbeat", value).await;
        assert_eq!(option(reader, "heartbeat").await.as_deref(), Some(value));
        let put = engine.put(lost.clone(), vec![new(value)], String::new(), None);
        put.await.unwrap();
        let claimed = reader.claim(Claim::of(lost.clone(), "w", 1), None).await;
        assert_eq!(claimed.unwrap().len(), 1);
    }
    one.close().await;
    other.close().await;
}
