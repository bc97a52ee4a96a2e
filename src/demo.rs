//! Traffic for `switchyard dev`: generated queues, workers, jobs and failures, so that the dashboard shows live data.
//! It uses the same engine methods as the protocols.

mod fill;
mod jobq;
mod lmstfy;
mod relay;

use std::time::Duration;

pub use fill::fill;

use crate::engine::{
    Claim, Engine, Fail, Job, JobKey, LeaseHolder, NextQueue, Put, QueueKey, Recur, Result, Retry,
};

/// The worker name of the producers.
const PRODUCER: &str = "made-up";

/// How long a worker waits for a job before it polls again.
const POLL_TIMEOUT: Duration = Duration::from_secs(30);

/// Waiting jobs at which a producer pauses, which bounds the database when the demo runs for days.
const BACKLOG_MAX: i64 = 400;

/// How the jobs of one queue behave.
struct QueueProfile {
    queue: &'static str,
    klass: &'static str,
    /// Milliseconds between two jobs.
    every_ms: u64,
    /// A job runs between one quarter and five quarters of this time, in milliseconds.
    run_ms: u64,
    workers: usize,
    /// Percentage of jobs that fail.
    fails: u64,
    next: Option<&'static str>,
}

const PROFILES: &[QueueProfile] = &[
    QueueProfile {
        queue: "mail",
        klass: "Mail::Send",
        every_ms: 120,
        run_ms: 400,
        workers: 3,
        fails: 3,
        next: None,
    },
    QueueProfile {
        queue: "billing.invoices",
        klass: "Billing::Invoice",
        every_ms: 700,
        run_ms: 2_500,
        workers: 2,
        fails: 8,
        next: Some("mail"),
    },
    QueueProfile {
        queue: "images/resize",
        klass: "Image::Resize",
        every_ms: 250,
        run_ms: 1_600,
        workers: 4,
        fails: 5,
        next: Some("search-index"),
    },
    QueueProfile {
        queue: "search-index",
        klass: "Search::Index",
        every_ms: 1_500,
        run_ms: 900,
        workers: 1,
        fails: 2,
        next: None,
    },
    // Has no workers: the dashboard should report that.
    QueueProfile {
        queue: "reports",
        klass: "Report::Monthly",
        every_ms: 4_000,
        run_ms: 0,
        workers: 0,
        fails: 0,
        next: None,
    },
];

/// Options that differ from their defaults.
const OPTIONS: &[(&str, &str)] = &[
    ("heartbeat", "90"),
    ("images/resize-heartbeat", "20"),
    ("billing.invoices-cutoff", "600"),
];

/// Group and message of the failures. `{}` becomes a different number for each job.
const FAILURES: &[(&str, &str)] = &[
    (
        "TimeoutError",
        "upstream did not answer within 30 s (request {})",
    ),
    (
        "ConnectionReset",
        "connection reset by peer while reading reply {}",
    ),
    (
        "ValidationError",
        "field \"amount\" of invoice {} is negative",
    ),
];

/// The queue of the recurring jobs. It has no workers, so `recur` peeks at it every [`PEEK_INTERVAL`]: due children are
/// created only when a queue is claimed from or peeked at.
const RECURRING_QUEUE: &str = "reports";
/// ID, class and interval in seconds.
const RECURRING: &[(&str, &str, f64)] = &[
    ("usage-report", "Report::Usage", 60.0),
    ("nightly-report", "Report::Nightly", 24.0 * 3_600.0),
];
const PEEK_INTERVAL: Duration = Duration::from_secs(45);

const TAGS: &[&str] = &["vip", "eu", "us", "campaign-7", "backfill"];

const NOTES: &[&str] = &[
    "The customer called; please watch this one.",
    "Requeued by hand after the outage.",
    "Payload checked: looks right.",
];

/// The queue that is paused from time to time, how long each pause lasts, and the time between pauses.
const PAUSED: &str = "images/resize";
const PAUSE: Duration = Duration::from_secs(40);
const BETWEEN_PAUSES: Duration = Duration::from_secs(100);

/// How many jobs are tracked at a time.
const TRACKED: usize = 4;

/// Starts the demo tasks. They run until the process ends.
pub async fn start(engine: Engine) {
    for (option, value) in OPTIONS {
        let value = Some((*value).to_owned());
        drop(engine.configure(option, value, None).await);
    }
    tokio::spawn(recur(engine.clone()));
    tokio::spawn(pause_now_and_then(engine.clone()));
    tokio::spawn(track_jobs(engine.clone()));
    lmstfy::start(&engine).await;
    relay::start(&engine);
    jobq::start(&engine).await;
    for profile in PROFILES {
        tokio::spawn(produce(engine.clone(), profile));
        for number in 1..=profile.workers {
            let name = format!(
                "{}-{number}.example-{}",
                profile.queue.replace(['/', '.'], "-"),
                4_000 + number
            );
            tokio::spawn(work(engine.clone(), profile, name));
        }
    }
}

async fn pause_now_and_then(engine: Engine) {
    loop {
        drop(engine.pause(QueueKey::qless(PAUSED), true, None).await);
        tokio::time::sleep(PAUSE).await;
        drop(engine.pause(QueueKey::qless(PAUSED), false, None).await);
        tokio::time::sleep(BETWEEN_PAUSES).await;
    }
}

async fn recur(engine: Engine) {
    let queue = QueueKey::qless(RECURRING_QUEUE);
    let recurring = RECURRING.iter().map(|(id, klass, interval_s)| Recur {
        id: Some((*id).to_owned()),
        klass: Some((*klass).to_owned()),
        body: r#"{"full": true}"#.to_owned(),
        interval_s: *interval_s,
        tags: vec!["by-the-clock".to_owned()],
        retries: 1,
        backlog: 3,
        ..Recur::default()
    });
    drop(engine.recur(queue.clone(), recurring.collect(), None).await);
    loop {
        tokio::time::sleep(PEEK_INTERVAL).await;
        if waiting(&engine, &queue).await < BACKLOG_MAX {
            drop(engine.peek(&queue, RECURRING.len(), None).await);
        }
    }
}

/// Sleeps between half and one and a half times `every_ms` milliseconds.
async fn sleep_until_next(every_ms: u64) {
    tokio::time::sleep(Duration::from_millis(every_ms / 2 + up_to(every_ms))).await;
}

/// Sleeps between one quarter and five quarters of `run_ms` milliseconds.
async fn simulate_run(run_ms: u64) {
    tokio::time::sleep(Duration::from_millis(run_ms / 4 + up_to(run_ms))).await;
}

/// Returns once the queue has more than `max` dead jobs. Checks once a minute.
async fn until_dead_exceed(engine: &Engine, queue: &QueueKey, max: i64) {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let dead = engine.dead_letter_summary(queue).await.unwrap_or_default();
        if dead.size > max {
            return;
        }
    }
}

async fn waiting(engine: &Engine, queue: &QueueKey) -> i64 {
    let found = engine.queue(queue, None).await.ok().flatten();
    found.map_or(0, |queue| queue.counts.waiting)
}

/// Puts a job, tracks it and adds a note to it; untracks the oldest jobs beyond [`TRACKED`].
async fn track_jobs(engine: Engine) {
    for profile in PROFILES.iter().cycle() {
        let job = jobs(profile, 0).swap_remove(0);
        let queue = QueueKey::qless(profile.queue);
        let put = engine
            .put(queue, vec![job], PRODUCER.to_owned(), None)
            .await;
        let ids = put.unwrap_or_default().into_iter().flatten();
        let keys: Vec<JobKey> = ids.map(JobKey::qless).collect();
        let tracked = keys.iter().map(|key| (key.clone(), Vec::new())).collect();
        drop(engine.track(tracked, None).await);
        let word = pick(NOTES).unwrap_or_default();
        let data = one_in(2).then(|| format!(r#"{{"ticket": {}}}"#, up_to(10_000)));
        let notes = keys
            .into_iter()
            .map(|key| (key, word.to_owned(), data.clone()))
            .collect();
        drop(engine.note(notes, None).await);
        let mut known = engine.known_tracked().ids();
        known.truncate(known.len().saturating_sub(TRACKED));
        let old = known.into_iter().map(JobKey::qless).collect();
        drop(engine.untrack(old, None).await);
        tokio::time::sleep(Duration::from_secs(5 + up_to(10))).await;
    }
}

async fn produce(engine: Engine, profile: &'static QueueProfile) {
    let queue = QueueKey::qless(profile.queue);
    for number in 1_u64.. {
        if waiting(&engine, &queue).await < BACKLOG_MAX {
            let jobs = jobs(profile, number);
            drop(
                engine
                    .put(queue.clone(), jobs, PRODUCER.to_owned(), None)
                    .await,
            );
        }
        sleep_until_next(profile.every_ms).await;
    }
}

/// One job, and for 1 in 12 a second job that depends on it. 1 in 7 is scheduled for later.
fn jobs(profile: &QueueProfile, number: u64) -> Vec<Put> {
    let job = |number: u64| Put {
        id: Some(uuid::Uuid::new_v4().simple().to_string()),
        body: format!(
            r#"{{"number": {number}, "customer": {{"id": {}, "name": "Ada Example"}}, "trace": 12345678901234567890}}"#,
            1_000 + up_to(9_000)
        ),
        klass: Some(profile.klass.to_owned()),
        tags: one_in(3).then(|| {
            let tags = (0..=up_to(2)).filter_map(|_| pick(TAGS));
            tags.map(str::to_owned).collect()
        }),
        priority: one_in(9).then_some(-1.0),
        delay: one_in(7).then(|| up_to(90) as f64),
        retries: Some(2),
        ..Put::default()
    };
    let first = job(number);
    let after = one_in(12).then(|| Put {
        depends: first.id.clone().map(|id| vec![id]),
        ..job(number)
    });
    std::iter::once(first).chain(after).collect()
}

async fn work(engine: Engine, profile: &'static QueueProfile, name: String) {
    loop {
        let claim = Claim::of(QueueKey::qless(profile.queue), name.as_str(), 1);
        let claimed = engine.claim_or_wait(claim, POLL_TIMEOUT, None).await;
        match claimed.unwrap_or_default().pop() {
            Some(job) => {
                simulate_run(profile.run_ms).await;
                drop(finish(&engine, profile, &name, job).await);
            }
            None => tokio::time::sleep(Duration::from_millis(250)).await,
        }
    }
}

async fn finish(engine: &Engine, profile: &QueueProfile, name: &str, job: Job) -> Result<()> {
    let holder = LeaseHolder {
        worker: name.to_owned(),
        queue: None,
    };
    let key: JobKey = job.key;
    let dice = up_to(100);
    if dice < profile.fails {
        let (group, message) = usize::try_from(dice)
            .ok()
            .and_then(|dice| FAILURES.get(dice % FAILURES.len()))
            .copied()
            .unwrap_or_default();
        let message = message.replace("{}", &up_to(100_000).to_string());
        let fail = Fail {
            key,
            group: group.to_owned(),
            message,
            body: None,
        };
        engine.fail(vec![fail], holder, None).await?;
    } else if dice < profile.fails + 3 {
        engine
            .retry(
                vec![Retry {
                    key,
                    delay: up_to(20) as f64,
                    reason: None,
                }],
                holder,
                None,
            )
            .await?;
    } else if dice < profile.fails + 4 {
        // Simulates a crashed worker: the lease expires.
    } else {
        let next = profile.next.filter(|_| one_in(3)).map(|queue| NextQueue {
            queue: QueueKey::qless(queue),
            delay: 0.0,
            depends: Vec::new(),
        });
        engine
            .complete(vec![(key, job.body.into(), next)], holder, None)
            .await?;
    }
    Ok(())
}

/// 48 random bits. The shift drops the version bits of the UUID.
fn random() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0 >> 16
}

/// A random number from 0 to `max - 1`; 0 if `max` is 0.
fn up_to(max: u64) -> u64 {
    random() % max.max(1)
}

fn pick<T: Copy>(from: &[T]) -> Option<T> {
    let n = u64::try_from(from.len()).unwrap_or(u64::MAX);
    from.get(usize::try_from(up_to(n)).ok()?).copied()
}

fn one_in(n: u64) -> bool {
    random().is_multiple_of(n)
}
