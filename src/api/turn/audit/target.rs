//! What a form is about.

use crate::api::roles;
use crate::api::views::{Api, Place};
use crate::app::visit::{Visit, to};

/// What somebody acts on: in words, and where it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub words: String,
    pub link: String,
}

fn target(words: String, link: String) -> Target {
    Target { words, link }
}

/// What a form does that is posted to this path, and to what; `None` if no form is taken there.
pub fn audited_action(path: &str, fields: &[(String, String)]) -> Option<(String, Target)> {
    let visit = Visit {
        path: path.to_owned(),
        ..Visit::default()
    };
    let words = roles::words(path);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let field = |name: &str| field(fields, name);
    let (action, target) = match &words[..] {
        ["ui", "fn", action] => (*action, of_fields(action, fields)),
        ["ui", "namespaces"] => ("create_token", of_namespace(field("namespace").trim())),
        ["ui", "namespaces", _] => ("create_token", of_namespace(&visit.name(2))),
        ["ui", "put"] => match field("id").trim() {
            "" => ("put", of_queue(&Place::qless(field("queue")))),
            id => ("put", of_job(&Place::qless(field("queue")), id)),
        },
        ["ui", "jobq", _] => ("create_record", of_queue(&visit.place().0)),
        ["ui", "jobq", _, "job", _] => {
            let (queue, next) = visit.place();
            let action = match field("do") {
                "event" => "append_event",
                _ => "set_state",
            };
            (action, of_job(&queue, &visit.name(next + 1)))
        }
        _ => return None,
    };
    Some((action.to_owned(), target))
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    let found = fields.iter().find(|(field, _)| field == name);
    found.map(|(_, value)| value.as_str()).unwrap_or_default()
}

/// The target that the form names in the fields that this action reads. The server ignores other fields, which may be false.
fn of_fields(action: &str, fields: &[(String, String)]) -> Target {
    let field = |name: &str| field(fields, name);
    match action {
        "set_option" | "unset_option" => target(
            format!("option {}", field("option")),
            "/ui/config".to_owned(),
        ),
        "set_queue_option" => target(
            format!("option {} of queue {}", field("option"), field("queue")),
            to::config(field("queue")),
        ),
        "recur" | "change_recurring" => of_recurring(field("form[id]")),
        "unrecur" => of_recurring(field("id")),
        "retry_group" => target(
            format!("failures {}", field("group")),
            to::failure(field("group")),
        ),
        "operate" => {
            let what = match field("of") {
                "all" => field("q"),
                _ => "selected jobs",
            };
            target(
                format!("{} of {what}", field("deed")),
                to::search(field("q")),
            )
        }
        "save_search" | "forget_search" => {
            target(format!("search {}", field("name")), "/ui/jobs".to_owned())
        }
        "stop_operation" | "undo_operation" => target(
            format!("operation {}", field("id")),
            format!("/ui/operations/{}", field("id")),
        ),
        "mend" => target("the database".to_owned(), "/ui/check".to_owned()),
        "revoke_token" => target(
            format!("token {} of {}", field("name"), field("namespace")),
            to::namespace(field("namespace")),
        ),
        "make_queue" => of_queue(&Place::jobq(field("name"))),
        "forget_worker" => target(
            format!("worker {}", field("worker")),
            to::worker(field("worker")),
        ),
        "delete_queue" | "destroy_queue" | "forget_queue" | "pause_queue" | "unpause_queue"
        | "respawn" | "respawn_jobs" | "delete_dead" | "delete_dead_jobs" | "revive"
        | "revive_jobs" => of_queue(&place(field)),
        "delete_job" => of_job(&place(field), field("id")),
        "revive_job" => {
            let (place, letter) = (place(field), field("letter"));
            target(
                format!("dead job {letter} in {}", place.label()),
                format!("{}/dead/{letter}", to::queue(&place)),
            )
        }
        "retry" | "cancel" | "move_job" | "prioritize" | "add_tag" | "remove_tag" | "track"
        | "untrack" | "time_out" | "undepend" | "undepend_all" | "note" => {
            let id = field("id");
            target(format!("job {id}"), to::qless_job(id))
        }
        _ => Target::default(),
    }
}

/// The queue that a form names.
fn place<'a>(field: impl Fn(&str) -> &'a str) -> Place {
    let api = Api::ALL
        .into_iter()
        .find(|api| api.as_str() == field("protocol"));
    Place {
        api: api.unwrap_or_default(),
        namespace: field("namespace").to_owned(),
        name: field("queue").to_owned(),
    }
}

fn of_recurring(id: &str) -> Target {
    target(format!("recurring job {id}"), to::recurring(id))
}

fn of_namespace(name: &str) -> Target {
    target(format!("namespace {name}"), to::namespace(name))
}

fn of_queue(place: &Place) -> Target {
    target(format!("queue {}", place.label()), to::queue(place))
}

fn of_job(place: &Place, id: &str) -> Target {
    let words = match place.api {
        Api::Qless => format!("job {id}"),
        Api::Lmstfy | Api::Relay | Api::Jobq => format!("job {id} in {}", place.label()),
    };
    target(words, to::job(place, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(path: &str, fields: &[(&str, &str)]) -> (String, String, String) {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let (action, target) = audited_action(path, &fields).unwrap();
        (action, target.words, target.link)
    }

    type Fields = &'static [(&'static str, &'static str)];

    const PLACE: Fields = &[
        ("protocol", "lmstfy"),
        ("namespace", "shop"),
        ("queue", "a/b"),
    ];

    /// Path, fields, action, target and link.
    const FORMS: &[(&str, Fields, &str, &str, &str)] = &[
        (
            "/ui/fn/retry",
            &[("id", "x y")],
            "retry",
            "job x y",
            "/ui/jobs/x%20y",
        ),
        // Fields that the action does not read say nothing.
        (
            "/ui/fn/retry",
            &[
                ("option", "heartbeat"),
                ("group", "E"),
                ("protocol", "lmstfy"),
                ("queue", "other"),
                ("id", "x"),
            ],
            "retry",
            "job x",
            "/ui/jobs/x",
        ),
        (
            "/ui/fn/unset_option",
            &[("id", "x"), ("queue", "q"), ("option", "heartbeat")],
            "unset_option",
            "option heartbeat",
            "/ui/config",
        ),
        (
            "/ui/fn/pause_queue",
            PLACE,
            "pause_queue",
            "queue shop/a/b",
            "/ui/lmstfy/shop/a%2Fb",
        ),
        (
            "/ui/fn/retry_group",
            &[("group", "E")],
            "retry_group",
            "failures E",
            "/ui/failures/E",
        ),
        (
            "/ui/fn/unrecur",
            &[("id", "r")],
            "unrecur",
            "recurring job r",
            "/ui/recurring/r",
        ),
        (
            "/ui/fn/recur",
            &[("form[id]", "r")],
            "recur",
            "recurring job r",
            "/ui/recurring/r",
        ),
        (
            "/ui/fn/revoke_token",
            &[("namespace", "n"), ("name", "sha256:1")],
            "revoke_token",
            "token sha256:1 of n",
            "/ui/namespaces/n",
        ),
        ("/ui/fn/mend", &[], "mend", "the database", "/ui/check"),
        (
            "/ui/jobq/hosts/job/7",
            &[("do", "event")],
            "append_event",
            "job 7 in hosts",
            "/ui/jobq/hosts/job/7",
        ),
        (
            "/ui/jobq/hosts/job/7",
            &[],
            "set_state",
            "job 7 in hosts",
            "/ui/jobq/hosts/job/7",
        ),
        (
            "/ui/jobq/a%2Fb",
            &[],
            "create_record",
            "queue a/b",
            "/ui/jobq/a%2Fb",
        ),
        (
            "/ui/namespaces",
            &[("namespace", " n")],
            "create_token",
            "namespace n",
            "/ui/namespaces/n",
        ),
    ];

    #[test]
    fn a_form_names_what_it_is_about() {
        for (path, fields, action, words, link) in FORMS {
            let expected = (
                (*action).to_owned(),
                (*words).to_owned(),
                (*link).to_owned(),
            );
            assert_eq!(about(path, fields), expected);
        }
        assert_eq!(audited_action("/ui/nothing", &[]), None);
    }

    #[test]
    fn every_action_but_those_of_the_display_has_a_target() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/act");
        let files = std::fs::read_dir(folder).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let files = files.filter(|file| !file.ends_with("display.rs"));
        let mut actions = 0;
        for file in files.chain([format!("{folder}.rs").into()]) {
            let text = std::fs::read_to_string(file).unwrap();
            for rest in text.split("#[server]\npub async fn ").skip(1) {
                let action = rest.split('(').next().unwrap();
                let target = of_fields(action, &[]);
                assert!(!target.words.is_empty(), "{action} has no target");
                actions += 1;
            }
        }
        assert!(actions > 30, "only {actions} actions found");
    }
}
