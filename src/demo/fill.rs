//! `switchyard dev --jobs N`: adds N jobs of all protocols in most states, for pages and searches over a large
//! database. It uses the same engine methods as the protocols.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::{StreamExt, TryStreamExt, stream};

use super::{FAILURES, PRODUCER, TAGS, one_in, pick, up_to};
use crate::engine::{
    Claim, Engine, Enqueue, Fail, Job, LeaseHolder, Mode, Publish, Put, QueueKey, Result,
};

/// Jobs in a batch.
const BATCH: usize = 500;
/// Batches that are added concurrently.
const AT_ONCE: usize = 4;

/// The queues of qless are named after each combination of an area and a kind.
const AREAS: &[&str] = &["billing", "shop", "media", "crm", "ops"];
const KINDS: &[&str] = &[
    "import", "export", "notify", "resize", "sync", "index", "report", "cleanup",
];
/// Number of queues of each other protocol.
const OTHER_QUEUES: usize = 5;

/// Minimum delay of scheduled jobs, in seconds.
const LATER_S: u64 = 3_600;
/// Range of the delays beyond the minimum, in seconds.
const WEEK_S: u64 = 604_800;

/// The state in which the jobs of a batch end up.
#[derive(Clone, Copy)]
enum TargetState {
    Complete,
    Failed,
    Waiting,
    Scheduled,
    Depends,
    Ready,
    Delayed,
    Enqueued,
    Later,
    Dead,
    Records,
}

/// Percentage of batches per target state.
const PERCENTAGES: [(TargetState, usize); 11] = [
    (TargetState::Complete, 38),
    (TargetState::Failed, 6),
    (TargetState::Waiting, 14),
    (TargetState::Scheduled, 7),
    (TargetState::Depends, 3),
    (TargetState::Ready, 11),
    (TargetState::Delayed, 3),
    (TargetState::Enqueued, 8),
    (TargetState::Later, 3),
    (TargetState::Dead, 1),
    (TargetState::Records, 6),
];

/// Coprime to 100, so that 100 consecutive batches have each target state as often as its percentage says, in mixed
/// order.
const STRIDE: usize = 37;

/// Adds `jobs` jobs, rounded up to whole batches. Reports the number of added jobs to `on_progress` after each batch.
pub async fn fill(engine: &Engine, jobs: usize, mut on_progress: impl FnMut(usize)) -> Result<()> {
    // Otherwise maintenance deletes most completed jobs.
    engine
        .configure("jobs-history-count", Some(jobs.to_string()), None)
        .await?;
    for number in 0..OTHER_QUEUES {
        engine.create_queue(&record_queue(number)).await?;
    }
    let batches = jobs.div_ceil(BATCH);
    let mut filled = stream::iter(0..batches)
        .map(|number| batch(engine, number))
        .buffer_unordered(AT_ONCE);
    let mut done = 0;
    while filled.try_next().await?.is_some() {
        done += BATCH;
        on_progress(done);
    }
    Ok(())
}

fn target_state(number: usize) -> TargetState {
    let mut position = number * STRIDE % 100;
    for (target_state, percentage) in PERCENTAGES {
        if position < percentage {
            return target_state;
        }
        position -= percentage;
    }
    TargetState::Waiting
}

async fn batch(engine: &Engine, number: usize) -> Result<()> {
    let target_state = target_state(number);
    match target_state {
        TargetState::Complete
        | TargetState::Failed
        | TargetState::Waiting
        | TargetState::Scheduled
        | TargetState::Depends => qless(engine, number, target_state).await,
        TargetState::Ready | TargetState::Delayed => {
            publish(engine, number, matches!(target_state, TargetState::Delayed)).await
        }
        TargetState::Enqueued | TargetState::Later | TargetState::Dead => {
            enqueue(engine, number, target_state).await
        }
        TargetState::Records => records(engine, number).await,
    }
}

fn pick_of(names: &[&'static str], number: usize) -> &'static str {
    names.get(number % names.len()).copied().unwrap_or_default()
}

async fn qless(engine: &Engine, number: usize, target_state: TargetState) -> Result<()> {
    let (area, kind) = (pick_of(AREAS, number), pick_of(KINDS, number / AREAS.len()));
    let queue = QueueKey::qless(format!("{area}.{kind}"));
    let mut jobs: Vec<Put> = (0..BATCH).map(|_| put(area, kind, target_state)).collect();
    if let (TargetState::Depends, Some((first, others))) = (target_state, jobs.split_first_mut()) {
        first.delay = Some((LATER_S + up_to(WEEK_S)) as f64);
        for job in others {
            job.depends = first.id.clone().map(|id| vec![id]);
        }
    }
    for put in engine
        .put(queue.clone(), jobs, PRODUCER.to_owned(), None)
        .await?
    {
        put?;
    }
    if !matches!(target_state, TargetState::Complete | TargetState::Failed) {
        return Ok(());
    }
    let worker = format!("{kind}-{}.example-4001", number % 9);
    let claim = Claim::of(queue, worker.as_str(), BATCH);
    let claimed = engine.claim(claim, None).await?;
    let holder = LeaseHolder {
        worker,
        queue: None,
    };
    if matches!(target_state, TargetState::Complete) {
        let jobs = claimed
            .into_iter()
            .map(|job| (job.key, job.body.into(), None));
        engine.complete(jobs.collect(), holder, None).await?;
    } else {
        let jobs = claimed.into_iter().map(failed);
        engine.fail(jobs.collect(), holder, None).await?;
    }
    Ok(())
}

fn put(area: &str, kind: &str, target_state: TargetState) -> Put {
    Put {
        id: Some(uuid::Uuid::new_v4().simple().to_string()),
        body: body(),
        klass: Some(format!("{area}::{kind}")),
        tags: one_in(4).then(|| pick(TAGS).map(str::to_owned).into_iter().collect()),
        priority: one_in(9).then(|| up_to(5) as f64 - 2.0),
        delay: matches!(target_state, TargetState::Scheduled)
            .then(|| (LATER_S + up_to(WEEK_S)) as f64),
        retries: Some(5),
        ..Put::default()
    }
}

fn body() -> String {
    format!(
        r#"{{"customer": {{"id": {}}}, "total": {}.5, "trace": 12345678901234567890}}"#,
        1_000 + up_to(90_000),
        up_to(2_000)
    )
}

fn failed(job: Job) -> Fail {
    let (group, message) = pick(FAILURES).unwrap_or_default();
    Fail {
        key: job.key,
        group: group.to_owned(),
        message: message.replace("{}", &up_to(100_000).to_string()),
        body: None,
    }
}

async fn publish(engine: &Engine, number: usize, is_delayed: bool) -> Result<()> {
    let queue = QueueKey::lmstfy(
        pick_of(AREAS, number),
        format!("outbox-{}", number % OTHER_QUEUES),
    );
    let job = |_| Publish {
        body: BASE64.encode(body()),
        delay_s: if is_delayed { 86_400 } else { 0 },
        ttl_s: 0,
        tries: 3,
        versioned: false,
        attributes: None,
    };
    let jobs = (0..BATCH).map(job).collect();
    engine.publish(queue, jobs).await.map(drop)
}

async fn enqueue(engine: &Engine, number: usize, target_state: TargetState) -> Result<()> {
    // Dead jobs get their own queue, because the claim below must not claim other jobs.
    let name = match target_state {
        TargetState::Dead => "bulk-dead".to_owned(),
        _ => format!("bulk-{}", number % OTHER_QUEUES),
    };
    let queue = QueueKey::relay(name);
    let later = || {
        engine
            .now(None)
            .plus_seconds((LATER_S + up_to(WEEK_S)) as f64)
    };
    let job = |at| Enqueue {
        queue: queue.clone(),
        id: format!("{number}-{at}"),
        timeout_s: 1,
        max_retries: matches!(target_state, TargetState::Dead).then_some(0),
        payload: body(),
        state: None,
        run_at: matches!(target_state, TargetState::Later).then(later),
    };
    let jobs = (0..BATCH).map(job).collect();
    engine.enqueue(jobs, Mode::Unique).await?;
    if matches!(target_state, TargetState::Dead) {
        // Without heartbeats, the leases expire and the jobs are dead-lettered.
        engine.claim(Claim::of(queue, "", BATCH), None).await?;
    }
    Ok(())
}

fn record_queue(number: usize) -> String {
    format!("ledger-{number}")
}

async fn records(engine: &Engine, number: usize) -> Result<()> {
    let queue = engine
        .record_queue(&record_queue(number % OTHER_QUEUES))
        .await?;
    let record = |_| {
        let state = match up_to(4) {
            0 => r#"["CREATED"]"#,
            1 => r#"["ASSIGNED",{"node":7}]"#,
            2 => r#"["FINISHED"]"#,
            _ => "null",
        };
        engine.create_record(&queue, body(), state.to_owned())
    };
    futures::future::try_join_all((0..BATCH).map(record)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_target_state_has_its_percentage_of_100_batches() {
        assert_eq!(
            PERCENTAGES
                .iter()
                .map(|(_, percentage)| percentage)
                .sum::<usize>(),
            100
        );
        let mut met: HashMap<_, usize> = HashMap::new();
        for number in 0..100 {
            *met.entry(std::mem::discriminant(&target_state(number)))
                .or_default() += 1;
        }
        for (target_state, percentage) in PERCENTAGES {
            assert_eq!(
                met.get(&std::mem::discriminant(&target_state)),
                Some(&percentage)
            );
        }
    }
}
