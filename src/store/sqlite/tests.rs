use super::*;
use crate::store::rows::Statement;

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
    const ENDLESS: &str = "
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT count(*) FROM numbers";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    let readers = Readers::open(&path).await.unwrap();
    let reading = tokio::spawn({
        let readers = readers.clone();
        async move { readers.read(vec![Statement::new(ENDLESS, [])]).await }
    });
    while readers.usage().1 > 0 {
        tokio::task::yield_now().await;
    }
    readers.close().await;
    let error = reading.await.unwrap().err().unwrap();
    assert!(error.is_outage(), "{error}");
}
