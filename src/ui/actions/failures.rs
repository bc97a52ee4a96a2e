//! Actions on failure groups.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::{Action, Target, act};
use crate::auth::Role;
use crate::ui::error::PageError;
use crate::ui::urls;

pub static RETRY_GROUP: Action =
    Action::new("retry_group", RetryGroup::PATH, Role::Operator, |form| {
        let group = form.field("group");
        Target::new(format!("failures {group}"), urls::failure(group))
    });

/// Requeues the oldest `count` failed jobs of a group. `count` is the number on the button, so jobs that failed later are
/// not affected.
#[server]
pub async fn retry_group(group: String, count: usize, back: String) -> Result<(), PageError> {
    act(&RETRY_GROUP, &back, async |context| {
        let moved = context.engine.unfail(&group, None, count, None).await?;
        Ok(message(moved, count, &group).into())
    })
    .await
}

fn message(moved: usize, count: usize, group: &str) -> String {
    let jobs = |n: usize| if n == 1 { "job" } else { "jobs" };
    if moved == count {
        format!("Retried {moved} {} of “{group}”.", jobs(moved))
    } else {
        format!(
            "Retried {moved} of {count} {} of “{group}”. The others were no longer failed.",
            jobs(count)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_reports_jobs_that_were_no_longer_failed() {
        assert_eq!(message(1, 1, "E"), "Retried 1 job of “E”.");
        assert_eq!(
            message(10, 12, "E"),
            "Retried 10 of 12 jobs of “E”. The others were no longer failed."
        );
    }
}
