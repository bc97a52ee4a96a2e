//! The consistency check, and `/flush`, which empties the database.

use serde_json::{Value, json};

use super::answer::Answer;
use super::call::{Call, Fields};
use super::refusal::Refusal;
use super::{Front, Outcome};
use crate::engine::Inconsistency;

pub async fn check(front: Front, call: Call) -> Outcome {
    let now = front.now(&call.envelope()?)?;
    let problems = front.engine.check(now).await?;
    Ok(Answer::new(&json!({ "problems": views(&problems) })))
}

pub async fn mend(front: Front, call: Call) -> Outcome {
    let envelope = call.envelope()?;
    let now = front.now(&envelope)?;
    let resolve = Fields::of(envelope.data()?)?;
    if resolve.required("resolve")?.get() != "true" {
        return Err(Refusal::bad(
            "resolve",
            "resolve must be true; to check without repair, use GET",
        ));
    }
    let (problems, resolved) = front.engine.repair(now).await?;
    Ok(Answer::new(
        &json!({ "problems": views(&problems), "resolved": resolved }),
    ))
}

fn views(problems: &[Inconsistency]) -> Vec<Value> {
    let view =
        |problem: &Inconsistency| json!({ "kind": problem.kind, "message": problem.message });
    problems.iter().map(view).collect()
}

pub async fn flush(front: Front, call: Call) -> Outcome {
    call.envelope()?;
    if !front.allow_flush {
        return Err(Refusal::NotEnabled {
            message: "flush is disabled; start the server with --allow-flush",
        });
    }
    front.engine.flush().await?;
    Ok(Answer::new(&true))
}
