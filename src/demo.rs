//! `switchyard dev`: made-up queues, workers, jobs and failures that keep moving, so that the page can
//! be judged at a glance. It uses the same verbs as everybody else.

use std::time::Duration;

use crate::engine::{Claim, Engine, Fail, Holder, Job, JobKey, Next, Put, QueueKey, Result, Retry};

/// Who puts the jobs.
const PRODUCER: &str = "made-up";

/// How long a worker waits for a job at a time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waiting jobs at which a producer pauses, so that the demonstration may run for days.
const BACKLOG_MAX: i64 = 400;

/// How the jobs of one queue behave.
struct Scene {
    queue: &'static str,
    klass: &'static str,
    /// Milliseconds between two jobs.
    every_ms: u64,
    /// How long a job takes at the most, in milliseconds.
    run_ms: u64,
    workers: usize,
    /// Of a hundred jobs, how many fail.
    fails: u64,
    next: Option<&'static str>,
}

const SCENES: &[Scene] = &[
    Scene {
        queue: "mail",
        klass: "Mail::Send",
        every_ms: 120,
        run_ms: 400,
        workers: 3,
        fails: 3,
        next: None,
    },
    Scene {
        queue: "billing.invoices",
        klass: "Billing::Invoice",
        every_ms: 700,
        run_ms: 2_500,
        workers: 2,
        fails: 8,
        next: Some("mail"),
    },
    Scene {
        queue: "images/resize",
        klass: "Image::Resize",
        every_ms: 250,
        run_ms: 1_600,
        workers: 4,
        fails: 5,
        next: Some("search-index"),
    },
    Scene {
        queue: "search-index",
        klass: "Search::Index",
        every_ms: 1_500,
        run_ms: 900,
        workers: 1,
        fails: 2,
        next: None,
    },
    // Nobody works here: the page should say so.
    Scene {
        queue: "reports",
        klass: "Report::Monthly",
        every_ms: 4_000,
        run_ms: 0,
        workers: 0,
        fails: 0,
        next: None,
    },
];

/// What somebody has set.
const OPTIONS: &[(&str, &str)] = &[
    ("heartbeat", "90"),
    ("images/resize-heartbeat", "20"),
    ("billing.invoices-cutoff", "600"),
];

/// Why jobs fail: group and message. The number in a message differs from job to job.
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

/// Plays until the process ends.
pub async fn play(engine: Engine) {
    for (option, value) in OPTIONS {
        let value = Some((*value).to_owned());
        drop(engine.configure(option, value, None).await);
    }
    for scene in SCENES {
        tokio::spawn(produce(engine.clone(), scene));
        for number in 1..=scene.workers {
            let name = format!(
                "{}-{number}.example-{}",
                scene.queue.replace(['/', '.'], "-"),
                4_000 + number
            );
            tokio::spawn(work(engine.clone(), scene, name));
        }
    }
}

async fn produce(engine: Engine, scene: &'static Scene) {
    let queue = QueueKey::qless(scene.queue);
    for number in 1_u64.. {
        let waiting = engine
            .queue(&queue, None)
            .await
            .ok()
            .flatten()
            .map_or(0, |queue| queue.counts.waiting);
        if waiting < BACKLOG_MAX {
            let jobs = jobs(scene, number);
            drop(
                engine
                    .put(queue.clone(), jobs, PRODUCER.to_owned(), None)
                    .await,
            );
        }
        tokio::time::sleep(Duration::from_millis(
            scene.every_ms / 2 + up_to(scene.every_ms),
        ))
        .await;
    }
}

/// One job; now and then a second one that waits for it, and some that are for later.
fn jobs(scene: &Scene, number: u64) -> Vec<Put> {
    let job = |number: u64| Put {
        id: Some(uuid::Uuid::new_v4().simple().to_string()),
        body: format!(
            r#"{{"number": {number}, "customer": {{"id": {}, "name": "Ada Example"}}, "trace": 12345678901234567890}}"#,
            1_000 + up_to(9_000)
        ),
        klass: Some(scene.klass.to_owned()),
        tags: one_in(6).then(|| vec!["vip".to_owned()]),
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

async fn work(engine: Engine, scene: &'static Scene, name: String) {
    loop {
        let claim = Claim::of(QueueKey::qless(scene.queue), name.as_str(), 1);
        let claimed = engine.claim_or_wait(claim, PATIENCE, None).await;
        match claimed.unwrap_or_default().pop() {
            Some(job) => {
                tokio::time::sleep(Duration::from_millis(
                    scene.run_ms / 4 + up_to(scene.run_ms),
                ))
                .await;
                drop(finish(&engine, scene, &name, job).await);
            }
            None => tokio::time::sleep(Duration::from_millis(250)).await,
        }
    }
}

async fn finish(engine: &Engine, scene: &Scene, name: &str, job: Job) -> Result<()> {
    let holder = Holder {
        worker: name.to_owned(),
        queue: None,
    };
    let key: JobKey = job.key;
    let dice = up_to(100);
    if dice < scene.fails {
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
    } else if dice < scene.fails + 3 {
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
    } else if dice < scene.fails + 4 {
        // The worker forgets the job; its lease will be lost.
    } else {
        let next = scene.next.filter(|_| one_in(3)).map(|queue| Next {
            queue: QueueKey::qless(queue),
            delay: 0.0,
            depends: Vec::new(),
        });
        engine
            .complete(vec![(key, job.body, next)], holder, None)
            .await?;
    }
    Ok(())
}

/// Above the bits that say which kind of UUID it is.
fn random() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0 >> 16
}

fn up_to(max: u64) -> u64 {
    random() % max.max(1)
}

fn one_in(n: u64) -> bool {
    random().is_multiple_of(n)
}
