//! A simulation of the engine on one thread: clients whose calls overlap, a clock that only the simulation moves,
//! maintenance, lost connections, and crashes before a commit, and after a commit but before its responses.
//!
//! A seed determines everything, so that it repeats a run exactly. Afterwards the history of all calls must keep the
//! promises (`tests/support/history.rs`), and the consistency check must find nothing. On SQLite only: a seed does not
//! determine when Postgres answers. `SWITCHYARD_SEEDS` sets the number of runs, `SWITCHYARD_SEED` the first one.

mod clients;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use switchyard::engine::{Durability, Engine, EngineSettings, ManualClock, Time};
use tempfile::TempDir;

use super::crash_copy::crash_copy;
use super::database;
use super::history::{History, Outcome, Verdict};
use super::random::Random;
use super::settings;
use clients::{Call, Client, Done, Work};

const CLIENTS: usize = 6;

/// Actions in one run, besides the drain at its end.
const ACTIONS: usize = 150;

/// The duration of all leases.
const LEASE: Duration = clients::LEASE;
/// A little longer than a lease, in microseconds.
const LEASE_OVER: u64 = 61_000_000;

/// Rounds of the drain. Each outlasts a lease.
const ROUNDS_MAX: usize = 50;

/// The time at the start of a run, in seconds.
const START: i64 = 2_000_000_000;

/// A call in progress.
struct Open {
    client: usize,
    /// Its numbers in the history.
    numbers: Vec<usize>,
    call: Call,
}

/// How often each kind of event occurred.
#[derive(Debug, Default)]
struct Counts {
    calls: u64,
    deliveries: u64,
    /// Crashes with requests that the writer had not seen, and with commits whose responses were lost.
    before_commit: u64,
    after_commit: u64,
    disconnects: u64,
}

struct Simulation {
    random: Random,
    engine: Engine,
    options: EngineSettings,
    clock: ManualClock,
    /// Microseconds since the start.
    micros: Arc<AtomicU64>,
    /// The folder of the database, and the one before the last crash.
    folder: TempDir,
    abandoned: Option<TempDir>,
    history: History,
    clients: Vec<Client>,
    open: Vec<Open>,
    counts: Counts,
    tokens: u64,
}

/// A new database, to be copied.
async fn template() -> TempDir {
    let folder = TempDir::new().unwrap();
    let options = EngineSettings {
        database: database::file(&folder.path().join("sim.db")),
        offline: true,
        ..EngineSettings::default()
    };
    Engine::open(&options).await.unwrap().close().await;
    folder
}

impl Simulation {
    async fn start(seed: u64, template: &TempDir) -> Simulation {
        let folder = TempDir::new().unwrap();
        crash_copy(
            &template.path().join("sim.db"),
            &folder.path().join("sim.db"),
        );
        let clock = ManualClock::at(Time(START * 1_000_000));
        let options = EngineSettings {
            database: database::file(&folder.path().join("sim.db")),
            durability: Durability::Process,
            offline: true,
            writer_on_runtime: true,
            clock: Some(clock.clone()),
            ..EngineSettings::default()
        };
        let micros = Arc::<AtomicU64>::default();
        Simulation {
            random: Random(seed),
            engine: Engine::open(&options).await.unwrap(),
            options,
            clock,
            history: History::with_clock(Arc::clone(&micros)),
            micros,
            folder,
            abandoned: None,
            clients: (0..CLIENTS).map(Client::new).collect(),
            open: Vec::new(),
            counts: Counts::default(),
            tokens: 0,
        }
    }

    fn advance(&mut self, micros: u64) {
        let passed = self.micros.fetch_add(micros, Ordering::Relaxed) + micros;
        let passed = i64::try_from(passed).unwrap();
        self.clock.set(Time(START * 1_000_000 + passed));
    }

    async fn act(&mut self) {
        self.advance(1_000);
        match self.random.below(100) {
            0..=44 => self.begin(),
            45..=69 => self.poll(),
            70..=84 => write().await,
            85..=92 => {
                let millis = self.random.below(2_000);
                self.advance(millis * 1_000);
            }
            93 => self.advance(LEASE_OVER),
            94..=96 => self.maintain(),
            97 => self.disconnect(),
            98 => {
                // Requests that the writer has not seen.
                self.begin();
                self.counts.before_commit += 1;
                self.crash().await;
            }
            _ => {
                self.begin();
                write().await;
                self.counts.after_commit += 1;
                self.crash().await;
            }
        }
    }

    /// Begins a call of a client that has none.
    fn begin(&mut self) {
        let client = self.random.index(CLIENTS);
        if self.open.iter().any(|open| open.client == client) {
            return;
        }
        self.tokens += 1;
        let token = format!("t{}", self.tokens);
        let work = self.clients[client].next(&mut self.random, token);
        self.begin_call(client, work);
    }

    fn begin_call(&mut self, client: usize, work: Work) {
        self.counts.calls += 1;
        let all = work.what().into_iter();
        let numbers = all.map(|what| self.history.invoke(what)).collect();
        let name = self.clients.get(client).map_or("", Client::name);
        let call = work.call(self.engine.clone(), name.to_owned());
        self.open.push(Open {
            client,
            numbers,
            call,
        });
        let last = self.open.len() - 1;
        self.poll_one(last);
    }

    /// Maintenance is a call, too, of one more client.
    fn maintain(&mut self) {
        if self.open.iter().all(|open| open.client != CLIENTS) {
            self.begin_call(CLIENTS, Work::Maintain);
        }
    }

    /// Continues all calls, in a random order.
    fn poll(&mut self) {
        for _ in 0..self.open.len() {
            if !self.open.is_empty() {
                let place = self.random.index(self.open.len());
                self.poll_one(place);
            }
        }
    }

    fn poll_one(&mut self, place: usize) {
        let open = &mut self.open[place];
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(done) = open.call.as_mut().poll(&mut context) else {
            return;
        };
        let Open {
            client, numbers, ..
        } = self.open.swap_remove(place);
        let outcome = match done {
            Done::Accepted => Outcome::Ok,
            Done::Refused => Outcome::Refused,
            Done::Got(jobs) => {
                self.counts.deliveries += jobs.len() as u64;
                let tokens = jobs.iter().map(|job| job.token.clone()).collect();
                self.clients[client].held.extend(jobs);
                Outcome::Got(tokens)
            }
        };
        for number in numbers {
            self.history.end(number, outcome.clone());
        }
    }

    /// A client goes away. Its call has no response.
    fn disconnect(&mut self) {
        if !self.open.is_empty() {
            let place = self.random.index(self.open.len());
            drop(self.open.swap_remove(place));
            self.counts.disconnects += 1;
        }
    }

    /// The process ends: all calls are lost, and a new engine finds what was committed.
    async fn crash(&mut self) {
        let folder = TempDir::new().unwrap();
        crash_copy(
            &self.folder.path().join("sim.db"),
            &folder.path().join("sim.db"),
        );
        self.open.clear();
        self.options.database = database::file(&folder.path().join("sim.db"));
        let engine = Engine::open(&self.options).await.unwrap();
        drop(std::mem::replace(&mut self.engine, engine));
        self.abandoned = Some(std::mem::replace(&mut self.folder, folder));
        // The abandoned writer ends.
        write().await;
    }

    /// Runs the calls in progress to their ends.
    async fn finish(&mut self) {
        while !self.open.is_empty() {
            write().await;
            self.poll();
        }
    }

    /// Claims and completes what is left, after all leases.
    async fn drain(&mut self) {
        self.finish().await;
        for client in &mut self.clients {
            client.held.clear();
        }
        for _ in 0..ROUNDS_MAX {
            self.advance(LEASE_OVER);
            self.begin_call(CLIENTS, Work::Maintain);
            self.finish().await;
            self.begin_call(CLIENTS, Work::RetryAll);
            self.finish().await;
            for protocol in 0..clients::PROTOCOLS {
                self.begin_call(0, Work::Claim(protocol, 1_000));
                self.finish().await;
            }
            let held = std::mem::take(&mut self.clients[0].held);
            if held.is_empty() {
                return;
            }
            for job in held {
                self.advance(1);
                self.begin_call(0, Work::Complete(job));
                self.finish().await;
            }
        }
        panic!("jobs are left after {ROUNDS_MAX} rounds");
    }
}

/// Lets the writer run all that is queued.
async fn write() {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
}

/// One run. Returns the history, as text, and what the check found.
async fn run(seed: u64, template: &TempDir, counts: &mut Counts) -> (Vec<String>, Verdict) {
    let mut simulation = Simulation::start(seed, template).await;
    for _ in 0..ACTIONS {
        simulation.act().await;
    }
    simulation.drain().await;
    let problems = simulation.engine.check(None).await.unwrap();
    assert_eq!(problems, [], "seed {seed}");
    let verdict = simulation.history.check(LEASE, Duration::MAX);
    simulation.engine.close().await;
    let found = simulation.counts;
    counts.calls += found.calls;
    counts.deliveries += found.deliveries;
    counts.before_commit += found.before_commit;
    counts.after_commit += found.after_commit;
    counts.disconnects += found.disconnects;
    (simulation.history.lines(), verdict)
}

#[tokio::test]
async fn the_promises_hold_for_every_seed() {
    if database::postgres().is_some() {
        println!("on SQLite only");
        return;
    }
    let first = super::seed_of_run("SWITCHYARD_SEEDS");
    let seeds = settings::number("SWITCHYARD_SEEDS", 50);
    let (template, mut counts) = (template().await, Counts::default());
    let mut recovered = 0;
    for seed in first..first + seeds {
        let (history, verdict) = run(seed, &template, &mut counts).await;
        let wrong = [
            &verdict.lost,
            &verdict.unexpected,
            &verdict.completed_twice,
            &verdict.unjustified,
        ];
        for token in wrong.into_iter().flatten() {
            println!("seed {seed}, job {token}:");
            let quoted = format!("\"{token}\"");
            let calls = history.iter().filter(|line| line.contains(&quoted));
            calls.for_each(|line| println!("  {line}"));
        }
        assert!(
            wrong.iter().all(|set| set.is_empty()),
            "seed {seed}: {verdict:?}"
        );
        recovered += verdict.recovered.len();
    }
    let Counts {
        calls,
        deliveries,
        before_commit,
        after_commit,
        disconnects,
    } = counts;
    println!(
        "{seeds} seeds, {calls} calls, {deliveries} deliveries, {before_commit} crashes before and {after_commit} after \
         a commit, {disconnects} disconnects, {recovered} jobs recovered"
    );
    assert!(before_commit > 0 && after_commit > 0 && disconnects > 0);
}

#[tokio::test]
async fn a_seed_repeats_a_run_exactly() {
    if database::postgres().is_some() {
        println!("on SQLite only");
        return;
    }
    let first = super::seed_of_run("SWITCHYARD_SEEDS");
    let template = template().await;
    for seed in first..first + 5 {
        let (once, _) = run(seed, &template, &mut Counts::default()).await;
        let (again, _) = run(seed, &template, &mut Counts::default()).await;
        let differs = once.iter().zip(&again).find(|(once, again)| once != again);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(once.len(), again.len(), "seed {seed}");
        assert!(once.len() > 50, "seed {seed} did something");
    }
}
