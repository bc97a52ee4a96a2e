//! The clients of the simulation, and their calls.

use std::pin::Pin;
use std::time::Duration;

use switchyard::engine::{
    Claim, Engine, Enqueue, Fail, Job, JobKey, LeaseHolder, Mode, Publish, Put, QueueKey, Retry,
    Run,
};

use crate::history::What;
use crate::random::Random;

/// qless, lmstfy, Relay.
pub const PROTOCOLS: usize = 3;

/// The duration of all leases: the default of qless.
pub const LEASE: Duration = Duration::from_secs(60);

const GROUP: &str = "g";

/// The retries of a job: more than any run uses.
const RETRIES: i64 = 1_000_000;

/// How a call ends.
pub enum Done {
    Accepted,
    Refused,
    Got(Vec<Held>),
}

/// A call in progress.
pub type Call = Pin<Box<dyn Future<Output = Done>>>;

/// A job that a client holds.
#[derive(Clone, Debug)]
pub struct Held {
    pub token: String,
    protocol: usize,
    id: String,
    /// The ID of the lease, which identifies a run of Relay.
    lease: String,
    worker: String,
}

/// What a client asks for.
#[derive(Clone, Debug)]
pub enum Work {
    /// Puts jobs with these tokens.
    Put(usize, Vec<String>),
    Claim(usize, usize),
    Complete(Held),
    /// Returns the job: a retry, or a failure that is retried.
    Retry(Held),
    Fail(Held),
    /// Takes the job from its worker.
    TimeOut(Held),
    Heartbeat(Held),
    Maintain,
    /// Requeues all failed jobs.
    RetryAll,
}

pub struct Client {
    name: String,
    pub held: Vec<Held>,
}

fn queue(protocol: usize) -> QueueKey {
    match protocol {
        0 => QueueKey::qless("q"),
        1 => QueueKey::lmstfy("n", "l"),
        _ => QueueKey::relay("r"),
    }
}

impl Client {
    pub fn new(number: usize) -> Client {
        Client {
            name: format!("c{number}"),
            held: Vec::new(),
        }
    }

    /// The client's next call. New jobs have this token, and tokens that begin with it.
    pub fn next(&mut self, random: &mut Random, token: String) -> Work {
        let protocol = random.index(PROTOCOLS);
        if self.held.is_empty() {
            return match random.below(5) {
                0 | 1 => Work::Put(protocol, vec![token]),
                2 => {
                    let tokens = (0..4).map(|n| format!("{token}.{n}"));
                    Work::Put(protocol, tokens.collect())
                }
                _ => Work::Claim(protocol, random.index(4) + 1),
            };
        }
        let place = random.index(self.held.len());
        let job = self.held[place].clone();
        let choice = random.below(16);
        // The client forgets the job: even if the call gets no response and the job is not complete, it does not try
        // again.
        if choice != 12 {
            self.held.swap_remove(place);
        }
        match choice {
            0..=9 => Work::Complete(job),
            10 => Work::Retry(job),
            11 => Work::Fail(job),
            12 => Work::Heartbeat(job),
            13 => Work::TimeOut(job),
            // It abandons the job.
            _ => Work::Claim(protocol, 1),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Work {
    /// What the history records.
    pub fn what(&self) -> Vec<What> {
        match self {
            Work::Put(_, tokens) => tokens.iter().cloned().map(What::Add).collect(),
            Work::Claim(..) => vec![What::Get],
            Work::Complete(job) => vec![What::Complete(job.token.clone())],
            Work::Retry(job) | Work::Fail(job) | Work::TimeOut(job) => {
                vec![What::Return(job.token.clone())]
            }
            Work::Heartbeat(_) | Work::Maintain | Work::RetryAll => Vec::new(),
        }
    }

    /// Begins the call.
    pub fn call(self, engine: Engine, worker: String) -> Call {
        Box::pin(async move {
            match self {
                Work::Put(protocol, tokens) => put(&engine, protocol, tokens).await,
                Work::Claim(protocol, count) => claim(&engine, protocol, count, worker).await,
                Work::Complete(job) => complete(&engine, job).await,
                Work::Maintain => accepted(engine.maintain().await.is_ok()),
                Work::RetryAll => {
                    accepted(engine.unfail(GROUP, None, usize::MAX, None).await.is_ok())
                }
                work => change(&engine, work).await,
            }
        })
    }
}

fn accepted(accepted: bool) -> Done {
    match accepted {
        true => Done::Accepted,
        false => Done::Refused,
    }
}

async fn put(engine: &Engine, protocol: usize, tokens: Vec<String>) -> Done {
    let queue = queue(protocol);
    accepted(match protocol {
        0 => {
            let put = |token: String| Put {
                body: format!("\"{token}\""),
                id: Some(token),
                retries: Some(RETRIES),
                ..Put::default()
            };
            let puts = tokens.into_iter().map(put).collect();
            let done = engine.put(queue, puts, String::new(), None).await;
            done.is_ok_and(|done| done.iter().all(Result::is_ok))
        }
        1 => {
            let publish = |token| Publish {
                body: token,
                delay_s: 0,
                ttl_s: 0,
                tries: u16::MAX,
                versioned: false,
                attributes: None,
            };
            let jobs = tokens.into_iter().map(publish).collect();
            engine.publish(queue, jobs).await.is_ok()
        }
        _ => {
            let enqueue = |token: String| Enqueue {
                queue: queue.clone(),
                payload: format!("\"{token}\""),
                id: token,
                timeout_s: 60,
                max_retries: None,
                state: None,
                run_at: None,
            };
            let jobs = tokens.into_iter().map(enqueue).collect();
            engine.enqueue(jobs, Mode::Unique).await.is_ok()
        }
    })
}

async fn claim(engine: &Engine, protocol: usize, count: usize, worker: String) -> Done {
    let name = if protocol == 0 { worker.as_str() } else { "" };
    let claim = Claim {
        lease_s: (protocol == 1).then_some(LEASE.as_secs_f64()),
        ..Claim::of(queue(protocol), name, count)
    };
    let held = |job: Job| Held {
        token: job.body.trim_matches('"').to_owned(),
        protocol,
        id: job.key.id,
        lease: job.lease.map_or_else(String::new, |lease| lease.id),
        worker: worker.clone(),
    };
    match engine.claim(claim, None).await {
        Ok(jobs) => Done::Got(jobs.into_iter().map(held).collect()),
        Err(_) => Done::Refused,
    }
}

fn holder(job: &Held) -> LeaseHolder {
    LeaseHolder {
        worker: job.worker.clone(),
        queue: None,
    }
}

fn run(job: &Held) -> Run {
    Run {
        queue: queue(job.protocol),
        id: job.id.clone(),
        run_id: job.lease.clone(),
    }
}

/// Whether the only item of a verb was accepted.
fn one<T, E>(done: Result<Vec<Result<T, E>>, E>) -> bool {
    done.is_ok_and(|done| done.iter().all(Result::is_ok))
}

async fn complete(engine: &Engine, job: Held) -> Done {
    accepted(match job.protocol {
        0 => {
            let turn = (JobKey::qless(&job.id), format!("\"{}\"", job.token), None);
            one(engine.complete(vec![turn], holder(&job), None).await)
        }
        1 => {
            let ids = vec![job.id.clone()];
            engine.acknowledge(queue(1), ids).await == Ok(1)
        }
        _ => engine.complete_run(run(&job)).await == Ok(true),
    })
}

/// A call for a job that is held. lmstfy has none of them.
async fn change(engine: &Engine, work: Work) -> Done {
    accepted(match work {
        Work::Retry(job) if job.protocol == 0 => {
            let retry = Retry {
                key: JobKey::qless(&job.id),
                delay: 0.0,
                reason: None,
            };
            one(engine.retry(vec![retry], holder(&job), None).await)
        }
        Work::Fail(job) if job.protocol == 0 => {
            let key = JobKey::qless(&job.id);
            let fail = Fail {
                key: key.clone(),
                group: GROUP.to_owned(),
                message: "m".to_owned(),
                body: None,
            };
            let failed = one(engine.fail(vec![fail], holder(&job), None).await);
            failed && engine.retry_failed(key, None).await.is_ok()
        }
        Work::TimeOut(job) if job.protocol == 0 => {
            one(engine.time_out(vec![JobKey::qless(&job.id)], None).await)
        }
        Work::Heartbeat(job) if job.protocol == 0 => {
            let jobs = vec![(JobKey::qless(&job.id), None)];
            one(engine.heartbeat(jobs, holder(&job), None).await)
        }
        Work::Heartbeat(job) if job.protocol == 2 => {
            engine.heartbeat_run(run(&job), None).await.is_ok()
        }
        _ => false,
    })
}
