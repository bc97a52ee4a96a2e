//! Actions on workers.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::{Action, ActionOutcome, Target, act};
use crate::auth::Role;
use crate::ui::error::PageError;
use crate::ui::urls;

pub static FORGET_WORKER: Action = Action::new(
    "forget_worker",
    ForgetWorker::PATH,
    Role::Operator,
    |form| {
        let worker = form.field("worker");
        Target::new(format!("worker {worker}"), urls::worker(worker))
    },
);

/// Removes a worker from the lists until it asks for jobs or sends a heartbeat. The message is shown on the page `after`.
#[server]
pub async fn forget_worker(worker: String, back: String, after: String) -> Result<(), PageError> {
    act(&FORGET_WORKER, &back, async |context| {
        context.engine.forget_worker(&worker, None).await?;
        Ok(ActionOutcome::at(
            after,
            format!("Worker “{worker}” forgotten."),
        ))
    })
    .await
}
