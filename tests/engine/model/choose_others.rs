//! Random steps of lmstfy, Relay and Jobq.

use switchyard::engine::{Claim, Enqueue, Mode, Publish, QueueKey, Time};

use super::SECRET;
use super::choose::{body, one, rarely};
use super::memory::SECOND;
use super::steps::{RecordQueue, RunOf, Step};
use crate::random::Random;

fn lmstfy_queue(random: &mut Random) -> QueueKey {
    QueueKey::lmstfy(one(random, &["n0", "n1"]), one(random, &["l0", "l1"]))
}

fn publish(random: &mut Random) -> Publish {
    Publish {
        body: body(random),
        delay_s: one(random, &[0, 0, 2, 30]),
        ttl_s: one(random, &[0, 0, 8, 60]),
        tries: one(random, &[1, 1, 2, 5]),
        versioned: rarely(random, 4),
        attributes: None,
    }
}

fn consume(random: &mut Random) -> Claim {
    let mut queues = vec![lmstfy_queue(random)];
    let other = lmstfy_queue(random);
    if rarely(random, 3) && !queues.contains(&other) {
        queues.push(other);
    }
    Claim {
        queues,
        lease_s: Some(one(random, &[1.0, 5.0, 60.0])),
        ..Claim::of(QueueKey::lmstfy("n0", "l0"), "", one(random, &[1, 1, 3]))
    }
}

fn nths(random: &mut Random) -> Vec<usize> {
    let count = random.below(3) + 1;
    (0..count).map(|_| random.index(10)).collect()
}

pub fn lmstfy(random: &mut Random) -> Step {
    let queue = lmstfy_queue(random);
    match random.below(24) {
        0..=6 => {
            let count = one(random, &[1, 1, 3]);
            Step::Publish(queue, (0..count).map(|_| publish(random)).collect())
        }
        7 => Step::Republish(queue, random.index(6), publish(random)),
        8..=13 => Step::Consume(consume(random)),
        14 => Step::ConsumeWithToken(consume(random)),
        15..=17 => Step::Acknowledge(queue, nths(random)),
        18 if rarely(random, 2) => Step::Destroy(queue),
        18 => Step::DeleteDeadLetter(queue, random.index(3)),
        19 | 20 => Step::Respawn(queue, random.index(3), one(random, &[0, 10])),
        21 => Step::RespawnJobs(nths(random), one(random, &[0, 10])),
        22 if rarely(random, 3) => Step::RevokeToken,
        22 => Step::CreateToken(one(random, &[SECRET, "short"]).to_owned()),
        _ => Step::Pause(queue, rarely(random, 3)),
    }
}

pub fn relay_queue(random: &mut Random) -> QueueKey {
    QueueKey::relay(one(random, &["q0", "q1"]))
}

pub fn relay_id(random: &mut Random) -> String {
    format!("k{}", random.below(5))
}

fn enqueue(random: &mut Random) -> Enqueue {
    let later = one(random, &[None, None, Some(3), Some(-3)]);
    Enqueue {
        queue: relay_queue(random),
        id: relay_id(random),
        timeout_s: one(random, &[1, 4, 50]),
        max_retries: one(random, &[None, Some(0), Some(1)]),
        payload: body(random),
        state: one(random, &[None, Some("{}".to_owned())]),
        run_at: later.map(|seconds| Time(seconds * SECOND)),
    }
}

fn enqueues(random: &mut Random) -> (Vec<Enqueue>, Mode) {
    let count = one(random, &[1, 1, 1, 3]);
    let mode = one(random, &[Mode::Unique, Mode::Ignore, Mode::Replace]);
    ((0..count).map(|_| enqueue(random)).collect(), mode)
}

fn run(random: &mut Random) -> RunOf {
    RunOf {
        queue: relay_queue(random),
        id: relay_id(random),
        unknown: rarely(random, 10),
    }
}

/// A claim of one job. Several jobs with equal timeouts would expire, and be dead-lettered, in any order.
fn next(random: &mut Random) -> Claim {
    let mut queues = vec![relay_queue(random)];
    let other = relay_queue(random);
    if !queues.contains(&other) {
        queues.push(other);
    }
    Claim {
        queues,
        ..Claim::of(QueueKey::relay("q0"), "", 1)
    }
}

pub fn relay(random: &mut Random) -> Step {
    let queue = relay_queue(random);
    let places: Vec<usize> = (0..one(random, &[1, 1, 2])).collect();
    match random.below(24) {
        0..=6 => {
            let (jobs, mode) = enqueues(random);
            Step::Enqueue(jobs, mode)
        }
        7..=13 => Step::Next(next(random)),
        14 | 15 => {
            let state = one(random, &[None, Some(None), Some(Some("1".to_owned()))]);
            Step::HeartbeatRun(run(random), state)
        }
        16 | 17 => Step::CompleteRun(run(random)),
        18 => {
            let (jobs, mode) = enqueues(random);
            Step::RequeueRun(run(random), jobs, mode)
        }
        19 => Step::Delete(queue, vec![relay_id(random), relay_id(random)]),
        20 => Step::ReenqueueDead(queue, places),
        21 => Step::ReenqueueOldest(queue, random.index(3)),
        22 => Step::DeleteDead(queue, places),
        _ => Step::Pause(queue, rarely(random, 3)),
    }
}

pub fn jobq_name(random: &mut Random) -> String {
    one(random, &["x", "y"]).to_owned()
}

pub fn record_id(random: &mut Random) -> i64 {
    i64::try_from(random.below(7)).unwrap() + 1
}

fn state(random: &mut Random) -> String {
    one(
        random,
        &["null", "\"x\"", "\"y\"", "[\"x\",1]", "{\"n\":1}"],
    )
    .to_owned()
}

pub fn jobq(random: &mut Random) -> Step {
    let queue = RecordQueue {
        name: jobq_name(random),
        deleted: rarely(random, 20),
    };
    let id = record_id(random);
    match random.below(30) {
        0 | 1 => Step::CreateQueue(queue.name),
        2 => Step::DeleteQueue(queue),
        3..=11 => Step::CreateRecord(queue, body(random), state(random)),
        12..=17 => Step::AdvanceRecord(queue, id, state(random), state(random)),
        18..=20 => Step::Append(queue, id, body(random)),
        21 => Step::DeleteRecord(queue, id),
        // A poll of a queue that was deleted meanwhile may find it without jobs, or missing.
        _ => {
            let existing = RecordQueue {
                deleted: false,
                ..queue
            };
            Step::Poll(existing, random.index(3), state(random))
        }
    }
}
