//! Steps that reach the refusals which a random walk rarely meets.

use switchyard::engine::{
    Claim, Depend, Enqueue, Fail, JobAction, JobKey, LeaseHolder, Mode, NextQueue, Put, QueueKey,
    Retry,
};

use super::SECRET;
use super::memory::SECOND;
use super::steps::{Pick, RecordQueue, Ref, Step};
use crate::lmstfy_job;

fn put(id: &str, depends: &[&str]) -> Step {
    let put = Put {
        id: Some(id.to_owned()),
        body: "1".to_owned(),
        depends: Some(depends.iter().map(|id| (*id).to_owned()).collect()),
        ..Put::default()
    };
    Step::Put(QueueKey::qless("a"), vec![put], "w0".to_owned())
}

fn enqueue(n: usize) -> Enqueue {
    Enqueue {
        queue: QueueKey::relay("q0"),
        id: n.to_string(),
        timeout_s: 1,
        max_retries: None,
        payload: "1".to_owned(),
        state: None,
        run_at: None,
    }
}

/// All verbs of a worker on its job, and completions that are refused: by another worker, and for another queue.
fn worker() -> Vec<Step> {
    let (queue, key) = (QueueKey::qless("s"), || JobKey::qless("s1"));
    let by = |worker: &str, queue: Option<&str>| LeaseHolder {
        worker: worker.to_owned(),
        queue: queue.map(str::to_owned),
    };
    let own = || by("w0", None);
    let body = || "2".to_owned();
    let pop = || Step::Pop(Claim::of(queue.clone(), "w0", 1));
    let put = |id: &str| {
        let put = Put {
            id: Some(id.to_owned()),
            body: "1".to_owned(),
            ..Put::default()
        };
        Step::Put(queue.clone(), vec![put], "w0".to_owned())
    };
    let retry = Retry {
        key: key(),
        delay: 0.0,
        reason: None,
    };
    let fail = Fail {
        key: key(),
        group: "g0".to_owned(),
        message: "m".to_owned(),
        body: None,
    };
    let next = NextQueue {
        queue: queue.clone(),
        delay: 0.0,
        depends: Vec::new(),
    };
    vec![
        put("s1"),
        pop(),
        Step::Heartbeat(key(), None, own()),
        Step::Complete(key(), body(), by("w1", None)),
        Step::Complete(key(), body(), by("w0", Some("other"))),
        Step::Retry(vec![retry], own()),
        pop(),
        Step::Fail(vec![fail], own()),
        Step::RetryFailed(key()),
        pop(),
        Step::TimeOut(key()),
        pop(),
        Step::Move(key(), body(), own(), next),
        pop(),
        Step::Complete(key(), body(), own()),
        Step::Cancel(vec![key()]),
        put("s2"),
        Step::CancelWithUndo(JobKey::qless("s2")),
        Step::UndoOperation(0),
        Step::Maintain,
    ]
}

/// A dead job of lmstfy, then a restart, a crash and a flush.
fn restarts() -> Vec<Step> {
    let queue = QueueKey::lmstfy("n1", "l1");
    let publish = lmstfy_job("1");
    let consume = Claim {
        lease_s: Some(1.0),
        ..Claim::of(queue.clone(), "", 1)
    };
    vec![
        Step::Publish(queue, vec![publish]),
        Step::Consume(consume),
        Step::Advance(2 * SECOND),
        Step::Maintain,
        Step::RespawnJobs(vec![0], 0),
        Step::Reopen,
        Step::Crash,
        Step::Flush,
    ]
}

/// The first steps of each walk: every verb and every refusal that random steps could miss.
pub fn steps() -> Vec<Step> {
    let many = |prefix: &str| (0..2_001).map(|n| format!("{prefix}{n}")).collect();
    let queue = || RecordQueue {
        name: "x".to_owned(),
        deleted: false,
    };
    let large = format!("\"{}\"", "x".repeat(500_000));
    let consume = Claim {
        lease_s: Some(1.0),
        ..Claim::of(QueueKey::lmstfy("n0", "l0"), "", 1)
    };
    let append = || Step::Append(queue(), 1, large.clone());
    let jobs = |jobs| Step::StartOperation(JobAction::Retry, jobs);
    let operations = (0..20).map(|_| jobs(Pick::Queue("none".to_owned())));
    let mut steps = vec![
        Step::CreateToken("short".to_owned()),
        Step::CreateToken(SECRET.to_owned()),
        Step::ConsumeWithToken(consume.clone()),
        Step::RevokeToken,
        Step::ConsumeWithToken(consume),
        Step::CreateQueue("x".to_owned()),
        Step::CreateQueue("x".to_owned()),
        Step::CreateRecord(queue(), "1".to_owned(), "null".to_owned()),
        append(),
        append(),
        append(),
        Step::DeleteQueue(queue()),
        append(),
        // A job that is refused because its queue was deleted takes no number of the new queue.
        Step::CreateQueue("x".to_owned()),
        Step::CreateRecord(
            RecordQueue {
                deleted: true,
                ..queue()
            },
            "1".to_owned(),
            "null".to_owned(),
        ),
        Step::CreateRecord(queue(), "1".to_owned(), "null".to_owned()),
        put("j1", &[]),
        put("j2", &["j1"]),
        Step::Tag(JobKey::qless("j1"), many("t")),
        Step::Track(JobKey::qless("j1"), many("t")),
        put("j1", &["j2"]),
        Step::Depend(JobKey::qless("j2"), Depend::On(many("none"))),
        Step::Enqueue((0..1_601).map(enqueue).collect(), Mode::Unique),
        jobs(Pick::TooLong),
        jobs(Pick::Invalid),
        jobs(Pick::Jobs(Vec::new())),
        jobs(Pick::Jobs(vec![Ref::Qless("j1".to_owned())])),
        Step::UndoOperation(9),
        Step::StopOperation(0),
        Step::StopOperation(0),
        Step::UndoOperation(0),
        Step::Configure("heartbeat".to_owned(), Some("x".to_owned())),
    ];
    steps.extend(operations);
    steps.push(Step::Maintain);
    steps.extend(worker());
    steps.extend(restarts());
    steps
}
