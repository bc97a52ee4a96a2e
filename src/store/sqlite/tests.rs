use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::checkpoints::log_pages;
use super::readers::Readers;
use super::*;
use crate::memory::holding;
use crate::store::readers::ReadKind;
use crate::store::rows::{Arg, Statement};
use crate::store::{Durability, ENDLESS_STATEMENT};

async fn open(path: &Path) -> Readers {
    Readers::open(path, Arc::default()).await.unwrap()
}

#[tokio::test]
async fn long_reads_end_after_their_time_and_when_they_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let readers = open(&folder.path().join("jobs.db")).await;
    let (short, long) = (Duration::from_millis(50), Duration::from_secs(3_600));
    let endless = || {
        vec![
            Statement::new(ENDLESS_STATEMENT, []),
            Statement::new("SELECT 1", []),
        ]
    };
    for _ in 0..3 {
        let read = readers.read_within(short, endless()).await;
        assert!(matches!(read, Err(StoreError::Slow)), "{read:?}");
    }
    // More than there are connections.
    for _ in 0..3 {
        let read = tokio::time::timeout(short, readers.read_within(long, endless()));
        assert!(read.await.is_err(), "it does not end");
    }
    let one = vec![Statement::new("SELECT 1", [])];
    let read = readers.read_within(long, one).await.unwrap();
    assert_eq!(read[0].rows[0].int(0).unwrap(), 1);
    readers.close().await;
}

#[tokio::test]
async fn an_abandoned_read_keeps_its_permit_until_it_ends_unless_it_waits_for_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    let readers = open(&folder.path().join("jobs.db")).await;
    let read = |permits: &Arc<Semaphore>| {
        let permit = Arc::clone(permits).try_acquire_owned().unwrap();
        let readers = readers.clone();
        let endless = vec![Statement::new(ENDLESS_STATEMENT, [])];
        tokio::spawn(holding(permit, async move {
            readers.read(ReadKind::Keyed, endless).await
        }))
    };
    let one = Arc::new(Semaphore::new(1));
    let mut patience = 0;
    // A read that has not begun gives the permit back.
    while one.available_permits() == 1 {
        let begins = read(&one);
        for _ in 0..patience {
            tokio::task::yield_now().await;
        }
        patience += 1;
        assert!(patience < 10_000, "no read keeps its permit");
        begins.abort();
        drop(begins.await);
    }
    let many = Arc::new(Semaphore::new(8));
    let occupy: Vec<_> = (0..4).map(|_| read(&many)).collect();
    while readers.usage() != (4, 0, 4) {
        tokio::task::yield_now().await;
    }
    let wait: Vec<_> = (0..4).map(|_| read(&many)).collect();
    tokio::task::yield_now().await;
    for waits in wait {
        waits.abort();
    }
    while many.available_permits() < 4 {
        tokio::task::yield_now().await;
    }
    readers.close().await;
    for occupies in occupy {
        drop(occupies.await);
    }
    for (permits, count) in [(&one, 1), (&many, 8)] {
        drop(permits.acquire_many(count).await.unwrap());
    }
}

#[tokio::test]
async fn reads_for_guests_leave_connections_for_others() {
    leave_connections(|all| vec![all.for_guests()], ReadKind::Unkeyed).await;
}

#[tokio::test]
async fn lookups_of_sessions_leave_connections_for_others() {
    leave_connections(|all| vec![all.for_sessions()], ReadKind::Unkeyed).await;
}

#[tokio::test]
async fn lists_leave_a_connection_for_reads_by_key() {
    leave_connections(|all| vec![all.clone(), all.for_guests()], ReadKind::Keyed).await;
}

/// Reads through these handles leave connections for a read of this kind.
async fn leave_connections(
    handles: fn(&crate::store::Readers) -> Vec<crate::store::Readers>,
    kind: ReadKind,
) {
    let folder = tempfile::tempdir().unwrap();
    let readers = open(&folder.path().join("jobs.db")).await;
    let readers = crate::store::Readers::Sqlite(readers);
    let endless = || vec![Statement::new(ENDLESS_STATEMENT, [])];
    let reading: Vec<_> = (handles(&readers).into_iter().cycle().take(8))
        .map(|handle| tokio::spawn(async move { handle.read(endless()).await }))
        .collect();
    tokio::task::yield_now().await;
    // They have all taken or awaited a permit, and would occupy every connection.
    let one = Statement::new("SELECT 1", []);
    let read = async {
        match kind {
            ReadKind::Keyed => readers.keyed_rows(one).await,
            ReadKind::Unkeyed => readers.rows(one).await,
        }
    };
    let rows = tokio::time::timeout(Duration::from_secs(10), read).await;
    let rows = rows.expect("a connection is left").unwrap();
    assert_eq!(rows[0].int(0).unwrap(), 1);
    for read in &reading {
        read.abort();
    }
    readers.close().await;
}

#[test]
fn addresses_that_are_no_database_are_refused() {
    for address in [
        "",
        "sqlite:",
        "sqlite://",
        "mysql://x",
        "x.db",
        "sqlite://x?mode=ro",
    ] {
        assert!(locate(address).is_err(), "{address}");
    }
    assert_eq!(
        locate("sqlite://a/b.db").unwrap().0,
        PathBuf::from("a/b.db")
    );
    assert!(locate("sqlite::memory:").unwrap().1.is_some());
}

#[tokio::test]
async fn closing_the_readers_ends_a_statement_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    let readers = open(&path).await;
    let reading = tokio::spawn({
        let readers = readers.clone();
        async move {
            readers
                .read(
                    ReadKind::Unkeyed,
                    vec![Statement::new(ENDLESS_STATEMENT, [])],
                )
                .await
        }
    });
    while readers.usage().1 > 0 {
        tokio::task::yield_now().await;
    }
    readers.close().await;
    let error = reading.await.unwrap().err().unwrap();
    assert!(error.is_outage(), "{error}");
}

/// The log has at most five eighths of the reserve and a transaction, in any order of the threads.
#[tokio::test]
async fn the_log_starts_again_after_a_checkpoint_on_the_other_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let mut connection = Connection::open(&path, Durability::Process, false).unwrap();
    connection.allocate_reserve().unwrap();
    let run = |connection: &mut Connection, sql, args: Vec<Arg>| {
        connection.begin();
        connection
            .commit_with(&[Statement::new(sql, args)])
            .unwrap();
    };
    run(&mut connection, "CREATE TABLE t (x TEXT NOT NULL)", vec![]);
    let text = "x".repeat(1 << 20);
    let (mut written, mut restarts, mut longest) = (0, 0, 0);
    while restarts < 3 {
        let before = log_pages();
        run(
            &mut connection,
            "INSERT INTO t (x) VALUES ($1)",
            vec![text.as_str().into()],
        );
        written += 1;
        restarts += u32::from(log_pages() < before);
        longest = longest.max(log_pages());
        assert!(written < 1_000, "the log does not start again");
    }
    assert!(longest < 5 * 1_024 + 300, "{longest} pages");
    let count = "SELECT count(*), sum(length(x)) FROM t";
    let read = connection.read(&[Statement::new(count, [])]).unwrap();
    assert_eq!(read[0].rows[0].int(0).unwrap(), written);
    assert_eq!(read[0].rows[0].int(1).unwrap(), written << 20);
    connection.close().unwrap();
    assert!(!folder.path().join("jobs.db-wal").exists());
}

#[tokio::test]
async fn a_read_ends_if_its_rows_have_grown_much_since_they_were_measured() {
    let folder = tempfile::tempdir().unwrap();
    let readers = open(&folder.path().join("jobs.db")).await;
    let text = "SELECT 1, printf('%.*c', $1, 'x') UNION ALL SELECT 2, 'y'";
    for (bytes, is_read) in [(1_049_800, true), (1_049_801, false)] {
        let statement = Statement::new(text, [Arg::Int(bytes)]).measured(100);
        let read = readers.read(ReadKind::Unkeyed, vec![statement]).await;
        match read {
            Ok(results) => assert!(is_read && results[0].rows.len() == 2),
            Err(error) => assert!(!is_read && matches!(error, StoreError::Grown), "{error}"),
        }
    }
    let one = vec![Statement::new("SELECT 1", [])];
    assert!(readers.read(ReadKind::Unkeyed, one).await.is_ok());
    readers.close().await;
}

/// Each of them alone would let the log start again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_that_follow_each_other_do_not_keep_the_log() {
    const LONG: u32 = 4_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let mut connection = Connection::open(&path, Durability::Process, false).unwrap();
    connection.allocate_reserve().unwrap();
    connection.log_gate().set_long(LONG);
    let run = |connection: &mut Connection, sql| {
        connection.begin();
        connection.commit_with(&[Statement::new(sql, [])]).unwrap();
    };
    run(&mut connection, "CREATE TABLE t (x INTEGER NOT NULL)");
    let readers = Readers::open(&path, connection.log_gate()).await.unwrap();
    // Endless, so that the moment does not depend on the machine.
    let reading = tokio::spawn({
        let readers = readers.clone();
        async move {
            let batch = vec![
                Statement::new("SELECT count(*) FROM t", []),
                Statement::new(ENDLESS_STATEMENT, []),
            ];
            readers.read(ReadKind::Unkeyed, batch).await.err()
        }
    });
    while readers.usage().1 > 0 || readers.usage().0 == 0 {
        tokio::task::yield_now().await;
    }
    let (mut longest, mut restarted) = (0, false);
    while !restarted {
        run(&mut connection, "INSERT INTO t (x) VALUES (1)");
        restarted = longest >= LONG && log_pages() < LONG;
        longest = longest.max(log_pages());
    }
    let ended = reading.await.unwrap().unwrap();
    assert!(ended.is_outage(), "{ended}");
    let one = vec![Statement::new("SELECT 1", [])];
    assert!(readers.read(ReadKind::Unkeyed, one).await.is_ok());
    readers.close().await;
}
