//! Operations: their effect, what they skip, and what an interruption leaves.

mod manual;
mod undone;

use std::time::Duration;

use super::*;
use switchyard::engine::{
    Enqueue, JobAction, JobSelection, Mode, NewOperation, Operation, OperationError,
    OperationState, PageStart, Publish, SearchLimits, Skip,
};
use switchyard::search::Search;

/// A longer wait is a hang.
const WAIT_MAX: Duration = Duration::from_secs(60);

fn all(text: &str) -> JobSelection {
    JobSelection::Search(text.to_owned())
}

/// Starts an operation with the current estimate. Returns its ID.
async fn begin(engine: &Engine, action: JobAction, selection: JobSelection) -> i64 {
    let counted = engine
        .estimate_operation(&action, &selection)
        .await
        .unwrap()
        .unwrap();
    let asked = NewOperation {
        who: "ada".to_owned(),
        action,
        selection,
        estimate: counted,
    };
    engine.start_operation(asked).await.unwrap().unwrap()
}

/// Waits until `condition` is true for the operation. Checks after every change.
async fn once(engine: &Engine, id: i64, condition: impl Fn(&Operation) -> bool) -> Operation {
    let mut changes = engine.changes();
    let so = async {
        loop {
            let operation = engine
                .operation(id)
                .await
                .unwrap()
                .expect("the operation exists");
            if condition(&operation) {
                return operation;
            }
            changes.changed().await.unwrap();
        }
    };
    let so = tokio::time::timeout(WAIT_MAX, so).await;
    so.expect("the operation continues")
}

async fn ended(engine: &Engine, id: i64) -> Operation {
    once(engine, id, |operation| !operation.state.is_active()).await
}

/// Starts an operation and waits until it has ended.
pub async fn run(engine: &Engine, action: JobAction, text: &str) -> Operation {
    let id = begin(engine, action, all(text)).await;
    ended(engine, id).await
}

async fn undo(engine: &Engine, id: i64) -> Operation {
    engine.undo_operation(id).await.unwrap().unwrap();
    ended(engine, id).await
}

async fn find(engine: &Engine, text: &str) -> Vec<Job> {
    let reach = SearchLimits {
        jobs: 1_000_000,
        scanned: 1_000_000,
        time: WAIT_MAX,
    };
    let search = Search::parse(text).unwrap();
    let found = engine.search(&search, None, reach, None).await.unwrap();
    assert!(!found.is_cut);
    found.jobs
}

/// The matching jobs with their histories.
async fn find_whole(engine: &Engine, text: &str) -> Vec<Job> {
    let keys = find(engine, text).await.into_iter().map(|job| job.key);
    let keys: Vec<_> = keys.collect();
    let jobs = engine.short_jobs_by_key(&keys).await.unwrap();
    jobs.into_iter().map(Option::unwrap).collect()
}

async fn count(engine: &Engine, text: &str) -> usize {
    find(engine, text).await.len()
}

async fn assert_consistent(engine: &Engine) {
    let problems = engine.check(None).await.unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}

/// The reasons of skipped jobs, by ID.
async fn skip_reasons(engine: &Engine, id: i64) -> Vec<(String, String)> {
    let skips = engine.skips(id, PageStart::First, 1_000).await.unwrap();
    let one = |skip: Skip| {
        (
            skip.queue_and_id.map(|(_, id)| id).unwrap_or_default(),
            skip.reason,
        )
    };
    let mut skips: Vec<_> = skips.rows.into_iter().map(one).collect();
    skips.sort();
    skips
}

async fn add_many(engine: &Engine, queue: &str, count: usize) {
    let jobs: Vec<Put> = (0..count).map(|i| new(&format!("{queue}-{i}"))).collect();
    for some in jobs.chunks(1_000) {
        add_to(engine, queue, some.to_vec()).await;
    }
}

/// Checks that both contain the same jobs, with equal fields.
#[track_caller]
fn assert_same(before: &[Job], after: &[Job]) {
    assert_eq!(ids(before), ids(after));
    for (before, after) in before.iter().zip(after) {
        assert_eq!(before, after);
    }
}

/// Fails all waiting jobs of the queue.
async fn fail_all(engine: &Engine, queue: &str, group: &str) {
    let claim = Claim::of(QueueKey::qless(queue), "ada", 1_000_000);
    let jobs = engine.claim(claim, None).await.unwrap();
    let fail = |job: Job| Fail {
        key: job.key,
        group: group.to_owned(),
        message: "boom".to_owned(),
        body: None,
    };
    let fails = jobs.into_iter().map(fail).collect();
    for done in engine.fail(fails, holder("ada"), None).await.unwrap() {
        done.unwrap();
    }
}

async fn complete_now(engine: &Engine, worker: &str, id: &str) {
    let turn = (JobKey::qless(id), "{}".to_owned(), None);
    let done = engine.complete(vec![turn], holder(worker), None).await;
    done.unwrap().remove(0).unwrap();
}

fn publishing(tries: u16) -> Publish {
    Publish {
        body: "eyJ1c2VyIjp7ImlkIjo0Mn19".to_owned(),
        delay_s: 0,
        ttl_s: 7_200,
        tries,
        versioned: false,
        attributes: Some(r#"{"a":"b"}"#.to_owned()),
    }
}

fn enqueueing(queue: &str, id: &str) -> Enqueue {
    Enqueue {
        queue: QueueKey::relay(queue),
        id: id.to_owned(),
        timeout_s: 3_600,
        max_retries: Some(3),
        payload: r#"[{"user": {"id": 42}}]"#.to_owned(),
        state: Some("7".to_owned()),
        run_at: None,
    }
}

/// Jobs of every protocol, in many states, with all optional fields.
async fn fill(engine: &Engine) {
    let letter = Put {
        klass: Some("Mail::Send".to_owned()),
        tags: Some(vec!["vip".to_owned(), "<b>".to_owned()]),
        priority: Some(0.1 + 0.2),
        body: r#"{"a":  "\u0001ü", "big": 12345678901234567890}"#.to_owned(),
        ..new("letter")
    };
    let later = Put {
        delay: Some(1_800.0),
        ..new("later")
    };
    let after = |id: &str, on: &[&str]| Put {
        depends: Some(on.iter().map(|id| (*id).to_owned()).collect()),
        ..new(id)
    };
    let chain = vec![
        letter,
        later,
        after("after", &["letter", "later"]),
        after("last", &["after"]),
    ];
    add_to(engine, "mail", chain).await;
    add_to(engine, "desk", vec![new("held"), new("plain")]).await;
    let claim = Claim::of(QueueKey::qless("desk"), "host-1", 1);
    assert_eq!(ids(&engine.claim(claim, None).await.unwrap()), ["held"]);
    add_to(engine, "broken", vec![new("torn")]).await;
    fail_all(engine, "broken", "TimeoutError").await;
    let shop = QueueKey::lmstfy("shop", "mail");
    engine
        .publish(shop.clone(), vec![publishing(3), publishing(3)])
        .await
        .unwrap();
    let claim = Claim {
        lease_s: Some(3_600.0),
        ..Claim::of(shop, "", 1)
    };
    engine.claim(claim, None).await.unwrap();
    let jobs = vec![enqueueing("orders", "one"), enqueueing("orders", "two")];
    engine.enqueue(jobs, Mode::Unique).await.unwrap();
    let orders = Claim::of(QueueKey::relay("orders"), "", 1);
    engine.claim(orders, None).await.unwrap();
    engine.create_queue("books").await.unwrap();
    let books = engine.record_queue("books").await.unwrap();
    let payload = r#"{"title":"Dune"}"#.to_owned();
    let state = r#""NEW""#.to_owned();
    engine.create_record(&books, payload, state).await.unwrap();
    let track = vec![(JobKey::qless("letter"), Vec::new())];
    engine.track(track, None).await.unwrap();
}

#[tokio::test]
async fn operations_retry_thousands_of_failed_jobs_in_batches() {
    let engine = open(false).await;
    add_many(&engine, "mail", 3_000).await;
    fail_all(&engine, "mail", "E").await;
    add_many(&engine, "other", 10).await;
    fail_all(&engine, "other", "F").await;
    let operation = run(&engine, JobAction::Retry, "state:failed type:E").await;
    assert_eq!(operation.state, OperationState::Done);
    assert_eq!((operation.total, operation.is_lower_bound), (3_000, false));
    assert_eq!((operation.done, operation.skipped), (3_000, 0));
    assert!(operation.started_at <= operation.ended_at && operation.undo_until.is_none());
    assert_eq!(operation.who, "ada");
    assert_eq!(count(&engine, "state:waiting queue:mail").await, 3_000);
    assert_eq!(count(&engine, "state:failed").await, 10);
    let (total, listed) = engine.operations(PageStart::First, 9).await.unwrap();
    assert_eq!((total, listed.rows), (1, vec![operation]));
    assert_consistent(&engine).await;
    engine.close().await;
}

fn rename_tag(from: &str, to: &str) -> JobAction {
    JobAction::RenameTag {
        from: from.to_owned(),
        to: to.to_owned(),
    }
}

#[tokio::test]
async fn operations_skip_jobs_and_store_the_reason() {
    let engine = open(false).await;
    fill(&engine).await;
    let shop = find(&engine, "api:lmstfy").await;
    let published: Vec<&str> = shop.iter().map(|job| job.key.id.as_str()).collect();
    for (action, done, reason) in [
        (
            JobAction::Tag {
                tag: "new".to_owned(),
            },
            7,
            "jobs have no tags",
        ),
        (
            JobAction::Untag {
                tag: "vip".to_owned(),
            },
            7,
            "jobs have no tags",
        ),
        (
            JobAction::Priority { priority: 5.0 },
            7,
            "jobs have no priority",
        ),
        (rename_tag("new", "newer"), 7, "jobs have no tags"),
        (rename_tag("newer", "new"), 7, "jobs have no tags"),
        (JobAction::Track, 7, "jobs cannot be tracked"),
        (JobAction::Untrack, 7, "jobs cannot be tracked"),
        (
            JobAction::Move {
                queue: "there".to_owned(),
            },
            7,
            "jobs cannot be moved to another queue",
        ),
    ] {
        let estimate = engine
            .estimate_operation(&action, &all(""))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (estimate.jobs, estimate.applicable, estimate.samples.len()),
            (12, done, 3)
        );
        let operation = run(&engine, action.clone(), "").await;
        assert_eq!((operation.done, operation.skipped), (done, 5), "{action:?}");
        let mut expected = vec![
            ("1".to_owned(), format!("Jobq {reason}")),
            ("one".to_owned(), format!("Relay {reason}")),
            ("two".to_owned(), format!("Relay {reason}")),
        ];
        for id in &published {
            expected.push(((*id).to_owned(), format!("lmstfy {reason}")));
        }
        expected.sort();
        assert_eq!(skip_reasons(&engine, operation.id).await, expected);
    }
    assert_eq!(count(&engine, "tag:new priority:5 queue:there").await, 7);
    assert_eq!(count(&engine, "tag:vip").await, 0);
    assert!(!engine.known_tracked().contains("letter"));
    assert_consistent(&engine).await;
    engine.close().await;
}

#[tokio::test]
async fn the_error_of_one_job_is_its_skip_reason() {
    let engine = open(false).await;
    fill(&engine).await;
    add_to(&engine, "done", vec![new("done")]).await;
    engine
        .claim(Claim::of(QueueKey::qless("done"), "w", 1), None)
        .await
        .unwrap();
    complete_now(&engine, "w", "done").await;
    let operation = run(&engine, JobAction::Cancel, "class:Mail* api:qless").await;
    assert_eq!((operation.done, operation.skipped), (0, 1));
    let skips = skip_reasons(&engine, operation.id).await;
    assert_eq!(
        skips[0].1,
        "job \"letter\" cannot be canceled because other jobs depend on it: after"
    );
    let operation = run(&engine, JobAction::Cancel, "done").await;
    assert_eq!(
        skip_reasons(&engine, operation.id).await[0].1,
        "job \"done\" is already complete"
    );
    assert_eq!(operation.undo_until, None);
    let operation = run(&engine, JobAction::Retry, "later").await;
    let skips = skip_reasons(&engine, operation.id).await;
    assert_eq!(
        skips[0].1,
        "job \"later\" is in state scheduled, not failed"
    );
    assert_consistent(&engine).await;
    engine.close().await;
}

#[tokio::test]
async fn operations_on_listed_jobs_ignore_later_jobs() {
    let engine = open(false).await;
    add_many(&engine, "q", 5).await;
    let jobs = find(&engine, "queue:q").await;
    let named = vec![jobs[1].seq, jobs[3].seq, jobs[3].seq, i64::MAX - 1, 0];
    engine
        .cancel(vec![jobs[3].key.clone()], None)
        .await
        .unwrap();
    // A new job with the same ID is a different job.
    add_to(&engine, "q", vec![new(&jobs[3].key.id)]).await;
    let id = begin(&engine, JobAction::Cancel, JobSelection::Jobs(named)).await;
    let operation = ended(&engine, id).await;
    assert_eq!((operation.done, operation.skipped), (1, 2));
    let gone = "the job no longer exists";
    let nameless = (String::new(), gone.to_owned());
    assert_eq!(
        skip_reasons(&engine, id).await,
        [nameless.clone(), nameless]
    );
    assert_eq!(count(&engine, "queue:q").await, 4);
    let none = engine.start_operation(NewOperation {
        who: String::new(),
        action: JobAction::Track,
        selection: JobSelection::Jobs(Vec::new()),
        estimate: Default::default(),
    });
    assert_eq!(none.await.unwrap(), Err(OperationError::NoJobs));
    let mistaken = engine
        .estimate_operation(&JobAction::Track, &all("stat:x"))
        .await
        .unwrap();
    assert!(
        matches!(mistaken, Err(OperationError::InvalidSearch(_))),
        "{mistaken:?}"
    );
    engine.close().await;
}

#[tokio::test]
async fn operations_ignore_jobs_put_after_their_start() {
    let engine = open(false).await;
    add_many(&engine, "q", 2_000).await;
    let id = begin(
        &engine,
        JobAction::Tag {
            tag: "old".to_owned(),
        },
        all("queue:q"),
    )
    .await;
    // While the operation runs.
    for i in 0..20 {
        add_to(&engine, "q", vec![new(&format!("late-{i}"))]).await;
    }
    let operation = ended(&engine, id).await;
    assert_eq!((operation.done, operation.skipped), (2_000, 0));
    assert_eq!(count(&engine, "tag:old").await, 2_000);
    assert_eq!(count(&engine, "late -tag:old").await, 20);
    assert_consistent(&engine).await;
    engine.close().await;
}

#[tokio::test]
async fn operations_continue_after_a_restart() {
    let folder = tempfile::TempDir::new().unwrap();
    let options = EngineSettings {
        database: database::address(&folder.path().join("jobs.db")),
        ..options()
    };
    let mut engine = Engine::open(&options).await.unwrap();
    add_many(&engine, "q", 10_000).await;
    fail_all(&engine, "q", "E").await;
    let retried = begin(&engine, JobAction::Retry, all("state:failed")).await;
    let canceled = begin(&engine, JobAction::Cancel, all("q-1")).await;
    let mut ends = 0;
    for least in [1, 3_000, 6_000] {
        let operation = once(&engine, retried, |operation| operation.done >= least).await;
        ends += i32::from(operation.state.is_active());
        engine.close().await;
        engine = Engine::open(&options).await.unwrap();
    }
    assert!(ends > 0, "the operation was interrupted at least once");
    let retried = ended(&engine, retried).await;
    let canceled = ended(&engine, canceled).await;
    // The IDs that start with q-1: 1, 10–19, 100–199, 1000–1999.
    assert_eq!((canceled.done, canceled.skipped), (1_111, 0));
    assert!(retried.done + 1_111 >= 10_000 && retried.done <= 10_000);
    assert_eq!(count(&engine, "state:waiting").await, 10_000 - 1_111);
    // Each job was retried once.
    for job in find_whole(&engine, "").await {
        let puts = job.events();
        let puts = puts
            .iter()
            .filter(|event| event.what == switchyard::engine::EventKind::Put);
        assert_eq!(puts.count(), 2, "{}", job.key.id);
    }
    assert_consistent(&engine).await;
    let undone = undo(&engine, canceled.id).await;
    assert_eq!(undone.restored, 1_111);
    assert_eq!(count(&engine, "").await, 10_000);
    assert_consistent(&engine).await;
    engine.close().await;
}

/// The payloads are matched outside the transaction, whose own budget they would exceed.
#[tokio::test]
async fn jobs_with_long_payloads_and_many_terms_match() {
    let engine = open(false).await;
    let body = |n: usize| format!("\"{} end{n}\"", "x".repeat(100_000));
    let jobs = (0..40).map(|n| Put {
        body: body(n),
        ..new(&format!("long-{n}"))
    });
    add_to(&engine, "long", jobs.collect()).await;
    let mut terms: Vec<String> = (0..30).map(|n| format!("-payload:absent{n}")).collect();
    terms.push("payload:end".to_owned());
    let done = run(&engine, JobAction::Cancel, &terms.join(" ")).await;
    assert_eq!(skip_reasons(&engine, done.id).await, []);
    assert_eq!((done.state, done.done), (OperationState::Done, 40));
    assert_consistent(&engine).await;
}
