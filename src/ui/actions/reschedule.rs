//! The action that changes when a scheduled job is due.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::input::{optional, seconds};
use super::{Action, Target, act};
use crate::auth::Role;
use crate::time;
use crate::ui::error::PageError;
use crate::ui::page_request::job_at;
use crate::ui::present::queue_refs::key;

pub static RESCHEDULE: Action =
    Action::new("reschedule", Reschedule::PATH, Role::Operator, |form| {
        let (queue, id) = job_at(form.field("job"));
        Target::job(&queue, &id)
    });

/// Makes a scheduled job, given by [`urls::job_param`](crate::ui::urls::job_param), due after `after` units of `unit`
/// seconds (1 by default); 0 makes it available now.
#[server]
pub async fn reschedule(
    job: String,
    after: String,
    #[server(default)] unit: String,
    back: String,
) -> Result<(), PageError> {
    act(&RESCHEDULE, &back, async |context| {
        let unit = optional(&unit).unwrap_or("1");
        let delay_s = seconds("the time until the job is due", &after, unit)?;
        let (queue, id) = job_at(&job);
        let engine = &context.engine;
        if !engine.reschedule(&key(&queue), &id, delay_s, None).await? {
            return Err(format!("job “{id}” is not scheduled").into());
        }
        let message = if delay_s > 0.0 {
            let now = engine.now(None);
            let due = time::relative(now.plus_seconds(delay_s).0, now.0);
            format!("Job “{id}” is due {due}.")
        } else {
            format!("Job “{id}” is available now.")
        };
        Ok(message.into())
    })
    .await
}
