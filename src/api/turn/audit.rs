//! The audit: what a form is about, and the entries as they are shown.

mod export;

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use serde_json::{Map, Value};

use super::super::roles;
use super::super::views::{Api, AuditQuery, AuditRow, AuditView, Fact, Fate, Place, Thing};
use crate::app::visit::{Visit, to};
use crate::engine::{
    AUDIT_DAYS_MAX, AUDIT_ENTRIES_MAX, AuditEntry, AuditFilter, Engine, Result, Time,
};

pub use export::{audit_csv, audit_json};

/// Entries on a page.
const PAGE: usize = 50;

/// What names a thing, by the kinds that there are; a job and a recurring job name a queue besides.
const KINDS: [&str; 7] = [
    "job",
    "recurring",
    "option",
    "token",
    "worker",
    "deleted",
    "queue",
];

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

/// What the fields of a form name, of those that this action reads: other fields of the form are nobody's, and may lie.
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

/// A page of the entries that are wanted.
pub async fn audit(engine: &Engine, query: &AuditQuery) -> Result<AuditView> {
    let (people, actions) = engine.audited().await?;
    let mut view = AuditView {
        rows: Vec::new(),
        next: None,
        people,
        actions,
        mistaken: None,
        kept: (AUDIT_ENTRIES_MAX, AUDIT_DAYS_MAX),
    };
    let filter = match filter(query) {
        Ok(filter) => filter,
        Err(why) => {
            view.mistaken = Some(why);
            return Ok(view);
        }
    };
    let entries = engine
        .audit(&filter, cursor(&query.after), PAGE + 1)
        .await?;
    let shown = entries.iter().take(PAGE);
    view.rows = shown.map(row).collect();
    let last = view.rows.last().filter(|_| entries.len() > PAGE);
    view.next = last.map(|row| format!("{}-{}", row.at, row.id));
    Ok(view)
}

/// Up to `limit` of the entries that are wanted, the newest; and whether there are more. What is wanted by a time that
/// is none is nothing.
pub async fn audit_export(
    engine: &Engine,
    query: &AuditQuery,
    limit: usize,
) -> Result<(Vec<AuditEntry>, bool)> {
    let Ok(filter) = filter(query) else {
        return Ok((Vec::new(), false));
    };
    let mut entries = engine.audit(&filter, None, limit + 1).await?;
    let more = entries.len() > limit;
    entries.truncate(limit);
    Ok((entries, more))
}

fn filter(query: &AuditQuery) -> Result<AuditFilter, String> {
    Ok(AuditFilter {
        who: query.who.clone(),
        action: query.action.clone(),
        target: query.target.trim().to_owned(),
        from: moment(&query.from)?,
        until: moment(&query.until)?,
    })
}

/// A moment as a browser's field gives it; UTC.
fn moment(text: &str) -> Result<Option<Time>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let at = |format: &str| NaiveDateTime::parse_from_str(text, format).ok();
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let moment = at("%Y-%m-%dT%H:%M")
        .or_else(|| at("%Y-%m-%dT%H:%M:%S"))
        .or_else(|| Some(day()?.and_time(NaiveTime::MIN)));
    let moment =
        moment.ok_or_else(|| format!("“{text}” is not a valid time; use YYYY-MM-DDTHH:MM"))?;
    Ok(Some(Time(moment.and_utc().timestamp_micros())))
}

fn cursor(after: &str) -> Option<(Time, String)> {
    let (at, id) = after.split_once('-')?;
    Some((Time(at.parse().ok()?), id.to_owned()))
}

fn row(entry: &AuditEntry) -> AuditRow {
    let actor = entry.actor.clone();
    AuditRow {
        id: actor.id,
        at: entry.at.0,
        who: actor.who,
        role: actor.role,
        action: actor.action,
        target: actor.target,
        link: actor.link,
        things: things(&entry.before, &entry.after),
        items: entry.items,
        done: entry.done,
        said: entry.said.clone(),
        request_id: actor.request_id,
        source: actor.source,
    }
}

type Facts = Option<Map<String, Value>>;

fn things(before: &str, after: &str) -> Vec<Thing> {
    let list = |text: &str| serde_json::from_str::<Vec<Facts>>(text).unwrap_or_default();
    let pairs = list(before).into_iter().zip(list(after));
    pairs.filter_map(|pair| thing(&pair.0, &pair.1)).collect()
}

fn thing(before: &Facts, after: &Facts) -> Option<Thing> {
    let known = after.as_ref().or(before.as_ref())?;
    let kind = KINDS.into_iter().find(|kind| known.contains_key(*kind))?;
    let name = match kind {
        "deleted" => format!("jobs: {}", told(known.get(kind))),
        _ => format!("{kind} {}", told(known.get(kind))),
    };
    let fate = match (before, after) {
        (None, Some(_)) if kind == "deleted" => Fate::Gone,
        (None, _) => Fate::New,
        (_, None) => Fate::Gone,
        _ => Fate::Stays,
    };
    let of = |facts: &Facts, name: &str| facts.as_ref().and_then(|facts| facts.get(name).cloned());
    let names = known.keys().filter(|name| *name != kind);
    let facts = names.map(|name| (name, of(before, name), of(after, name)));
    let facts = facts.filter(|(_, before, after)| before != after);
    Some(Thing {
        name,
        fate,
        facts: facts
            .map(|(name, before, after)| Fact {
                name: name.clone(),
                before: told(before.as_ref()),
                after: told(after.as_ref()),
            })
            .collect(),
    })
}

fn told(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Array(items)) if items.is_empty() => "none".to_owned(),
        Some(Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(|item| told(Some(item))).collect();
            items.join(", ")
        }
        Some(other) => other.to_string(),
    }
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
    fn what_differs_is_shown() {
        let before = r#"[{"job":"a","queue":"q","state":"failed","tags":[]},null,{"job":"c"}]"#;
        let after =
            r#"[{"job":"a","queue":"q","state":"waiting","tags":["x","y"]},{"job":"b"},null]"#;
        let things = things(before, after);
        let names: Vec<_> = things
            .iter()
            .map(|it| (it.name.as_str(), it.fate))
            .collect();
        assert_eq!(
            names,
            [
                ("job a", Fate::Stays),
                ("job b", Fate::New),
                ("job c", Fate::Gone)
            ]
        );
        let facts = things[0].facts.iter();
        let facts: Vec<_> = facts
            .map(|fact| {
                (
                    fact.name.as_str(),
                    fact.before.as_str(),
                    fact.after.as_str(),
                )
            })
            .collect();
        assert_eq!(
            facts,
            [("state", "failed", "waiting"), ("tags", "none", "x, y")]
        );
    }

    #[test]
    fn a_time_is_read_or_refused() {
        assert_eq!(moment("1970-01-01T00:01"), Ok(Some(Time(60_000_000))));
        assert_eq!(moment("1970-01-02"), Ok(Some(Time(86_400_000_000))));
        assert_eq!(moment(" "), Ok(None));
        assert!(moment("yesterday").is_err());
    }
}
