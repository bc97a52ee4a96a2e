//! Demo traffic of lmstfy in two namespaces. Consumers lose some jobs, so that some become dead letters.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{
    BACKLOG_MAX, POLL_TIMEOUT, one_in, random, simulate_run, sleep_until_next, until_dead_exceed,
    up_to, waiting,
};
use crate::engine::{Claim, Engine, Publish, QueueKey};

/// How the jobs of one queue behave.
struct QueueProfile {
    namespace: &'static str,
    queue: &'static str,
    /// Milliseconds between two jobs.
    every_ms: u64,
    /// A job runs between one quarter and five quarters of this time, in milliseconds.
    run_ms: u64,
    consumers: usize,
    /// Percentage of jobs that the consumer does not acknowledge.
    lost: u64,
    tries: u16,
    ttl_s: u32,
    body: fn(u64) -> Vec<u8>,
}

const PROFILES: &[QueueProfile] = &[
    QueueProfile {
        namespace: "shop",
        queue: "orders",
        every_ms: 400,
        run_ms: 600,
        consumers: 2,
        lost: 4,
        tries: 3,
        ttl_s: 86_400,
        body: order,
    },
    QueueProfile {
        namespace: "shop",
        queue: "sms",
        every_ms: 900,
        run_ms: 500,
        consumers: 1,
        lost: 6,
        tries: 1,
        ttl_s: 3_600,
        body: message,
    },
    QueueProfile {
        namespace: "sensors",
        queue: "readings",
        every_ms: 250,
        run_ms: 200,
        consumers: 1,
        lost: 1,
        tries: 1,
        ttl_s: 600,
        body: reading,
    },
];

/// Above this number of dead jobs, some are respawned.
const DEAD_MAX: i64 = 40;
/// How many dead jobs are respawned at a time.
const RESPAWNED: usize = 25;

/// Lease of a consumer, in seconds.
const TTR_S: f64 = 5.0;

fn order(number: u64) -> Vec<u8> {
    let total = 5 + up_to(200);
    format!(
        r#"{{"order": {number}, "total": {total}.90, "items": [{{"sku": "A-{}", "n": 2}}]}}"#,
        up_to(900)
    )
    .into_bytes()
}

fn message(number: u64) -> Vec<u8> {
    format!(
        "Your parcel {number} is on its way.\nIt will be there in {} days. — Grüße vom Lager",
        1 + up_to(4)
    )
    .into_bytes()
}

/// A binary body: a counter and random measurements.
fn reading(number: u64) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.push(0xff);
    bytes.extend(random().to_le_bytes());
    bytes.extend(random().to_le_bytes());
    bytes
}

/// Starts the demo tasks. They run until the process ends.
pub async fn start(engine: &Engine) {
    let tokens = [
        ("shop", "the storefront"),
        ("shop", "the parcel service"),
        ("sensors", "the gateway in hall 3"),
    ];
    for (namespace, description) in tokens {
        drop(engine.create_token(namespace, description, None).await);
    }
    for profile in PROFILES {
        tokio::spawn(produce(engine.clone(), profile));
        tokio::spawn(tidy_up(engine.clone(), profile));
        for _ in 0..profile.consumers {
            tokio::spawn(consume(engine.clone(), profile));
        }
    }
}

/// Respawns dead jobs before there are too many.
async fn tidy_up(engine: Engine, profile: &'static QueueProfile) {
    let queue = QueueKey::lmstfy(profile.namespace, profile.queue);
    loop {
        until_dead_exceed(&engine, &queue, DEAD_MAX).await;
        drop(
            engine
                .respawn(queue.clone(), RESPAWNED, profile.ttl_s)
                .await,
        );
    }
}

async fn produce(engine: Engine, profile: &'static QueueProfile) {
    let queue = QueueKey::lmstfy(profile.namespace, profile.queue);
    for number in 1_u64.. {
        if waiting(&engine, &queue).await < BACKLOG_MAX {
            let job = Publish {
                body: BASE64.encode((profile.body)(number)),
                delay_s: if one_in(8) { 30 } else { 0 },
                ttl_s: profile.ttl_s,
                tries: profile.tries,
                versioned: false,
                attributes: one_in(5).then(|| format!(r#"{{"trace":"{:x}"}}"#, random())),
            };
            drop(engine.publish(queue.clone(), vec![job]).await);
        }
        sleep_until_next(profile.every_ms).await;
    }
}

async fn consume(engine: Engine, profile: &'static QueueProfile) {
    let queue = QueueKey::lmstfy(profile.namespace, profile.queue);
    loop {
        let claim = Claim {
            lease_s: Some(TTR_S),
            ..Claim::of(queue.clone(), "", 1)
        };
        let claimed = engine.claim_or_wait(claim, POLL_TIMEOUT, None).await;
        match claimed.unwrap_or_default().pop() {
            Some(job) => {
                simulate_run(profile.run_ms).await;
                if up_to(100) >= profile.lost {
                    drop(engine.acknowledge(queue.clone(), vec![job.key.id]).await);
                }
            }
            None => tokio::time::sleep(Duration::from_millis(250)).await,
        }
    }
}
