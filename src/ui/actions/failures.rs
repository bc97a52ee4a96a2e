//! Actions on failure groups.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::{Action, ActionOutcome, Target, act};
use crate::auth::Role;
use crate::ui::actions::operations::start;
use crate::ui::error::PageError;
use crate::ui::model::operation::{Confirmation, JobActionKind, OperationRequest};
use crate::ui::pages::search::model::in_quotes;
use crate::ui::urls;

pub static RETRY_GROUP: Action =
    Action::new("retry_group", RetryGroup::PATH, Role::Operator, |form| {
        let group = form.field("group");
        Target::new(format!("failures {group}"), urls::failure(group))
    });

/// Starts an operation that retries the failed jobs of a group, and shows its page. `count` is the number on the
/// button.
#[server]
pub async fn retry_group(group: String, count: usize, back: String) -> Result<(), PageError> {
    act(&RETRY_GROUP, &back, async |context| {
        let seen = Confirmation {
            counted: count.to_string(),
            typed: count.to_string(),
            undo: String::new(),
        };
        let request = retry_request(&group);
        let (id, message) = start(&context.engine, &context.user, &request, &seen).await?;
        Ok(ActionOutcome::at(urls::operation(id), message))
    })
    .await
}

/// The request to retry all failed jobs of a group.
pub fn retry_request(group: &str) -> OperationRequest {
    OperationRequest {
        action: JobActionKind::Retry.as_str().to_owned(),
        all: true,
        q: format!("state:failed type:{}", in_quotes(group)),
        ..OperationRequest::default()
    }
}
