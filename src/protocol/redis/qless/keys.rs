//! The Redis keys that clients read directly, with values from counts and jobs.

use crate::engine::{EffectiveState, Engine, JobKey, QueueKey, Result};

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
    let Some((queue, kind)) = parts(key) else {
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
