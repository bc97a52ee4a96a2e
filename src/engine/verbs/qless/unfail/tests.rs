use super::*;
use crate::engine::test_support::{read_number, run_statements};
use crate::engine::{Put, engine_without_tasks as engine};
use crate::store::Statement;

const FAILED: &str = "SELECT count(*) FROM jobs WHERE state = {failed}";

/// An engine with failed jobs whose rows have this size.
async fn engine_with_failed(count: usize, bytes: i64) -> Engine {
    let engine = engine().await;
    let job = || Put {
        body: "1".to_owned(),
        ..Put::default()
    };
    let jobs = (0..count).map(|_| job()).collect();
    let put = engine.put(QueueKey::qless("q"), jobs, String::new(), None);
    put.await.unwrap();
    let sql = "
UPDATE jobs SET state = {failed}, failure_group = 'g', failure_message = '', failure_worker = 'w', failure_at = 1,
    history = '[[\"note\",1,\"' || printf('%.*c', $1 - octet_length(body) - octet_length(tags) - 20, 'x') || '\",null]]'
WHERE (seq, version) IN (SELECT seq, version FROM jobs)";
    run_statements(&engine, [Statement::new(sql, [bytes.into()])]).await;
    let repair = engine.repair(None).await.unwrap();
    assert_eq!(repair.0.len(), repair.1);
    engine
}

#[tokio::test]
async fn a_transaction_requeues_4_mib_of_failed_jobs_before_its_last_one() {
    for (bytes, expected) in [((1 << 20) - 1, 5), (1 << 20, 4), ((1 << 20) + 1, 4)] {
        let engine = engine_with_failed(6, bytes).await;
        let oldest = Oldest::Failed {
            group: "g".to_owned(),
            count: 250,
            until: Time(i64::MAX),
        };
        let take = |work: &mut UnitOfWork| Ok(work.take_oldest().len());
        let taken = engine.write(needs_of_oldest(oldest), None, 1, take);
        assert_eq!(taken.await.unwrap(), expected, "{bytes} bytes");
        engine.close().await;
    }
}

#[tokio::test]
async fn all_large_failed_jobs_are_requeued_in_several_transactions() {
    for (count, left) in [(1_000, 0), (9, 1), (5, 5), (4, 6), (1, 9)] {
        let engine = engine_with_failed(10, 1 << 20).await;
        let moved = engine.unfail("g", None, count, None).await.unwrap();
        assert_eq!(moved, count.min(10));
        assert_eq!(read_number(&engine, FAILED).await, left);
        assert_eq!(engine.check(None).await.unwrap(), []);
        engine.close().await;
    }
}

#[tokio::test]
async fn a_job_that_fails_after_the_request_is_not_requeued() {
    let engine = engine_with_failed(10, 1 << 20).await;
    let later = "UPDATE jobs SET since = since + 3600000000
        WHERE (seq, version) IN (SELECT seq, version FROM jobs ORDER BY seq DESC LIMIT 1)";
    run_statements(&engine, [Statement::new(later, [])]).await;
    assert_eq!(engine.unfail("g", None, 1_000, None).await.unwrap(), 9);
    assert_eq!(read_number(&engine, FAILED).await, 1);
    // With the time of the client, which may run backwards, all jobs count.
    let now = Some(Time(1_000_000));
    assert_eq!(engine.unfail("g", None, 1_000, now).await.unwrap(), 1);
    engine.close().await;
}
