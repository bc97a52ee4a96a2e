//! Undoing operations.

use super::*;
use switchyard::query::Query;

#[tokio::test]
async fn undo_restores_canceled_jobs_unchanged() {
    let engine = open(false).await;
    fill(&engine).await;
    let before = find_whole(&engine, "").await;
    assert_eq!(before.len(), 12);
    let operation = run(&engine, JobAction::Cancel, "").await;
    assert_eq!((operation.done, operation.skipped), (12, 0));
    assert!(operation.can_be_undone(engine.now(None)));
    assert_eq!(count(&engine, "").await, 0);
    assert_consistent(&engine).await;
    assert!(engine.known_tracked().contains("letter"));
    let undone = undo(&engine, operation.id).await;
    assert_eq!(undone.state, OperationState::Undone);
    assert_eq!((undone.restored, undone.not_restored), (12, 0));
    assert_same(&before, &find_whole(&engine, "").await);
    assert_consistent(&engine).await;
    assert_counts(&engine, 0.0).await;
    assert_eq!(ids(&find(&engine, "tag:vip").await), ["letter"]);
    // The jobs continue: a worker can still use its lease, and dependents are released.
    complete_now(&engine, "host-1", "held").await;
    let claim = Claim::of(QueueKey::qless("mail"), "w", 10);
    assert_eq!(ids(&engine.claim(claim, None).await.unwrap()), ["letter"]);
    complete_now(&engine, "w", "letter").await;
    let waiting = job(&engine, "after").await.dependencies;
    assert_eq!(waiting, ["later"]);
    // A second undo has no effect.
    let again = engine.undo_operation(operation.id).await.unwrap();
    assert_eq!(again, Err(OperationError::TooLate));
    assert_consistent(&engine).await;
    engine.close().await;
}

/// More than one transaction restores.
#[tokio::test]
async fn undo_restores_jobs_with_large_payloads() {
    let engine = open(false).await;
    for n in 0..12 {
        let payload = format!("\"{}{n:02}\"", "x".repeat(1 << 20));
        let put = Put {
            body: payload,
            ..new(&format!("large-{n:02}"))
        };
        add_to(&engine, "mail", vec![put]).await;
    }
    add_to(&engine, "mail", vec![new("small")]).await;
    let operation = run(&engine, JobAction::Cancel, "queue:mail").await;
    assert_eq!(operation.done, 13);
    assert_eq!(count(&engine, "").await, 0);
    let undone = undo(&engine, operation.id).await;
    assert_eq!((undone.restored, undone.not_restored), (13, 0));
    for n in 0..12 {
        let restored = String::from(job(&engine, &format!("large-{n:02}")).await.body);
        assert!(restored.ends_with(&format!("x{n:02}\"")), "{n}");
        assert_eq!(restored.len(), (1 << 20) + 4);
    }
    assert_consistent(&engine).await;
    engine.close().await;
}

#[tokio::test]
async fn undo_skips_jobs_that_can_no_longer_be_restored() {
    let engine = open_with_empty_queue_age(Duration::from_millis(500)).await;
    fill(&engine).await;
    let operation = run(&engine, JobAction::Cancel, "-queue:desk").await;
    assert_eq!((operation.done, operation.skipped), (10, 0));
    // Another job uses an ID, a queue was deleted, one was removed, and a dependency no longer exists.
    add_to(&engine, "mail", vec![new("later"), new("after")]).await;
    let books = engine.record_queue("books").await.unwrap();
    engine.delete_queue(&books).await.unwrap();
    let orders = QueueKey::relay("orders");
    let gone = async {
        while engine.known_queues().get(&orders).is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, gone).await.unwrap();
    let undone = undo(&engine, operation.id).await;
    assert_eq!((undone.restored, undone.not_restored), (7, 3));
    let skips = skip_reasons(&engine, operation.id).await;
    let taken = "not restored: another job now has the same ID";
    let expected = [
        ("1", "not restored: its queue was deleted"),
        ("after", taken),
        ("later", taken),
    ];
    assert_eq!(
        skips,
        expected.map(|(id, reason)| (id.to_owned(), reason.to_owned()))
    );
    let last = job(&engine, "last").await;
    assert_eq!(
        (last.state, last.dependencies),
        (State::Depends, vec!["after".to_owned()])
    );
    let relayed = engine.claim(Claim::of(orders, "", 5), None).await.unwrap();
    assert_eq!(ids(&relayed), ["two"]);
    assert_consistent(&engine).await;
    engine.close().await;
}

#[tokio::test]
async fn operations_respawn_and_requeue_dead_jobs() {
    let engine = open(false).await;
    let shop = QueueKey::lmstfy("shop", "mail");
    engine
        .publish(shop.clone(), vec![publishing(1)])
        .await
        .unwrap();
    let claim = Claim {
        lease_s: Some(1.0),
        ..Claim::of(shop, "", 1)
    };
    engine.claim(claim, None).await.unwrap();
    let short = |id: &str| Enqueue {
        timeout_s: 1,
        max_retries: Some(0),
        ..enqueueing("orders", id)
    };
    let jobs = vec![short("gone"), short("taken")];
    engine.enqueue(jobs, Mode::Unique).await.unwrap();
    let orders = QueueKey::relay("orders");
    engine.claim(Claim::of(orders, "", 2), None).await.unwrap();
    let dead = async {
        while count(&engine, "state:dead").await < 3 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, dead).await.unwrap();
    let again = vec![enqueueing("orders", "taken")];
    engine.enqueue(again, Mode::Unique).await.unwrap();
    let operation = run(&engine, JobAction::Retry, "state:dead").await;
    assert_eq!((operation.done, operation.skipped), (2, 1));
    let skips = skip_reasons(&engine, operation.id).await;
    let taken = "job \"taken\" already exists in queue \"orders\"";
    assert_eq!(skips, [("taken".to_owned(), taken.to_owned())]);
    assert_eq!(count(&engine, "state:waiting").await, 3);
    // Jobs that are still dead can be deleted, and are dead again after the undo.
    let before = find_whole(&engine, "").await;
    let operation = run(&engine, JobAction::Cancel, "state:dead").await;
    assert_eq!(operation.done, 1);
    assert_consistent(&engine).await;
    undo(&engine, operation.id).await;
    assert_same(&before, &find_whole(&engine, "").await);
    assert_consistent(&engine).await;
    engine.close().await;
}

#[tokio::test]
async fn a_stopped_operation_can_be_undone() {
    // More than a few batches, but few enough that even a busy machine counts all of them in time: uncounted jobs are
    // not kept for an undo.
    const JOBS: usize = 5_000;
    let engine = open(false).await;
    add_many(&engine, "q", JOBS).await;
    let id = begin(&engine, JobAction::Cancel, all("queue:q")).await;
    once(&engine, id, |operation| operation.done > 0).await;
    engine.stop_operation(id).await.unwrap().unwrap();
    let operation = ended(&engine, id).await;
    assert_eq!(operation.state, OperationState::Stopped);
    let done = usize::try_from(operation.done).unwrap();
    assert!((1..JOBS).contains(&done), "{done}");
    assert_eq!(count(&engine, "queue:q").await + done, JOBS);
    let again = engine.stop_operation(id).await.unwrap();
    assert_eq!(again, Err(OperationError::Ended));
    let undone = undo(&engine, id).await;
    assert_eq!(undone.restored, operation.done);
    assert_eq!(count(&engine, "queue:q").await, JOBS);
    assert_consistent(&engine).await;
    engine.close().await;
}

#[tokio::test]
async fn a_poll_finds_a_restored_record_first() {
    let engine = open(false).await;
    engine.create_queue("books").await.unwrap();
    let books = engine.record_queue("books").await.unwrap();
    for n in 1..=3 {
        let created = engine.create_record(&books, n.to_string(), "null".to_owned());
        created.await.unwrap();
    }
    let second = find(&engine, "queue:books").await;
    let second = second.iter().find(|job| job.key.id == "2").unwrap();
    let canceled = begin(
        &engine,
        JobAction::Cancel,
        JobSelection::Jobs(vec![second.seq]),
    )
    .await;
    assert_eq!(ended(&engine, canceled).await.done, 1);
    let free = Query::parse(r#"[["IS", "state", null]]"#).unwrap();
    let poll = async || {
        let polled = engine.poll_record(&books, &free, "1".to_owned()).await;
        polled.unwrap().unwrap().id
    };
    // The search of the first poll does not find the second record, which was modified before the third one.
    assert_eq!(poll().await, 1);
    assert_eq!(undo(&engine, canceled).await.restored, 1);
    assert_eq!(poll().await, 2);
    assert_eq!(poll().await, 3);
    engine.close().await;
}
