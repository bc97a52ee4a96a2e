//! The consistency check, and `/flush`, which empties the database.

use serde_json::{Value, json};

use super::call::{Call, Fields};
use super::error::ApiError;
use super::response::Results;
use super::{Api, HandlerResult};
use crate::engine::Inconsistency;
use crate::protocol::body;

pub async fn check(api: Api, call: Call) -> HandlerResult {
    let now = api.now(&call.envelope().await?)?;
    let problems = api.engine.check(now).await?;
    Ok(Results::new(&json!({ "problems": views(&problems) })))
}

pub async fn repair(api: Api, call: Call) -> HandlerResult {
    let envelope = call.envelope().await?;
    let now = api.now(&envelope)?;
    let data = envelope.data()?;
    let is_true = || Ok::<_, ApiError>(Fields::of(data)?.required("resolve")?.get() == "true");
    if !body::parse(data.get().len(), is_true).await?? {
        return Err(ApiError::bad(
            "resolve",
            "resolve must be true; to check without repair, use GET",
        ));
    }
    let (problems, resolved) = api.engine.repair(now).await?;
    Ok(Results::new(
        &json!({ "problems": views(&problems), "resolved": resolved }),
    ))
}

fn views(problems: &[Inconsistency]) -> Vec<Value> {
    let view =
        |problem: &Inconsistency| json!({ "kind": problem.kind, "message": problem.message });
    problems.iter().map(view).collect()
}

pub async fn flush(api: Api, call: Call) -> HandlerResult {
    call.envelope().await?;
    if !api.allow_flush {
        return Err(ApiError::NotEnabled {
            message: "flush is disabled; start the server with --allow-flush",
        });
    }
    api.engine.flush().await?;
    Ok(Results::new(&true))
}
