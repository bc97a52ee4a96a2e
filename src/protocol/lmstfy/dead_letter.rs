//! Dead letters: peek, count, respawn, delete.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::json;

use super::call::Call;
use super::consume::size_response;
use super::error::ApiError;
use super::publish::TTL_S;
use super::{Api, HandlerResult};

/// `GET /api/:namespace/:queue/deadletter`
pub async fn peek_dead_letter(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue()?;
    let dead = api.engine.dead_letter_summary(&queue).await?;
    Ok(Json(json!({
        "namespace": queue.namespace,
        "queue": queue.name,
        "deadletter_size": dead.size,
        "deadletter_head": dead.head.unwrap_or_default(),
    }))
    .into_response())
}

/// `GET /api/:namespace/:queue/deadletter/size`
pub async fn size(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue()?;
    let dead = api.engine.dead_letter_summary(&queue).await?;
    Ok(size_response(&queue, dead.size))
}

/// `PUT /api/:namespace/:queue/deadletter`
pub async fn respawn(api: Api, call: Call) -> HandlerResult {
    let (queue, limit) = (call.queue()?, limit(&call)?);
    let ttl_s = call.number("ttl", TTL_S, "invalid ttl")?;
    let count = api.engine.respawn(queue, limit, ttl_s).await?;
    Ok(Json(json!({ "msg": "respawned", "count": count })).into_response())
}

/// `DELETE /api/:namespace/:queue/deadletter`
pub async fn delete(api: Api, call: Call) -> HandlerResult {
    let (queue, limit) = (call.queue()?, limit(&call)?);
    api.engine.delete_dead_letter(queue, limit).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn limit(call: &Call) -> Result<usize, ApiError> {
    let limit: i64 = call.number("limit", 1, "invalid limit")?;
    match usize::try_from(limit) {
        Ok(limit @ 1..) => Ok(limit),
        _ => Err(ApiError::Bad("invalid limit")),
    }
}
