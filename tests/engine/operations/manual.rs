//! Retrying a job with changes, and completing one by hand: what they change, what they refuse, and how they are
//! undone.

use super::*;
use switchyard::engine::{EventKind, ManualActionError, SeenJob};

/// The job as an operator sees it now.
async fn seen(engine: &Engine, id: &str) -> SeenJob {
    let (job, now) = (job(engine, id).await, engine.now(None));
    SeenJob {
        state: job.effective_state(now),
        since: job.state_since(now),
        key: job.key,
    }
}

async fn retry(
    engine: &Engine,
    seen: SeenJob,
    body: Option<&str>,
    delay: f64,
) -> Result<i64, ManualActionError> {
    let body = body.map(str::to_owned);
    let done = engine.edit_and_retry(seen, body, delay, "ada".to_owned());
    done.await.unwrap()
}

async fn complete_manually(
    engine: &Engine,
    seen: SeenJob,
) -> Result<(i64, bool), ManualActionError> {
    let done = engine.complete_manually(seen, "ada".to_owned());
    done.await.unwrap()
}

fn notes(job: &Job) -> Vec<String> {
    let notes = job.events().into_iter();
    let notes = notes.filter(|event| event.what == EventKind::Note);
    notes.filter_map(|event| event.subject).collect()
}

/// Checks that two jobs are equal except for their histories.
#[track_caller]
fn assert_equal_but_history(before: &Job, after: &Job) {
    let history = before.history.clone();
    let after = Job {
        history,
        ..after.clone()
    };
    assert_eq!(*before, after);
}

async fn failed_job(engine: &Engine, id: &str, body: &str) -> Job {
    let put = Put {
        body: body.to_owned(),
        retries: Some(2),
        ..new(id)
    };
    add_to(engine, "mail", vec![put]).await;
    fail_all(engine, "mail", "Boom").await;
    job(engine, id).await
}

#[tokio::test]
async fn a_failed_job_is_retried_with_another_payload_and_a_delay_and_undone() {
    let engine = open(false).await;
    // Long bodies have rows of their own.
    for (id, old, new) in [
        ("a", r#"{"to":"x"}"#.to_owned(), r#"{"to":"y"}"#.to_owned()),
        ("b", format!("\"{}\"", "o".repeat(40_000)), "1".to_owned()),
        ("c", "1".to_owned(), format!("\"{}\"", "n".repeat(40_000))),
    ] {
        let before = failed_job(&engine, id, &old).await;
        let operation = retry(&engine, seen(&engine, id).await, Some(&new), 3_600.0).await;
        let operation = operation.unwrap();
        let after = job(&engine, id).await;
        assert_eq!(after.state, State::Scheduled);
        assert_eq!((after.ready_at.0 - after.since.0) / 1_000_000, 3_600);
        assert_eq!(String::from(after.body.clone()), new);
        assert_eq!(after.remaining, 2);
        assert_eq!(notes(&after), ["payload replaced by ada"]);
        assert_consistent(&engine).await;
        let listed = engine.operation(operation).await.unwrap().unwrap();
        assert_eq!((listed.action, listed.done), (JobAction::EditAndRetry, 1));
        let undone = undo(&engine, operation).await;
        assert_eq!((undone.restored, undone.not_restored), (1, 0));
        let restored = job(&engine, id).await;
        assert_equal_but_history(&before, &restored);
        assert_eq!(notes(&restored).len(), 2);
        assert_consistent(&engine).await;
        assert_counts(&engine, 0.0).await;
    }
    assert_eq!(engine.failure_groups().await.unwrap()[0].count, 3);
    engine.close().await;
}

#[tokio::test]
async fn a_retry_without_changes_keeps_the_payload() {
    let engine = open(false).await;
    failed_job(&engine, "a", "{\"n\":  1.0}").await;
    retry(&engine, seen(&engine, "a").await, None, 0.0)
        .await
        .unwrap();
    let after = job(&engine, "a").await;
    assert_eq!(after.state, State::Waiting);
    assert_eq!(String::from(after.body.clone()), "{\"n\":  1.0}");
    assert_eq!(notes(&after), [""; 0]);
    engine.close().await;
}

#[tokio::test]
async fn a_job_that_has_changed_since_is_refused() {
    let engine = open(false).await;
    failed_job(&engine, "a", "{}").await;
    let old = seen(&engine, "a").await;
    let missing = SeenJob {
        key: JobKey::qless("none"),
        ..old.clone()
    };
    let refused = retry(&engine, missing.clone(), None, 0.0).await;
    assert_eq!(refused, Err(ManualActionError::Missing));
    assert_eq!(
        complete_manually(&engine, missing).await,
        Err(ManualActionError::Missing)
    );
    // It was retried, and has failed again.
    engine.retry_failed(JobKey::qless("a"), None).await.unwrap();
    let waiting = retry(&engine, old.clone(), Some("1"), 0.0).await;
    assert_eq!(
        waiting,
        Err(ManualActionError::Changed(EffectiveState::Waiting))
    );
    fail_all(&engine, "mail", "Boom").await;
    let again = retry(&engine, old.clone(), Some("1"), 0.0).await;
    assert_eq!(
        again,
        Err(ManualActionError::Changed(EffectiveState::Failed))
    );
    let again = complete_manually(&engine, old).await;
    assert_eq!(
        again,
        Err(ManualActionError::Changed(EffectiveState::Failed))
    );
    let after = job(&engine, "a").await;
    assert_eq!(
        (after.state, String::from(after.body)),
        (State::Failed, "{}".to_owned())
    );
    // A job that is not failed, and one that is complete.
    add_to(&engine, "mail", vec![new("b")]).await;
    let waiting = retry(&engine, seen(&engine, "b").await, None, 0.0).await;
    assert_eq!(
        waiting,
        Err(ManualActionError::NotFailed(EffectiveState::Waiting))
    );
    complete_manually(&engine, seen(&engine, "b").await)
        .await
        .unwrap();
    let complete = complete_manually(&engine, seen(&engine, "b").await).await;
    assert_eq!(complete, Err(ManualActionError::Complete));
    assert_consistent(&engine).await;
    engine.close().await;
}

#[tokio::test]
async fn a_retry_cannot_be_undone_once_a_worker_has_the_job() {
    let engine = open(false).await;
    failed_job(&engine, "a", "{}").await;
    let operation = retry(&engine, seen(&engine, "a").await, Some("1"), 0.0).await;
    let claim = Claim::of(QueueKey::qless("mail"), "w", 1);
    assert_eq!(ids(&engine.claim(claim, None).await.unwrap()), ["a"]);
    let undone = undo(&engine, operation.unwrap()).await;
    assert_eq!((undone.restored, undone.not_restored), (0, 1));
    let skips = skip_reasons(&engine, undone.id).await;
    let changed = "not restored: the job has changed since";
    assert_eq!(skips, [("a".to_owned(), changed.to_owned())]);
    complete_now(&engine, "w", "a").await;
    assert_consistent(&engine).await;
    engine.close().await;
}

#[tokio::test]
async fn a_job_in_any_state_is_completed_by_hand_and_undone() {
    let engine = open(false).await;
    fill(&engine).await;
    // “last” depends on “after”; nothing depends on the others.
    for id in ["held", "plain", "torn", "last"] {
        let before = job(&engine, id).await;
        let (operation, can_be_undone) = complete_manually(&engine, seen(&engine, id).await)
            .await
            .unwrap();
        assert!(can_be_undone, "{id}");
        let after = job(&engine, id).await;
        assert_eq!(after.state, State::Complete, "{id}");
        assert_eq!((after.lease, after.failure), (None, None), "{id}");
        assert_eq!(after.dependencies, [""; 0], "{id}");
        assert_eq!(after.body, before.body);
        assert_consistent(&engine).await;
        if id == "held" {
            let turn = (JobKey::qless(id), "{}".to_owned(), None);
            let late = engine.complete(vec![turn], holder("host-1"), None).await;
            let late = late.unwrap().remove(0);
            assert!(matches!(late, Err(Error::NotRunning { .. })), "{late:?}");
        }
        let undone = undo(&engine, operation).await;
        assert_eq!((undone.restored, undone.not_restored), (1, 0), "{id}");
        assert_equal_but_history(&before, &job(&engine, id).await);
        assert_consistent(&engine).await;
        assert_counts(&engine, 0.0).await;
    }
    // The worker still has its lease.
    complete_now(&engine, "host-1", "held").await;
    engine.close().await;
}

#[tokio::test]
async fn completing_by_hand_releases_dependents_and_cannot_be_undone_then() {
    let engine = open(false).await;
    fill(&engine).await;
    for (id, released) in [("letter", State::Depends), ("later", State::Waiting)] {
        let (operation, can_be_undone) = complete_manually(&engine, seen(&engine, id).await)
            .await
            .unwrap();
        assert!(!can_be_undone, "{id}");
        let refused = engine.undo_operation(operation).await.unwrap();
        assert_eq!(refused, Err(OperationError::TooLate));
        assert_eq!(job(&engine, "after").await.state, released);
    }
    let history = job(&engine, "letter").await;
    let kinds: Vec<EventKind> = history
        .events()
        .into_iter()
        .map(|event| event.what)
        .collect();
    assert_eq!(kinds, [EventKind::Put, EventKind::Note, EventKind::Done]);
    assert_consistent(&engine).await;
    assert_counts(&engine, 0.0).await;
    engine.close().await;
}
