//! The minimum role for each path under `/ui`. The middleware rejects requests by this table, and pages omit links and
//! forms that it would reject. Server functions check their role again, so authorization does not depend on the path
//! alone.

use leptos::server_fn::ServerFn;

use super::components::frame;
use super::urls::encoding::segments;
use super::{actions, pages};
use crate::auth::Role;

/// The minimum role for a page, or for another GET request.
pub fn role_to_read(path: &str) -> Role {
    let path = segments(path);
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match &path[..] {
        [
            "ui",
            "namespaces" | "check" | "alerts" | "audit" | "audit.csv" | "audit.json",
            ..,
        ] => Role::Admin,
        // Pages with a form for operators, and with addresses of clients.
        ["ui", "put" | "edit" | "confirm" | "redis"] => Role::Operator,
        _ => Role::Viewer,
    }
}

/// The minimum role for a POST request: that of the action with this path, or of the server function with this path.
pub fn role_to_post(path: &str) -> Role {
    let read_function = || {
        let path = segments(path);
        let found = READ_FUNCTIONS
            .iter()
            .find(|(known, _)| segments(known) == path);
        found.map(|(_, role)| *role)
    };
    let role = actions::role(path).or_else(read_function);
    // An unlisted path is probably not a route.
    role.unwrap_or(Role::Operator)
}

/// Whether a path is that of a server function that only reads.
pub fn is_read_function(path: &str) -> bool {
    let path = segments(path);
    READ_FUNCTIONS
        .iter()
        .any(|(known, _)| segments(known) == path)
}

/// The server functions that only read, each with the minimum role for a POST request: that of the page that shows the
/// same. Pages call these functions on the server; the command line posts to them.
pub const READ_FUNCTIONS: &[(&str, Role)] = &[
    (frame::LoadCounts::PATH, Role::Viewer),
    (pages::about::load::About::PATH, Role::Viewer),
    (pages::alerts::load::Alerts::PATH, Role::Admin),
    (pages::audit::load::Audit::PATH, Role::Admin),
    (pages::config::load::LoadConfig::PATH, Role::Viewer),
    (pages::confirm::load::Confirm::PATH, Role::Operator),
    (pages::daily_stats::load::LoadDailyStats::PATH, Role::Viewer),
    (
        pages::dead_letters::load::LoadDeadLetters::PATH,
        Role::Viewer,
    ),
    (pages::edit::load::LoadEdit::PATH, Role::Operator),
    (pages::failures::load::Failure::PATH, Role::Viewer),
    (pages::failures::load::Failures::PATH, Role::Viewer),
    (pages::job::load::LoadJob::PATH, Role::Viewer),
    (pages::lmstfy_job::load::LmstfyJob::PATH, Role::Viewer),
    (pages::namespaces::load::Namespace::PATH, Role::Admin),
    (pages::namespaces::load::Namespaces::PATH, Role::Admin),
    (pages::operations::load::LoadOperation::PATH, Role::Viewer),
    (pages::operations::load::Operations::PATH, Role::Viewer),
    (pages::overview::load::Overview::PATH, Role::Viewer),
    (pages::put::load::LoadNewJob::PATH, Role::Operator),
    (pages::queue::load::Queue::PATH, Role::Viewer),
    (pages::queues::load::Queues::PATH, Role::Viewer),
    (pages::records::load::LoadRecord::PATH, Role::Viewer),
    (pages::records::load::Records::PATH, Role::Viewer),
    (
        pages::recurring::load::LoadRecurringJobs::PATH,
        Role::Viewer,
    ),
    (pages::recurring_job::load::Recurring::PATH, Role::Viewer),
    (
        pages::redis_clients::load::RedisClients::PATH,
        Role::Operator,
    ),
    (pages::relay_job::load::DeadRelayJob::PATH, Role::Viewer),
    (pages::relay_job::load::RelayJob::PATH, Role::Viewer),
    (pages::scheduled::load::Scheduled::PATH, Role::Viewer),
    (pages::search::load::RunSearch::PATH, Role::Viewer),
    (pages::search::load::Searches::PATH, Role::Viewer),
    (pages::statistics::load::LoadStatistics::PATH, Role::Viewer),
    (pages::statistics::load::LoadSparklines::PATH, Role::Viewer),
    (pages::tags::load::LoadTaggedJobs::PATH, Role::Viewer),
    (pages::tags::load::Tags::PATH, Role::Viewer),
    (pages::tracked::load::Tracked::PATH, Role::Viewer),
    (pages::worker::load::Worker::PATH, Role::Viewer),
    (pages::workers::load::Workers::PATH, Role::Viewer),
];

/// Why a request is rejected, as a sentence.
pub fn forbidden(least: Role, has: Role) -> String {
    let (least, has) = (least.as_str(), has.as_str());
    format!("You need the {least} role; you have the {has} role.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_address_requires_the_same_role() {
        for path in [
            "/ui/audit",
            "/ui/audit/",
            "//ui//audit",
            "/ui/%61udit",
            "/%75i/audit/x",
        ] {
            assert_eq!(role_to_read(path), Role::Admin, "{path}");
        }
        for path in ["/ui", "/ui/audits", "/ui/queues/audit", "/ui/Audit"] {
            assert_eq!(role_to_read(path), Role::Viewer, "{path}");
        }
        assert_eq!(role_to_post("/ui/fn/set%5Foption"), Role::Admin);
        assert_eq!(role_to_post("/ui/namespaces/a"), Role::Admin);
        assert_eq!(role_to_post("/ui/fn/theme"), Role::Viewer);
        assert_eq!(role_to_post("/ui/fn/of_the_future"), Role::Operator);
    }
}
