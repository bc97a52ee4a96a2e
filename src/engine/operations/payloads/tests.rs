//! What happens to a job that changes between the match of its payload and the transaction.

use std::collections::VecDeque;

use crate::engine::model::job::{JobKey, QueueKey};
use crate::engine::operations::batch::Batch;
use crate::engine::operations::lookahead::{BATCH, FoundJob, Lookahead};
use crate::engine::operations::run::RunnerState;
use crate::engine::operations::{JobAction, JobSelection, NewOperation, OperationEstimate, rows};
use crate::engine::queries::evaluate::blocking_permit;
use crate::engine::test_support::engine_without_tasks;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::{Engine, PageStart, Put};
use crate::search::Search;

const SEARCH: &str = "payload:wanted";

async fn put(engine: &Engine, id: &str, body: &str) {
    let job = Put {
        id: Some(id.to_owned()),
        body: body.to_owned(),
        ..Put::default()
    };
    let queue = QueueKey::qless("mail");
    let client = "client".to_owned();
    for done in engine.put(queue, vec![job], client, None).await.unwrap() {
        done.unwrap();
    }
}

/// Starts an operation that cancels what matches. Returns its ID.
async fn begin(engine: &Engine) -> i64 {
    let new = NewOperation {
        who: "ada".to_owned(),
        action: JobAction::Cancel,
        selection: JobSelection::Search(SEARCH.to_owned()),
        estimate: OperationEstimate::default(),
    };
    engine.start_operation(new).await.unwrap().unwrap()
}

/// The jobs with these IDs.
async fn targets(engine: &Engine, ids: &[&str]) -> Vec<FoundJob> {
    let mut targets = Vec::new();
    for id in ids {
        let key = JobKey::qless(*id);
        let job = engine.job(&key).await.unwrap().unwrap();
        targets.push(FoundJob {
            seq: job.seq,
            bytes: 100,
            key_and_queue: Some((key, QueueKey::qless("mail"))),
        });
    }
    targets
}

/// Matches the payloads, calls `meanwhile`, and runs the transaction. Returns the number of processed jobs.
async fn run_batch(
    engine: &Engine,
    id: i64,
    targets: &[FoundJob],
    gives_up: bool,
    meanwhile: impl AsyncFnOnce(),
) -> usize {
    let search = Search::parse(SEARCH).unwrap();
    let payloads = engine.match_payloads_of(&search, targets).await.unwrap();
    meanwhile().await;
    let rows = engine.readers().rows(rows::load(&[id])).await.unwrap();
    let (operation, version) = rows::operation(&rows[0]).unwrap();
    let batch = Batch {
        id,
        version,
        search: Some(search),
        payloads: Some(payloads),
        gives_up,
        targets: targets.to_vec(),
        processed_down_to: 0,
        is_last: true,
    };
    let needs = batch.needs(&operation);
    let verb = move |work: &mut UnitOfWork| Ok(batch.run(work));
    engine.write(needs, None, 1, verb).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_changed_job_ends_the_batch_before_it() {
    let engine = engine_without_tasks().await;
    for id in ["a", "b", "c"] {
        put(&engine, id, "\"wanted\"").await;
    }
    let id = begin(&engine).await;
    let all = targets(&engine, &["c", "b", "a"]).await;
    let change = async || put(&engine, "b", "\"other\"").await;
    assert_eq!(run_batch(&engine, id, &all, false, change).await, 1);
    let operation = engine.operation(id).await.unwrap().unwrap();
    assert_eq!((operation.done, operation.skipped), (1, 0));
    assert!(operation.state.is_active());
    assert_eq!(operation.processed_down_to, all[0].seq);
    // Its payload is matched again, and no longer matches.
    assert_eq!(
        run_batch(&engine, id, &all[1..], false, async || ()).await,
        2
    );
    let operation = engine.operation(id).await.unwrap().unwrap();
    assert_eq!((operation.done, operation.skipped), (2, 1));
    assert!(!operation.state.is_active());
    let left = targets(&engine, &["b"]).await;
    assert_eq!(left.len(), 1);
}

#[tokio::test]
async fn a_job_that_keeps_changing_is_skipped_after_a_number_of_attempts() {
    let engine = engine_without_tasks().await;
    put(&engine, "a", "\"wanted\"").await;
    let id = begin(&engine).await;
    let all = targets(&engine, &["a"]).await;
    let change = async || put(&engine, "a", "\"wanted\"").await;
    for _ in 0..2 {
        assert_eq!(run_batch(&engine, id, &all, false, change).await, 0);
        let operation = engine.operation(id).await.unwrap().unwrap();
        assert!(operation.state.is_active());
    }
    assert_eq!(run_batch(&engine, id, &all, true, change).await, 1);
    let skips = engine.skips(id, PageStart::First, 10).await.unwrap().rows;
    assert_eq!(
        skips[0].reason,
        "the job changes too often to compare its payload with the search"
    );
}

#[test]
fn a_job_may_change_ten_times() {
    let target = |seq| FoundJob {
        seq,
        bytes: 1,
        key_and_queue: None,
    };
    let targets: VecDeque<FoundJob> = [9, 8, 7].map(target).into();
    let mut ahead = Lookahead::new(10, targets, None);
    for changes in 0..10 {
        assert!(!ahead.gives_up(), "{changes}");
        let batch = ahead.take(BATCH);
        ahead.look_again(&batch, 0, 10);
        assert_eq!((ahead.from, ahead.targets.len()), (10, 3));
    }
    assert!(ahead.gives_up());
    let batch = ahead.take(BATCH);
    ahead.look_again(&batch, 1, 10);
    assert!(!ahead.gives_up());
    assert_eq!((ahead.from, ahead.targets.len()), (9, 2));
}

#[tokio::test]
async fn an_operation_that_waits_for_a_thread_does_not_stop_the_others() {
    let engine = engine_without_tasks().await;
    put(&engine, "large", &format!("\"{}\"", "x".repeat(200_000))).await;
    let waiting = begin(&engine).await;
    put(&engine, "listed", "1").await;
    let listed = targets(&engine, &["listed"]).await;
    let new = NewOperation {
        who: "ada".to_owned(),
        action: JobAction::Cancel,
        selection: JobSelection::Jobs(listed.iter().map(|target| target.seq).collect()),
        estimate: OperationEstimate::default(),
    };
    let other = engine.start_operation(new).await.unwrap().unwrap();
    let permits = [blocking_permit().await, blocking_permit().await];
    assert!(permits.iter().all(Option::is_some));
    engine
        .run_operation_round(&mut RunnerState::default())
        .await
        .unwrap();
    let done = async |id| engine.operation(id).await.unwrap().unwrap().done;
    assert_eq!((done(waiting).await, done(other).await), (0, 1));
    drop(permits);
    engine.finish_operations().await.unwrap();
    let ended = engine.operation(waiting).await.unwrap().unwrap();
    assert!(!ended.state.is_active());
    engine.close().await;
}
