//! Which role what takes: one table for the door, which refuses, and for the pages, which leave out what would be
//! refused. Server functions declare their role themselves as well (`Desk::here`), so authorization does not depend on
//! the path alone.

use super::views::Role;
use crate::app::visit::decode;

/// The least role that may look at a page.
pub fn to_see(path: &str) -> Role {
    let words = words(path);
    match &borrowed(&words)[..] {
        [
            "ui",
            "namespaces" | "check" | "audit" | "audit.csv" | "audit.json",
            ..,
        ] => Role::Admin,
        // Forms of many fields, of no use to those who may not post them.
        ["ui", "put" | "confirm"] => Role::Operator,
        _ => Role::Viewer,
    }
}

/// The least role that may post a form to this path: a server function, or a page that answers its forms itself.
pub fn to_do(path: &str) -> Role {
    let words = words(path);
    match &borrowed(&words)[..] {
        // They concern the browser that asks.
        ["ui", "login" | "logout"]
        | [
            "ui",
            "fn",
            "theme" | "set_clock" | "set_density" | "set_keys",
        ] => Role::Viewer,
        [
            "ui",
            "fn",
            "set_option" | "set_queue_option" | "unset_option" | "mend" | "revoke_token"
            | "destroy_queue" | "delete_queue" | "forget_queue",
        ] => Role::Admin,
        // What pages of administrators ask the server.
        ["ui", "fn", "namespaces" | "namespace" | "check" | "audit"] => Role::Admin,
        ["ui", "namespaces", ..] => Role::Admin,
        _ => Role::Operator,
    }
}

/// Why a request is refused whose principal lacks a role, as a sentence.
pub fn forbidden(least: Role, has: Role) -> String {
    let (least, has) = (least.as_str(), has.as_str());
    format!("You need the {least} role; you have the {has} role.")
}

/// The words of a path, decoded: however a page's address is written, it is the same page.
pub fn words(path: &str) -> Vec<String> {
    let words = path.split('/').filter(|word| !word.is_empty());
    words.map(decode).collect()
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_an_address_is_written_it_takes_the_same_role() {
        for path in [
            "/ui/audit",
            "/ui/audit/",
            "//ui//audit",
            "/ui/%61udit",
            "/%75i/audit/x",
        ] {
            assert_eq!(to_see(path), Role::Admin, "{path}");
        }
        for path in ["/ui", "/ui/audits", "/ui/queues/audit", "/ui/Audit"] {
            assert_eq!(to_see(path), Role::Viewer, "{path}");
        }
        assert_eq!(to_do("/ui/fn/set%5Foption"), Role::Admin);
        assert_eq!(to_do("/ui/namespaces/a"), Role::Admin);
        assert_eq!(to_do("/ui/fn/theme"), Role::Viewer);
        assert_eq!(to_do("/ui/fn/of_the_future"), Role::Operator);
    }
}
