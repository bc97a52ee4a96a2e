//! Actions on failure groups, and on what a browser has seen of them.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::input::check_name_up_to;
use super::{Action, ActionOutcome, Target, act};
use crate::auth::Role;
use crate::engine::FAILURE_GROUP_BYTES_MAX;
use crate::ui::actions::operations::start;
use crate::ui::components::basics::plural;
use crate::ui::context::ActionContext;
use crate::ui::error::PageError;
use crate::ui::model::operation::{Confirmation, JobActionKind, OperationRequest};
use crate::ui::pages::search::model::in_quotes;
use crate::ui::urls;

pub static RETRY_GROUP: Action =
    Action::new("retry_group", RetryGroup::PATH, Role::Operator, target);

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
        q: format!("state:failed group:{}", in_quotes(group)),
        ..OperationRequest::default()
    }
}

/// Maximum length of the reason of a mute, in characters.
pub const REASON_CHARS_MAX: usize = 200;

/// Maximum number of hours for which a group is muted.
pub const MUTE_HOURS_MAX: i64 = 2_160;

fn target(form: &super::Form) -> Target {
    let group = form.field("group");
    Target::new(format!("failure group {group}"), urls::failure(group))
}

pub static MUTE_GROUP: Action = Action::new("mute_group", MuteGroup::PATH, Role::Operator, target);

/// Mutes a failure group for some hours.
#[server]
pub async fn mute_group(
    group: String,
    reason: String,
    hours: i64,
    back: String,
) -> Result<(), PageError> {
    act(&MUTE_GROUP, &back, async |context| {
        let reason = reason.trim();
        check_mute(&group, reason, hours)?;
        let user = &context.user;
        context.engine.mute(&group, reason, user, hours).await?;
        let hours = plural(hours, "hour", "hours");
        Ok(format!("Failure group “{group}” muted for {hours}.").into())
    })
    .await
}

fn check_mute(group: &str, reason: &str, hours: i64) -> Result<(), String> {
    check_name_up_to("the failure group", group, FAILURE_GROUP_BYTES_MAX)?;
    let is_reason = (1..=REASON_CHARS_MAX).contains(&reason.chars().count());
    if !is_reason || reason.chars().any(char::is_control) {
        return Err(format!(
            "the reason must have 1 to {REASON_CHARS_MAX} characters and no control characters"
        ));
    }
    if !(1..=MUTE_HOURS_MAX).contains(&hours) {
        return Err(format!(
            "a group can be muted for 1 to {MUTE_HOURS_MAX} hours"
        ));
    }
    Ok(())
}

pub static UNMUTE_GROUP: Action =
    Action::new("unmute_group", UnmuteGroup::PATH, Role::Operator, target);

/// Ends the mute of a failure group.
#[server]
pub async fn unmute_group(group: String, back: String) -> Result<(), PageError> {
    act(&UNMUTE_GROUP, &back, async |context| {
        match context.engine.unmute(&group).await? {
            true => Ok(format!("Failure group “{group}” is no longer muted.").into()),
            false => Ok(format!("Failure group “{group}” was not muted.").into()),
        }
    })
    .await
}

pub static MARK_FAILURES_SEEN: Action =
    Action::new("see_failures", SeeFailures::PATH, Role::Viewer, |_| {
        Target::none()
    });

/// Notes in the browser that its user has seen the failures until `until`, in microseconds since 1970.
#[server]
pub async fn see_failures(until: i64, back: String) -> Result<(), PageError> {
    let context = ActionContext::new(MARK_FAILURES_SEEN.role)?;
    context.see_failures(until);
    context.redirect(&back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mute_has_a_reason_and_an_end() {
        for (chars, is_valid) in [
            (0, false),
            (1, true),
            (199, true),
            (200, true),
            (201, false),
        ] {
            let reason = "é".repeat(chars);
            assert_eq!(check_mute("a", &reason, 1).is_ok(), is_valid, "{chars}");
        }
        for (hours, is_valid) in [
            (0, false),
            (1, true),
            (2_159, true),
            (2_160, true),
            (2_161, false),
        ] {
            assert_eq!(check_mute("a", "known", hours).is_ok(), is_valid, "{hours}");
        }
        assert!(check_mute("", "known", 1).is_err());
    }
}
