//! The Redis keys that clients read directly, with values from counts and jobs.

use crate::engine::{EffectiveState, Engine, JobKey, NAME_BYTES_MAX, QueueKey, Result};
use crate::protocol::long_list;
use crate::protocol::qless::is_listed;
use crate::protocol::redis::pubsub::pace;
use crate::protocol::redis::pubsub::pattern::Pattern;
use crate::protocol::redis::resp::Reply;

/// The steps ([`pace`]) of looking at a queue that is known.
const STEPS_PER_QUEUE: usize = 64;

/// The number of all keys (`ql:q:<queue>`).
pub async fn count(engine: &Engine) -> Result<usize> {
    engine.options().await?;
    // The list of queues is dropped before the task yields.
    let (known, listed) = {
        let queues = engine.known_queues().unordered();
        let listed = queues.iter().filter(|queue| is_listed(queue));
        (queues.len(), listed.count())
    };
    pace(known * STEPS_PER_QUEUE).await;
    Ok(listed)
}

/// The keys that match the pattern.
pub async fn matching(engine: &Engine, pattern: &Pattern) -> Result<Reply> {
    engine.options().await?;
    let _permit = long_list::of_queues(engine).await?;
    let queues = engine.known_queues().unordered();
    pace(queues.len() * STEPS_PER_QUEUE).await;
    let queues = queues.iter().filter(|queue| is_listed(queue));
    let keys = queues.map(|queue| format!("ql:q:{}", queue.key.name));
    let mut found = Vec::new();
    for key in keys {
        let mut steps = 0;
        if pattern.matches(&key, &mut steps) {
            found.push(Reply::Text(key));
        }
        pace(steps).await;
    }
    Ok(Reply::List(found))
}

/// The number of entries of a key that clients read directly: `ql:q:<queue>-<kind>`.
pub async fn cardinality(engine: &Engine, key: &str) -> Result<i64> {
    let Some((queue, kind)) = parts(key) else {
        return Ok(0);
    };
    let queue = engine.queue(&QueueKey::qless(queue), None).await?;
    let recurring = queue.as_ref().map_or(0, |queue| queue.recurring);
    let counts = queue.map(|queue| queue.counts).unwrap_or_default();
    Ok(match kind {
        "locks" => counts.running + counts.stalled,
        "work" => counts.waiting,
        "scheduled" => counts.scheduled,
        "depends" => counts.depends,
        "recur" => recurring,
        _ => 0,
    })
}

/// The score of an entry of such a key: when a recurring job spawns its next child, or when a scheduled job is due, in
/// seconds since 1970. `None` if there is no such entry.
pub async fn score(engine: &Engine, key: &str, id: &str) -> Result<Option<f64>> {
    let Some((queue, kind)) = parts(key).filter(|_| id.len() <= NAME_BYTES_MAX) else {
        return Ok(None);
    };
    let queue = engine
        .known_queues()
        .get(&QueueKey::qless(queue))
        .map(|queue| queue.id);
    match kind {
        "recur" => {
            let job = engine.recurring(id).await?;
            let job = job.filter(|job| Some(job.queue) == queue);
            Ok(job.map(|job| job.next_at.seconds()))
        }
        "scheduled" => {
            let job = engine.job(&JobKey::qless(id)).await?;
            let now = engine.now(None);
            let job = job.filter(|job| {
                Some(job.queue) == queue && job.effective_state(now) == EffectiveState::Scheduled
            });
            Ok(job.map(|job| job.ready_at.seconds()))
        }
        _ => Ok(None),
    }
}

/// The queue and the kind of a key.
fn parts(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix("ql:q:")?.rsplit_once('-')
}
