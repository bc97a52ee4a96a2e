//! Blocking claims under constant change: clients disconnect, jobs are canceled, leases expire, queues are paused and
//! limits change; on Postgres with two servers, one of which neither sends nor receives notifications. Afterwards, each
//! new job must reach a waiting consumer.
//!
//! `SWITCHYARD_SEED` sets the random choices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::random::Random;
use super::*;

/// Consumers per server.
const CONSUMERS: u64 = 16;

/// How long the changes last.
const CHANGES: Duration = Duration::from_secs(6);

/// The number of jobs that are put one after the other, after the changes have stopped.
const PROBES: usize = 60;

/// Longer than the test.
const WAIT: Duration = Duration::from_secs(3_600);

/// A guard against a consumer that is never woken.
const WAIT_MAX: Duration = Duration::from_secs(60);

const QLESS: [&str; 3] = ["a", "b", "limited"];
const LMSTFY: [&str; 3] = ["x", "y", "z"];

/// The state that the actors share.
#[derive(Clone)]
struct Scene {
    engine: Engine,
    is_calm: Arc<AtomicBool>,
    stop: CancellationToken,
    consumed: UnboundedSender<String>,
    random: Random,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_consumer_gets_every_available_job() {
    let seed = settings::seed();
    println!("SWITCHYARD_SEED={seed}");
    let options = options();
    let mut engines = vec![Engine::open(&options).await.unwrap()];
    if database::postgres().is_some() {
        let deaf = EngineSettings {
            no_notify: true,
            ..options
        };
        engines.push(Engine::open(&deaf).await.unwrap());
    }
    for (option, value) in [("heartbeat", "1"), ("grace-period", "0")] {
        set(&engines[0], option, Some(value)).await;
    }
    let (consumed, mut came) = unbounded_channel();
    let (is_calm, stop) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
    let (mut movers, mut consumers) = (JoinSet::new(), JoinSet::new());
    for (server, engine) in engines.iter().enumerate() {
        let scene = |n: u64| Scene {
            engine: engine.clone(),
            is_calm: Arc::clone(&is_calm),
            stop: stop.clone(),
            consumed: consumed.clone(),
            random: Random(seed ^ ((server as u64 * 100 + n) << 20)),
        };
        (0..CONSUMERS).for_each(|n| drop(consumers.spawn(scene(n).consume(n))));
        movers.spawn(scene(50).put_and_cancel());
        movers.spawn(scene(51).pause_and_limit());
    }
    sleep(CHANGES).await;
    // On a busy machine, every lease of a second could expire before the job is completed.
    set(&engines[0], "heartbeat", Some("20")).await;
    is_calm.store(true, Ordering::Release);
    movers.join_all().await;
    settle(&engines).await;

    while came.try_recv().is_ok() {}
    let (mut random, mut longest) = (Random(seed), Duration::ZERO);
    for n in 0..PROBES {
        let engine = &engines[n % engines.len()];
        let began = Instant::now();
        let id = put_one(engine, &mut random, format!("probe-{n}")).await;
        let reached = async { while came.recv().await.as_ref() != Some(&id) {} };
        let reached = timeout(WAIT_MAX, reached).await;
        assert!(reached.is_ok(), "no consumer was woken for {id}");
        longest = longest.max(began.elapsed());
    }
    println!("the longest of {PROBES} waits: {longest:?}");
    stop.cancel();
    consumers.join_all().await;
    for engine in engines {
        assert_eq!(engine.check(None).await.unwrap(), []);
        engine.close().await;
    }
}

/// The result of a write that is repeated while it takes too long: on Postgres, a busy machine can exceed its time
/// limit.
async fn repeated<T, F: Future<Output = Result<T, Error>>>(write: impl Fn() -> F) -> T {
    loop {
        match write().await {
            Err(Error::Unavailable) => {}
            done => return done.unwrap(),
        }
    }
}

async fn set(engine: &Engine, option: &str, value: Option<&str>) {
    repeated(|| engine.configure(option, value.map(str::to_owned), None)).await;
}

/// Waits until the consumers have completed all jobs.
async fn settle(engines: &[Engine]) {
    let is_settled = async || {
        let queues = engines[0].queues(None).await.unwrap();
        let open = [
            EffectiveState::Waiting,
            EffectiveState::Running,
            EffectiveState::Stalled,
        ];
        let mut counts = queues
            .iter()
            .flat_map(|queue| open.map(|state| queue.counts.of(state)));
        counts.all(|n| n == 0)
    };
    let settled = async {
        while !is_settled().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let settled = timeout(WAIT_MAX, settled).await;
    assert!(settled.is_ok(), "the consumers have not completed all jobs");
}

/// Puts a job into a random queue. Returns its ID.
async fn put_one(engine: &Engine, random: &mut Random, id: String) -> String {
    if random.below(2) == 0 {
        let put = Put {
            retries: Some(1_000),
            ..new(&id)
        };
        let queue = QueueKey::qless(random.one_of(&QLESS));
        let done = || engine.put(queue.clone(), vec![put.clone()], "client".to_owned(), None);
        repeated(done).await.remove(0).unwrap()
    } else {
        let job = Publish {
            tries: 1_000,
            ..lmstfy_job("")
        };
        let queue = QueueKey::lmstfy("n", random.one_of(&LMSTFY));
        let done = || engine.publish(queue.clone(), vec![job.clone()]);
        repeated(done).await.remove(0)
    }
}

impl Scene {
    fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Acquire)
    }

    /// A random claim: one to three queues of one protocol.
    fn claim(&mut self, worker: &str) -> Claim {
        let (first, n) = (self.random.below(3), self.random.below(3) + 1);
        let is_qless = self.random.below(2) == 0;
        let queue = |at: u64| {
            let at = usize::try_from((first + at) % 3).unwrap();
            match is_qless {
                true => QueueKey::qless(QLESS[at]),
                false => QueueKey::lmstfy("n", LMSTFY[at]),
            }
        };
        let count = usize::try_from(self.random.below(2) + 1).unwrap();
        Claim {
            queues: (0..n).map(queue).collect(),
            lease_s: (!is_qless).then_some(1.0),
            ..Claim::of(queue(0), worker, count)
        }
    }

    /// Claims and completes jobs. During the changes it often disconnects, and sometimes abandons a job.
    async fn consume(mut self, n: u64) {
        let worker = format!("w{n}");
        // After the changes, each queue has consumers that wait without a timeout.
        let mut rest = Claim {
            queues: QLESS.map(QueueKey::qless).to_vec(),
            ..Claim::of(q(), &worker, 1)
        };
        if n.is_multiple_of(2) {
            rest.queues = LMSTFY.map(|name| QueueKey::lmstfy("n", name)).to_vec();
            rest.lease_s = Some(20.0);
        }
        let stop = self.stop.clone();
        while !stop.is_cancelled() {
            let claim = match self.is_calm() {
                true => rest.clone(),
                false => self.claim(&worker),
            };
            // Half of the consumers wait for a long time, so that many are waiting when the changes stop.
            let patience = match n < CONSUMERS / 2 && !self.is_calm() {
                true => Duration::from_millis(self.random.below(60)),
                false => WAIT,
            };
            let engine = self.engine.clone();
            let waiting = timeout(patience, engine.claim_or_wait(claim, WAIT, None));
            let Some(response) = stop.run_until_cancelled(waiting).await else {
                return;
            };
            let Ok(jobs) = response else { continue };
            let jobs = match jobs {
                // Claimed jobs, if any, are available again when their leases expire.
                Err(Error::Unavailable) => continue,
                jobs => jobs.unwrap(),
            };
            for job in jobs {
                self.consumed.send(job.key.id.clone()).ok();
                if self.is_calm() || self.random.below(10) > 0 {
                    self.finish(&worker, &job).await;
                }
            }
        }
    }

    async fn finish(&self, worker: &str, job: &Job) {
        let queue = self.engine.known_queues().by_id(job.queue).unwrap();
        // The lease may have expired, or the job may have been canceled. Then another consumer completes it.
        if job.key == JobKey::qless(&job.key.id) {
            let turn = || (job.key.clone(), "{}".to_owned(), None);
            let done = || self.engine.complete(vec![turn()], holder(worker), None);
            drop(repeated(done).await);
        } else {
            let ids = || vec![job.key.id.clone()];
            repeated(|| self.engine.acknowledge(queue.key.clone(), ids())).await;
        }
    }

    /// Puts jobs, and cancels some shortly afterwards.
    async fn put_and_cancel(mut self) {
        let mut n = 0;
        while !self.is_calm() {
            n += 1;
            let id = format!("{}-{n}", self.random.below(1_000_000_000));
            let id = put_one(&self.engine, &mut self.random, id).await;
            if self.random.below(4) == 0 {
                drop(self.engine.cancel(vec![JobKey::qless(&id)], None).await);
            }
            sleep(Duration::from_millis(self.random.below(15))).await;
        }
    }

    /// Pauses and resumes queues, and changes their concurrency limits. In the end, removes both.
    async fn pause_and_limit(mut self) {
        const LIMIT: &str = "limited-max-concurrency";
        while !self.is_calm() {
            let queue = QueueKey::qless(self.random.one_of(&QLESS));
            let paused = self.random.below(2) == 0;
            repeated(|| self.engine.pause(queue.clone(), paused, None)).await;
            let limit = (self.random.below(2) == 0).then_some("1");
            set(&self.engine, LIMIT, limit).await;
            sleep(Duration::from_millis(self.random.below(80))).await;
        }
        for queue in QLESS.map(QueueKey::qless) {
            repeated(|| self.engine.pause(queue.clone(), false, None)).await;
        }
        set(&self.engine, LIMIT, None).await;
    }
}
