//! Random steps. They use few names, so that many steps affect the same jobs and queues.

use switchyard::engine::{
    Claim, Depend, Fail, JobAction, JobKey, LeaseHolder, NextQueue, Order, Put, QueueKey, Recur,
    RecurringChange, Retry,
};

use super::choose_others as others;
use super::memory::SECOND;
use super::steps::{Pick, Ref, Step};
use crate::random::Random;

const QUEUES: [&str; 3] = ["a", "b", "c"];
const WORKERS: [&str; 3] = ["w0", "w1", "w2"];
const TAGS: [&str; 4] = ["t0", "t1", "t2", "t3"];
const OPTIONS: [&str; 8] = [
    "heartbeat",
    "a-heartbeat",
    "heartbeat-b",
    "a-cutoff",
    "b-max-concurrency",
    "grace-period",
    "jobs-history",
    "jobs-history-count",
];

pub fn one<T: Clone>(random: &mut Random, all: &[T]) -> T {
    all[random.index(all.len())].clone()
}

/// True once in `n` times on average.
pub fn rarely(random: &mut Random, n: u64) -> bool {
    random.below(n) == 0
}

fn queue(random: &mut Random) -> QueueKey {
    QueueKey::qless(one(random, &QUEUES))
}

pub fn id(random: &mut Random) -> String {
    // The IDs of the children of recurring jobs are in use, too.
    match random.below(12) {
        0 => format!("r0-{}", random.below(6) + 1),
        n => format!("j{}", n % 9),
    }
}

fn key(random: &mut Random) -> JobKey {
    JobKey::qless(id(random))
}

fn ids(random: &mut Random, max: u64) -> Vec<String> {
    let count = random.below(max + 1);
    (0..count).map(|_| id(random)).collect()
}

fn tags(random: &mut Random) -> Vec<String> {
    let count = random.below(4);
    (0..count).map(|_| one(random, &TAGS).to_owned()).collect()
}

/// A body, sometimes long enough for a row of its own.
pub fn body(random: &mut Random) -> String {
    match random.below(40) {
        0 => format!("\"{}\"", "x".repeat(20_000)),
        n => n.to_string(),
    }
}

fn maybe<T>(random: &mut Random, value: impl FnOnce(&mut Random) -> T) -> Option<T> {
    rarely(random, 2).then(|| value(random))
}

fn holder(random: &mut Random) -> LeaseHolder {
    let queue = rarely(random, 8).then(|| one(random, &QUEUES).to_owned());
    // In most cases the worker that claims most jobs.
    let worker = if rarely(random, 3) {
        one(random, &WORKERS)
    } else {
        WORKERS[0]
    };
    LeaseHolder {
        worker: worker.to_owned(),
        queue,
    }
}

fn put(random: &mut Random) -> Put {
    Put {
        id: Some(id(random)),
        body: body(random),
        klass: maybe(random, |_| "C".to_owned()),
        delay: maybe(random, |random| one(random, &[-1.0, 0.0, 0.5, 20.0, 100.0])),
        priority: maybe(random, |random| one(random, &[-1.0, -0.0, 0.0, 1.5, 10.0])),
        tags: maybe(random, tags),
        retries: maybe(random, |random| one(random, &[0, 1, 5])),
        depends: maybe(random, |random| ids(random, 3)),
    }
}

fn puts(random: &mut Random) -> Vec<Put> {
    let count = one(random, &[1, 1, 1, 2, 4]);
    (0..count).map(|_| put(random)).collect()
}

fn queues(random: &mut Random) -> Vec<QueueKey> {
    let count = random.below(3) + 1;
    let mut queues: Vec<QueueKey> = (0..count).map(|_| queue(random)).collect();
    queues.sort();
    queues.dedup();
    let by = random.index(queues.len());
    queues.rotate_left(by);
    queues
}

fn pop(random: &mut Random, order: Order) -> Claim {
    let worker = holder(random).worker;
    Claim {
        queues: queues(random),
        order,
        grace_s: one(random, &[0.0, 0.0, 5.0]),
        ..Claim::of(QueueKey::qless("a"), worker, one(random, &[1, 1, 2, 5]))
    }
}

fn recur(random: &mut Random) -> Recur {
    Recur {
        id: Some(one(random, &["r0", "r1"]).to_owned()),
        body: body(random),
        klass: maybe(random, |_| "R".to_owned()),
        interval_s: one(random, &[0.5, 3.0, 60.0]),
        cron: None,
        offset_s: one(random, &[-2.0, 0.0, 1.0]),
        priority: one(random, &[0.0, 5.0]),
        tags: tags(random),
        retries: one(random, &[0, 5]),
        backlog: one(random, &[0, 1, 3]),
    }
}

fn recurring_change(random: &mut Random) -> RecurringChange {
    RecurringChange {
        priority: maybe(random, |_| 2.0),
        interval_s: maybe(random, |random| one(random, &[1.0, 5.0])),
        cron: None,
        retries: maybe(random, |_| 3),
        backlog: maybe(random, |_| 2),
        body: maybe(random, body),
        klass: maybe(random, |_| "S".to_owned()),
        queue: maybe(random, queue),
        tag: tags(random),
        untag: tags(random),
    }
}

fn action(random: &mut Random) -> JobAction {
    let tag = one(random, &TAGS).to_owned();
    match random.below(11) {
        0 => JobAction::Retry,
        1 | 2 => JobAction::Cancel,
        3 => JobAction::Move {
            queue: one(random, &QUEUES).to_owned(),
        },
        4 => JobAction::Priority { priority: 3.0 },
        5 => JobAction::Tag { tag },
        6 => JobAction::Untag { tag },
        7 => JobAction::Track,
        8 => JobAction::TimeOut,
        9 => JobAction::RenameTag {
            from: tag,
            to: one(random, &TAGS).to_owned(),
        },
        _ => JobAction::Untrack,
    }
}

fn pick(random: &mut Random) -> Pick {
    if rarely(random, 2) {
        return Pick::Queue(one(random, &QUEUES).to_owned());
    }
    let count = random.below(5);
    let mut jobs = Vec::new();
    for _ in 0..count {
        jobs.push(match random.below(6) {
            0 | 1 => Ref::Qless(id(random)),
            2 => Ref::Lmstfy(random.index(8)),
            3 => Ref::Relay(others::relay_queue(random), others::relay_id(random)),
            4 => Ref::Dead(others::relay_queue(random), random.index(3)),
            _ => Ref::Record(others::jobq_name(random), others::record_id(random)),
        });
    }
    Pick::Jobs(jobs)
}

/// A random step.
pub fn step(random: &mut Random) -> Step {
    match random.below(100) {
        0..=8 => advance(random),
        9..=12 => end(random),
        13..=17 => operation(random),
        18..=57 => qless(random),
        58..=71 => others::lmstfy(random),
        72..=86 => others::relay(random),
        _ => others::jobq(random),
    }
}

/// Advances the time, in most cases by less than a minute.
fn advance(random: &mut Random) -> Step {
    let micros = i64::try_from(random.below(1_000_000)).unwrap();
    let seconds = match random.below(600) {
        0 => 8 * 86_400,
        1..=5 => 3_600,
        6..=60 => 61,
        61..=250 => 5,
        _ => 0,
    };
    Step::Advance(micros + seconds * SECOND)
}

fn end(random: &mut Random) -> Step {
    match random.below(60) {
        0 => Step::Reopen,
        1 => Step::Crash,
        2 if rarely(random, 3) => Step::Flush,
        _ => Step::Maintain,
    }
}

fn operation(random: &mut Random) -> Step {
    match random.below(6) {
        0 => Step::CancelWithUndo(key(random)),
        1 => Step::StopOperation(random.index(3)),
        2 | 3 => Step::UndoOperation(random.index(3)),
        _ => Step::StartOperation(action(random), pick(random)),
    }
}

fn qless(random: &mut Random) -> Step {
    match random.below(60) {
        0..=10 => Step::Put(queue(random), puts(random), holder(random).worker),
        11 => Step::Requeue(queue(random), puts(random), holder(random).worker),
        12..=17 => Step::Pop(pop(random, Order::Ordered)),
        18..=20 => Step::PopInTurn(pop(random, Order::RoundRobin)),
        21 => Step::Peek(queue(random), random.index(4)),
        22..=40 => worker_step(random),
        41 => {
            let count = random.below(3) + 1;
            Step::Cancel((0..count).map(|_| key(random)).collect())
        }
        42 | 43 => {
            let change = match random.below(5) {
                0 => Depend::OffAll,
                1 | 2 => Depend::Off(ids(random, 3)),
                _ => Depend::On(ids(random, 3)),
            };
            Step::Depend(key(random), change)
        }
        44..=51 => any_state_step(random),
        52 => {
            let group = one(random, &["g0", "g1", "failed-retries-a"]).to_owned();
            Step::Unfail(group, maybe(random, queue), random.index(4) + 1)
        }
        53 => Step::Recur(queue(random), recur(random)),
        54 => {
            let id = one(random, &["r0", "r1", "r2"]).to_owned();
            Step::ChangeRecurring(id, recurring_change(random))
        }
        55 => Step::Unrecur(one(random, &["r0", "r1"]).to_owned()),
        56 => Step::Pause(queue(random), rarely(random, 3)),
        57 => match random.below(2) {
            0 => Step::ForgetQueue(queue(random)),
            _ => Step::ForgetWorker(one(random, &WORKERS).to_owned()),
        },
        _ => configure(random),
    }
}

fn configure(random: &mut Random) -> Step {
    let value = one(random, &["0", "1", "2", "30", "100", "x"]);
    // Mostly back to the default.
    let value = maybe(random, |_| value.to_owned());
    Step::Configure(one(random, &OPTIONS).to_owned(), value)
}

/// What a worker does with its job.
fn worker_step(random: &mut Random) -> Step {
    let reason = ("g1".to_owned(), "why".to_owned());
    match random.below(20) {
        0..=6 => Step::Complete(key(random), body(random), holder(random)),
        7 | 8 => {
            let next = NextQueue {
                queue: queue(random),
                delay: one(random, &[0.0, 10.0]),
                depends: ids(random, 2),
            };
            Step::Move(key(random), body(random), holder(random), next)
        }
        9..=12 => {
            let fail = Fail {
                key: key(random),
                group: one(random, &["g0", "g1"]).to_owned(),
                message: "m".to_owned(),
                body: maybe(random, body),
            };
            Step::Fail(vec![fail], holder(random))
        }
        13..=15 => {
            let retry = Retry {
                key: key(random),
                delay: one(random, &[0.0, 7.0]),
                reason: maybe(random, |_| reason),
            };
            Step::Retry(vec![retry], holder(random))
        }
        16 => Step::RetryFailed(key(random)),
        17 => Step::TimeOut(key(random)),
        _ => Step::Heartbeat(key(random), maybe(random, body), holder(random)),
    }
}

/// A step on a job in any state.
fn any_state_step(random: &mut Random) -> Step {
    let key = key(random);
    match random.below(7) {
        0 => Step::Prioritize(key, one(random, &[-5.0, 0.0, 7.0])),
        1 => Step::Tag(key, tags(random)),
        2 => Step::Untag(key, tags(random)),
        3 => Step::Track(key, tags(random)),
        4 => Step::Untrack(key),
        5 => Step::Note(key),
        _ => Step::Relocate(key, queue(random)),
    }
}
