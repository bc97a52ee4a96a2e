//! The consistency check, and repair of the database.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::{Action, Target, act};
use crate::auth::Role;
use crate::ui::error::PageError;

/// The check changes nothing, but it reads the whole database, so a link must not start it.
pub static CHECK: Action = Action::new("check", "/ui/check", Role::Admin, |_| {
    Target::new("the database".to_owned(), "/ui/check".to_owned())
});

pub static REPAIR: Action = Action::new("repair", Repair::PATH, Role::Admin, |_| {
    Target::new("the database".to_owned(), "/ui/check".to_owned())
});

/// Repairs what the consistency check finds. The path is that of earlier versions.
#[server(endpoint = "mend")]
pub async fn repair(back: String) -> Result<(), PageError> {
    act(&REPAIR, &back, async |context| {
        let (found, fixed) = context.engine.repair(None).await?;
        Ok(message(found.len(), fixed).into())
    })
    .await
}

fn message(found: usize, fixed: usize) -> String {
    let problems = |n: usize| {
        if n == 1 {
            "inconsistency"
        } else {
            "inconsistencies"
        }
    };
    match found - fixed.min(found) {
        0 if found == 0 => "No inconsistencies found. Nothing to repair.".to_owned(),
        0 => format!(
            "Fixed {found} {}. The database is now consistent.",
            problems(found)
        ),
        left => format!(
            "Fixed {fixed} of {found} {}. Run the check again to see the {left} left.",
            problems(found)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_reports_what_is_left() {
        assert_eq!(
            message(0, 0),
            "No inconsistencies found. Nothing to repair."
        );
        assert_eq!(
            message(1, 1),
            "Fixed 1 inconsistency. The database is now consistent."
        );
        assert_eq!(
            message(5, 3),
            "Fixed 3 of 5 inconsistencies. Run the check again to see the 2 left."
        );
    }
}
