//! Stress test of all protocols together, with delays, expired leases, moves, cancels and requeues, while maintenance
//! deletes complete jobs at once. On Postgres, two servers share one database, and a third one joins after half of the
//! time. Afterwards, no job may be lost, claimed again without a reason, or completed twice, and the consistency check
//! must pass. A request may be refused if the database is too slow, but only if the log says so.
//!
//! `SWITCHYARD_STORM_S` sets the duration in seconds, `SWITCHYARD_SEED` the random choices.

mod others;
mod record;
mod records;
mod refusals;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use switchyard::engine::Recur;
use tokio::task::JoinSet;

use super::random::Random;
use super::*;
use record::{Record, Token, Verdict};
use refusals::{LogTime, Refusals};

/// Per protocol and server.
const PRODUCERS: u64 = 2;
const CONSUMERS: u64 = 2;

/// A producer reuses this many IDs as soon as their previous jobs have ended.
const IDS: u64 = 40;

/// A lease that no consumer exceeds, and one that is meant to expire.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(1);

/// Maximum time without a claimed job while jobs are left; no test waits this long.
const STALL_MAX: Duration = Duration::from_secs(90);

/// Maximum number of open jobs, so that queues stay short and IDs are reused.
const OPEN_MAX: u64 = 500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_lost_or_duplicated() {
    let storm = Storm {
        refusals: Refusals::explained_by(LogTime::start()),
        ..Storm::default()
    };
    let (seconds, seed) = (settings::number("SWITCHYARD_STORM_S", 30), settings::seed());
    let options = options();
    let is_shared = database::postgres().is_some();
    let (mut engines, mut actors) = (Vec::new(), JoinSet::new());
    let first = Engine::open(&options).await.unwrap();
    prepare(&first).await;
    engines.push(first);
    if is_shared {
        engines.push(Engine::open(&options).await.unwrap());
    }
    for (server, engine) in engines.iter().enumerate() {
        add_actors(&mut actors, server, engine, &storm, seed);
    }
    let half = Duration::from_secs(seconds) / 2;
    tokio::time::sleep(half).await;
    if is_shared {
        let third = Engine::open(&options).await.unwrap();
        add_actors(&mut actors, engines.len(), &third, &storm, seed);
        engines.push(third);
    }
    tokio::time::sleep(half).await;
    storm.calm.store(true, Ordering::Release);
    // Propagates panics of the actors.
    actors.join_all().await;
    drain(&engines, &storm, seed).await;
    let (jobs, deliveries) = storm.record.size();
    let verdict = storm.record.judge();
    let wrong = [
        &verdict.lost,
        &verdict.second,
        &verdict.completed_twice,
        &verdict.delivered_after_end,
    ];
    for token in wrong.into_iter().flatten().take(20) {
        println!("{}", storm.record.story(*token));
    }
    let servers = engines.len();
    let refusals = storm.refusals.count();
    println!("{jobs} jobs, {deliveries} deliveries on {servers} servers, {refusals} refusals");
    assert_eq!(verdict, Verdict::default());
    assert!(jobs > 100, "the storm had more than 100 jobs");
    for engine in &engines {
        assert_eq!(engine.check(None).await.unwrap(), []);
    }
    for engine in engines {
        engine.close().await;
    }
}

/// Starts the producers and consumers of a server.
fn add_actors(actors: &mut JoinSet<()>, server: usize, engine: &Engine, storm: &Storm, seed: u64) {
    let actor = |kind: &str, n: u64, salt: u64| Actor {
        engine: engine.clone(),
        storm: storm.clone(),
        random: Random(seed ^ ((server as u64 * 1_000 + n * 10 + salt) << 20)),
        name: format!("{kind}-{server}-{n}"),
    };
    for n in 0..PRODUCERS {
        actors.spawn(actor("p", n, 0).put());
        actors.spawn(actor("p", n, 1).publish());
        actors.spawn(actor("p", n, 2).enqueue());
        actors.spawn(actor("p", n, 6).create());
    }
    for n in 0..CONSUMERS {
        actors.spawn(actor("w", n, 3).work());
        actors.spawn(actor("w", n, 4).consume());
        actors.spawn(actor("w", n, 5).run());
        actors.spawn(actor("w", n, 7).poll());
    }
}

/// The state that all actors share.
#[derive(Clone, Default)]
struct Storm {
    record: Arc<Record>,
    tokens: Arc<AtomicU64>,
    /// The approximate number of jobs that have been put and not ended.
    open: Arc<AtomicU64>,
    calm: Arc<AtomicBool>,
    refusals: Refusals,
}

struct Actor {
    engine: Engine,
    storm: Storm,
    random: Random,
    name: String,
}

impl Random {
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }
}

const QLESS: [&str; 3] = ["a", "b", "short"];

/// The number of recurring jobs, each with 20 children per second.
const RECURRING: usize = 5;

/// Complete jobs are deleted at once, leases in one queue are short, and some jobs recur.
async fn prepare(engine: &Engine) {
    let options = [
        ("jobs-history-count", "0"),
        ("jobs-history", "0"),
        ("grace-period", "0"),
        ("short-heartbeat", "1"),
    ];
    for (option, value) in options {
        engine
            .configure(option, Some(value.to_owned()), None)
            .await
            .unwrap();
    }
    let recurs = (0..RECURRING).map(|n| Recur {
        id: Some(format!("every-{n}")),
        body: "\"recurs\"".to_owned(),
        interval_s: 0.05,
        backlog: 20,
        retries: 5,
        ..Recur::default()
    });
    let done = engine.recur(QueueKey::qless("a"), recurs.collect(), None);
    assert!(done.await.unwrap().iter().all(Result::is_ok));
    records::prepare(engine).await;
}

impl Storm {
    fn token(&self) -> Token {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Acquire)
    }

    /// Waits while there are enough open jobs.
    async fn pause(&self) {
        while self.open.load(Ordering::Relaxed) > OPEN_MAX && !self.is_calm() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn begun(&self, token: Token) {
        self.record.acknowledged(token);
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    fn ended(&self) {
        let less = |open: u64| Some(open.saturating_sub(1));
        self.open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .ok();
    }
}

fn token_of(body: &str) -> Option<Token> {
    body.trim_matches('"').parse().ok()
}

fn qless_put(id: &str, token: Token, delay: f64) -> Put {
    Put {
        id: Some(id.to_owned()),
        body: token.to_string(),
        delay: Some(delay),
        retries: Some(1_000_000),
        ..Put::default()
    }
}

impl Actor {
    /// Puts qless jobs, one or several per request, and reuses the IDs of jobs that have ended. Moves, cancels and
    /// times out some of the jobs.
    async fn put(mut self) {
        let mut newest: HashMap<String, Token> = HashMap::new();
        let record = Arc::clone(&self.storm.record);
        while !self.storm.is_calm() {
            self.storm.pause().await;
            let queue = QueueKey::qless(self.random.one_of(&QLESS));
            let mut jobs = Vec::new();
            for _ in 0..self.random.one_of(&[1, 1, 3, 30]) {
                let id = format!("{}-{}", self.name, self.random.below(IDS));
                let is_open = newest.get(&id).is_some_and(|token| !record.is_over(*token));
                if is_open || jobs.iter().any(|(other, _)| *other == id) {
                    continue;
                }
                jobs.push((id, self.storm.token()));
            }
            let delay = self.random.one_of(&[0.0, 0.0, 0.02, 0.4]);
            let puts = jobs.iter().map(|(id, token)| qless_put(id, *token, delay));
            let done = self
                .engine
                .put(queue, puts.collect(), self.name.clone(), None)
                .await;
            let Some(done) = self.storm.response(done) else {
                // The jobs may exist, so their IDs are not used again before they have ended.
                newest.extend(jobs);
                continue;
            };
            for ((id, token), done) in jobs.into_iter().zip(done) {
                done.unwrap();
                self.storm.begun(token);
                newest.insert(id, token);
            }
            self.act_as_operator(&newest).await;
        }
    }

    async fn act_as_operator(&mut self, newest: &HashMap<String, Token>) {
        let id = format!("{}-{}", self.name, self.random.below(IDS));
        let Some(token) = newest
            .get(&id)
            .filter(|token| !self.storm.record.is_over(**token))
        else {
            return;
        };
        let (key, asked) = (JobKey::qless(id), self.storm.record.now());
        match self.random.below(4) {
            0 => {
                // The job may have ended in the meantime.
                let release = self.storm.record.releasing(Some(*token));
                let queue = QueueKey::qless(self.random.one_of(&QLESS));
                let moved = match self.engine.relocate(key, queue, None).await {
                    Err(Error::NoSuchJob { .. }) => Ok(()),
                    moved => moved,
                };
                let moved = release.end(self.storm.response(moved));
                self.storm.record.moved(*token, asked, moved.is_some());
            }
            1 => {
                let release = self.storm.record.releasing(Some(*token));
                let timed_out = self.engine.time_out(vec![key], None).await;
                release.end(self.storm.response(timed_out));
            }
            2 => match self.engine.cancel(vec![key], None).await {
                Ok(()) => {
                    self.storm.record.removed(*token, asked);
                    self.storm.ended();
                }
                Err(Error::AlreadyComplete { .. }) => {}
                Err(error) => self.storm.may_have_ended(Some(*token), error),
            },
            _ => {}
        }
    }

    /// A qless worker: completes most jobs; retries, fails, moves or abandons the others.
    async fn work(mut self) {
        while !self.storm.is_calm() {
            let queues = [self.random.one_of(&QLESS), self.random.one_of(&QLESS)];
            let mut keys: Vec<_> = queues.iter().map(|name| QueueKey::qless(*name)).collect();
            keys.dedup();
            let (count, asked) = (self.random.one_of(&[1, 2, 10]), self.storm.record.now());
            let claim = Claim {
                queues: keys,
                ..Claim::of(q(), self.name.clone(), count)
            };
            let claimed = self.engine.claim(claim, None).await;
            let jobs = self.storm.response(claimed).unwrap_or_default();
            if jobs.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            for job in &jobs {
                if let Some(token) = token_of(&job.body) {
                    self.storm.record.delivered(token, asked, lease_of(job));
                }
            }
            for job in jobs {
                self.process(job).await;
            }
        }
    }

    async fn process(&mut self, job: Job) {
        let token = token_of(&job.body);
        let (key, record) = (job.key.clone(), Arc::clone(&self.storm.record));
        let holder = holder(&self.name);
        match self.random.below(40) {
            0 => {
                let release = record.releasing(token);
                let delay = self.random.one_of(&[0.0, 0.2]);
                let retry = Retry {
                    key,
                    delay,
                    reason: None,
                };
                let retried = self.engine.retry(vec![retry], holder, None).await;
                release.end(self.storm.response(retried));
            }
            1 => {
                let (group, message) = ("g".to_owned(), "m".to_owned());
                let fail = Fail {
                    key: key.clone(),
                    group,
                    message,
                    body: None,
                };
                let release = record.releasing(token);
                let failed = self.engine.fail(vec![fail], holder, None).await;
                let failed = self.storm.response(failed);
                if failed.as_ref().is_none_or(|failed| failed[0].is_ok()) {
                    // Its producer may have moved or canceled it.
                    let ignore_others = |retried: Result<(), Error>| match retried {
                        Err(Error::Unavailable) => retried,
                        _ => Ok(()),
                    };
                    let retry = async || self.engine.retry_failed(key.clone(), None).await;
                    while self.storm.response(ignore_others(retry().await)).is_none() {}
                }
                release.end(failed);
            }
            2 => {
                let release = record.releasing(token);
                let queue = QueueKey::qless(self.random.one_of(&QLESS));
                let next = NextQueue {
                    queue,
                    delay: 0.0,
                    depends: Vec::new(),
                };
                let turn = (key, job.body.into(), Some(next));
                let completed = self.engine.complete(vec![turn], holder, None).await;
                release.end(self.storm.response(completed));
            }
            3 => {
                let renewed = self
                    .engine
                    .heartbeat(vec![(key.clone(), None)], holder, None);
                drop(self.storm.response(renewed.await));
                self.complete(key, job.body.into(), token).await;
            }
            // The worker abandons it.
            4 if lease_of(&job) == SHORT => {}
            _ => self.complete(key, job.body.into(), token).await,
        }
    }

    async fn complete(&self, key: JobKey, body: String, token: Option<Token>) {
        let asked = self.storm.record.now();
        let done = self
            .engine
            .complete(vec![(key, body, None)], holder(&self.name), None);
        match done.await.map(|mut done| done.remove(0)) {
            Ok(done) => {
                if let (Ok(_), Some(token)) = (done, token) {
                    self.storm.record.completed(token, asked);
                    self.storm.ended();
                }
            }
            Err(error) => self.storm.may_have_ended(token, error),
        }
    }
}

/// The lease of a qless job, which depends on the queue.
fn lease_of(job: &Job) -> Duration {
    let lease = job.lease.as_ref().unwrap();
    let seconds = lease.until.seconds_since(job.since);
    if seconds <= SHORT.as_secs_f64() {
        SHORT
    } else {
        LONG
    }
}

/// Claims and completes the remaining jobs, after delays and short leases have ended.
async fn drain(engines: &[Engine], storm: &Storm, seed: u64) {
    // Children of recurring jobs are created faster than a busy machine completes them.
    for n in 0..RECURRING {
        let id = format!("every-{n}");
        let gone = async || storm.response(engines[0].unrecur(&id, None).await);
        while gone().await.is_none() {}
    }
    records::release(engines, storm).await;
    let calm = Storm {
        calm: Arc::default(),
        ..storm.clone()
    };
    let mut workers = JoinSet::new();
    for engine in engines {
        let of = |name: &str| Actor {
            engine: engine.clone(),
            storm: calm.clone(),
            random: Random(seed),
            name: name.to_owned(),
        };
        workers.spawn(of("last").work());
        workers.spawn(of("last").consume());
        workers.spawn(of("last").run());
        workers.spawn(of("last").poll());
    }
    let (mut open, mut since) = (storm.record.open(), Instant::now());
    while open > 0 && since.elapsed() < STALL_MAX {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let left = storm.record.open();
        if left < open {
            (open, since) = (left, Instant::now());
        }
    }
    calm.calm.store(true, Ordering::Release);
    workers.join_all().await;
}
