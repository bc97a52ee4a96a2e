//! Statements that take too long on Postgres. A slow write fails only the request that causes it. A slow read is
//! canceled in the database, too.

use futures::future::join_all;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Transaction};

use super::*;

/// The requests that share a commit group with the slow one.
const OTHERS: usize = 40;

/// Inserting the job `slow` takes a minute.
const SLOW: &str = "
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id = 'slow' THEN PERFORM pg_sleep(60); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER slow BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION slow();";

/// The row that each commit group with events writes.
const LOCK: &str = "SELECT CAST(id AS TEXT) FROM state WHERE id = 1 FOR UPDATE";

const WAITING: &str = "
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// The number of statements that wait for a lock.
async fn waiting(watching: &mut PgConnection) -> i64 {
    let count = sqlx::query_scalar(WAITING);
    count.fetch_one(watching).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_statement_fails_only_the_request_that_causes_it() {
    if database::postgres().is_none() {
        return;
    }
    let options = options();
    let engine = Engine::open(&options).await.unwrap();
    let mut other = PgConnection::connect(&options.database).await.unwrap();
    sqlx::raw_sql(SLOW).execute(&mut other).await.unwrap();
    // While the first put waits for this lock, all others queue up behind it, so they share the next group.
    let mut watching = PgConnection::connect(&options.database).await.unwrap();
    let mut transaction = other.begin().await.unwrap();
    sqlx::query(LOCK).execute(&mut *transaction).await.unwrap();
    let put = |id: String| {
        let engine = engine.clone();
        async move {
            let done = engine.put(q(), vec![new(&id)], "client".to_owned(), None);
            (id, done.await.and_then(|mut done| done.remove(0)))
        }
    };
    let first = tokio::spawn(put("first".to_owned()));
    while waiting(&mut watching).await == 0 {
        tokio::task::yield_now().await;
    }
    let ids = (0..OTHERS).map(|n| format!("other-{n}"));
    let mut others = Box::pin(join_all(ids.chain(["slow".to_owned()]).map(put)));
    assert!(futures::poll!(&mut others).is_pending());
    transaction.rollback().await.unwrap();
    first.await.unwrap().1.unwrap();
    for (id, done) in others.await {
        match id.as_str() {
            "slow" => assert_eq!(done, Err(Error::Unavailable)),
            _ => assert_eq!(done.as_ref(), Ok(&id)),
        }
    }
    // The connection still works.
    put("after".to_owned()).await.1.unwrap();
    assert_eq!(engine.job(&JobKey::qless("slow")).await.unwrap(), None);
    assert_eq!(engine.check(None).await.unwrap(), []);
}

/// An engine without tasks, and two connections to its database.
async fn engine_and_connections() -> (Engine, [PgConnection; 2]) {
    let options = EngineSettings {
        without_tasks: true,
        ..options()
    };
    let engine = Engine::open(&options).await.unwrap();
    let connect = || PgConnection::connect(&options.database);
    let connections = [connect().await.unwrap(), connect().await.unwrap()];
    (engine, connections)
}

/// Locks the jobs, so that every read of them waits until the transaction ends.
async fn lock_jobs(connection: &mut PgConnection) -> Transaction<'_, sqlx::Postgres> {
    let mut transaction = connection.begin().await.unwrap();
    let lock = sqlx::query("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE");
    lock.execute(&mut *transaction).await.unwrap();
    transaction
}

/// The readers of an engine.
const READERS: i64 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_reads_end_on_the_database_and_do_not_delay_health_checks() {
    if database::postgres().is_none() {
        return;
    }
    let (engine, [mut other, mut watching]) = engine_and_connections().await;
    let transaction = lock_jobs(&mut other).await;
    let reads = (0..2 * READERS).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.job(&JobKey::qless("a")).await })
    });
    let reads: Vec<_> = reads.collect();
    while waiting(&mut watching).await < READERS {
        tokio::task::yield_now().await;
    }
    assert_eq!(engine.ping().await, Ok(()));
    for read in reads {
        assert_eq!(read.await.unwrap(), Err(Error::Unavailable));
    }
    // The database has ended them, although the lock is still held.
    while waiting(&mut watching).await > 0 {
        tokio::task::yield_now().await;
    }
    transaction.rollback().await.unwrap();
    assert_eq!(engine.job(&JobKey::qless("a")).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_consistency_check_runs_at_a_time() {
    if database::postgres().is_none() {
        return;
    }
    let (engine, [mut other, mut watching]) = engine_and_connections().await;
    let transaction = lock_jobs(&mut other).await;
    let first = tokio::spawn({
        let engine = engine.clone();
        async move { engine.check(None).await }
    });
    while waiting(&mut watching).await == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(engine.check(None).await, Err(Error::Busy));
    assert_eq!(first.await.unwrap(), Err(Error::Unavailable));
    transaction.rollback().await.unwrap();
    assert_eq!(engine.check(None).await, Ok(Vec::new()));
}
