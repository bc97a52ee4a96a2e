//! The workers of a queue, the queues of a worker, and how fast a queue grows or shrinks.

use super::*;
use switchyard::engine::{ActivityRow, JobAction, JobSelection, NewOperation, RunCounts};

/// Name or queue, running jobs, and results.
type Seen = (String, i64, RunCounts);

fn seen<T>(rows: &[ActivityRow<T>], name: impl Fn(&T) -> &str) -> Vec<Seen> {
    let mut rows: Vec<Seen> = rows
        .iter()
        .map(|row| {
            (
                name(&row.subject).to_owned(),
                row.running,
                row.results.counts,
            )
        })
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

async fn workers(engine: &Engine) -> Vec<Seen> {
    let found = engine.queue_activity(&q()).await.unwrap().unwrap().workers;
    assert!(found.listed.iter().all(|row| row.last_seen.is_some()));
    assert_eq!((found.more, found.is_partial), (0, false));
    seen(&found.listed, String::as_str)
}

async fn claim(engine: &Engine, queue: &QueueKey, worker: &str, count: usize) -> Vec<String> {
    let claimed = engine.claim(Claim::of(queue.clone(), worker, count), None);
    ids(&claimed.await.unwrap())
}

async fn done(engine: &Engine, worker: &str, id: &str) {
    let job = (JobKey::qless(id), "{}".to_owned(), None);
    let completed = engine.complete(vec![job], holder(worker), None).await;
    completed.unwrap().remove(0).unwrap();
}

#[tokio::test]
async fn the_workers_of_a_queue_have_their_results() {
    let engine = open(false).await;
    let there = QueueKey::qless("there");
    assert_eq!(engine.queue_activity(&q()).await.unwrap(), None);
    add(&engine, &q(), ["a", "b", "c", "d", "e"].map(new).to_vec()).await;
    add(&engine, &there, vec![new("other")]).await;
    assert_eq!(claim(&engine, &q(), "ada", 4).await.len(), 4);
    assert_eq!(claim(&engine, &q(), "bob", 2).await, ["e"]);
    assert!(claim(&engine, &q(), "idle", 1).await.is_empty());
    assert_eq!(claim(&engine, &there, "ada", 1).await, ["other"]);
    done(&engine, "ada", "a").await;
    done(&engine, "ada", "other").await;
    let fail = Fail {
        key: JobKey::qless("b"),
        group: "g".to_owned(),
        message: "m".to_owned(),
        body: None,
    };
    let failed = engine.fail(vec![fail], holder("ada"), None).await;
    failed.unwrap().remove(0).unwrap();
    let retry = Retry {
        key: JobKey::qless("c"),
        delay: 60.0,
        reason: None,
    };
    let retried = engine.retry(vec![retry], holder("ada"), None).await;
    retried.unwrap().remove(0).unwrap();
    let lost = engine.time_out(vec![JobKey::qless("e")], None).await;
    lost.unwrap().remove(0).unwrap();
    let one_of_each = RunCounts {
        completed: 1,
        failed: 1,
        retried: 1,
        lost: 0,
    };
    let lost = RunCounts {
        lost: 1,
        ..RunCounts::default()
    };
    assert_eq!(
        workers(&engine).await,
        [
            ("ada".to_owned(), 1, one_of_each),
            ("bob".to_owned(), 0, lost),
            ("idle".to_owned(), 0, RunCounts::default()),
        ]
    );
    let of_ada = engine.queues_of_worker("ada").await.unwrap();
    let completed = RunCounts {
        completed: 1,
        ..RunCounts::default()
    };
    assert_eq!(
        seen(&of_ada.listed, |queue| queue.key.name.as_str()),
        [
            ("q".to_owned(), 1, one_of_each),
            ("there".to_owned(), 0, completed),
        ]
    );
    assert!(of_ada.listed.iter().all(|row| row.results.runs.len() == 1));
    let of_stranger = engine.queues_of_worker("stranger").await.unwrap();
    assert_eq!(of_stranger.listed, []);
    engine.close().await;
}

#[tokio::test]
async fn the_rates_of_a_queue_count_what_entered_and_ended() {
    let engine = open(false).await;
    add(&engine, &q(), ["a", "b", "c", "d"].map(new).to_vec()).await;
    claim(&engine, &q(), "ada", 1).await;
    done(&engine, "ada", "a").await;
    let rates = engine.queue_activity(&q()).await.unwrap().unwrap().rates;
    // The average of between five and six minutes.
    assert!(
        rates.put >= 4.0 / 6.0 && rates.put <= 4.0 / 5.0,
        "{rates:?}"
    );
    assert!((rates.put - 4.0 * rates.ended).abs() < 1e-9, "{rates:?}");
    engine.close().await;
}

#[tokio::test]
async fn an_operation_takes_all_jobs_from_a_worker() {
    let engine = open(false).await;
    add(&engine, &q(), ["a", "b", "c", "d"].map(new).to_vec()).await;
    assert_eq!(claim(&engine, &q(), "ada", 2).await, ["a", "b"]);
    assert_eq!(claim(&engine, &q(), "bob", 1).await, ["c"]);
    let selection = JobSelection::Search("worker:ada".to_owned());
    let estimate = engine.estimate_operation(&JobAction::TimeOut, &selection);
    let estimate = estimate.await.unwrap().unwrap();
    assert_eq!((estimate.jobs, estimate.applicable), (2, 2));
    let operation = NewOperation {
        who: "olga".to_owned(),
        action: JobAction::TimeOut,
        selection,
        estimate,
    };
    let id = engine.start_operation(operation).await.unwrap().unwrap();
    let ended = loop {
        let operation = engine.operation(id).await.unwrap().unwrap();
        if !operation.state.is_active() {
            break operation;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!((ended.done, ended.skipped), (2, 0));
    assert!(ended.undo_until.is_none());
    assert_eq!(job(&engine, "a").await.state, State::TimedOut);
    assert_eq!(job(&engine, "c").await.state, State::Running);
    // Timed-out jobs are claimed first.
    let mut next = claim(&engine, &q(), "bob", 2).await;
    next.sort();
    assert_eq!(next, ["a", "b"]);
    engine.close().await;
}
