//! Dead letters: peek, count, respawn, delete.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::json;

use super::call::Call;
use super::consuming::sized;
use super::publishing::TTL_S;
use super::refusal::Refusal;
use super::{Front, Outcome};

/// `GET /api/:namespace/:queue/deadletter`
pub async fn head(front: Front, call: Call) -> Outcome {
    let queue = call.queue()?;
    let dead = front.engine.dead_letter(&queue).await?;
    Ok(Json(json!({
        "namespace": queue.namespace,
        "queue": queue.name,
        "deadletter_size": dead.size,
        "deadletter_head": dead.head.unwrap_or_default(),
    }))
    .into_response())
}

/// `GET /api/:namespace/:queue/deadletter/size`
pub async fn size(front: Front, call: Call) -> Outcome {
    let queue = call.queue()?;
    let dead = front.engine.dead_letter(&queue).await?;
    Ok(sized(&queue, dead.size))
}

/// `PUT /api/:namespace/:queue/deadletter`
pub async fn respawn(front: Front, call: Call) -> Outcome {
    let (queue, limit) = (call.queue()?, limit(&call)?);
    let ttl_s = call.number("ttl", TTL_S, "invalid ttl")?;
    let count = front.engine.respawn(queue, limit, ttl_s).await?;
    Ok(Json(json!({ "msg": "respawned", "count": count })).into_response())
}

/// `DELETE /api/:namespace/:queue/deadletter`
pub async fn drop_dead(front: Front, call: Call) -> Outcome {
    let (queue, limit) = (call.queue()?, limit(&call)?);
    front.engine.delete_dead_letter(queue, limit).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn limit(call: &Call) -> Result<usize, Refusal> {
    let limit: i64 = call.number("limit", 1, "invalid limit")?;
    match usize::try_from(limit) {
        Ok(limit @ 1..) => Ok(limit),
        _ => Err(Refusal::Bad("invalid limit")),
    }
}
