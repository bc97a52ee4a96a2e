//! Actions: everything that a form of the dashboard changes, one file per topic.
//!
//! An [`Action`] declares in one place the path of its form, the role that it requires, its name in the audit log, and
//! the target that the audit log names. Pages show a form only to users with that role (`components/forms.rs`), the
//! middleware checks the role and writes the audit entry (`http/audit.rs`), and the server function that runs the
//! action checks the role again (`act`), so that authorization does not depend on the path alone.
//!
//! The forms are plain HTML forms. An action ends with 303 to the page of its form, or to another page, which shows a
//! message.
//!
//! [`Action`]: crate::ui::actions::Action

pub mod alerts;
pub mod database;
pub mod dead_letters;
pub mod display;
pub mod failures;
pub mod input;
pub mod jobs;
pub mod manual;
pub mod operations;
pub mod options;
pub mod put;
pub mod queues;
pub mod records;
pub mod recurring;
pub mod reschedule;
pub mod searches;
pub mod session;
pub mod tokens;
pub mod workers;

use std::fmt;

use crate::auth::Role;
use crate::ui::access::READ_FUNCTIONS;
use crate::ui::context::ActionContext;
use crate::ui::error::PageError;
use crate::ui::http::rejections::VARIOUS;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::page_request::PageRequest;
use crate::ui::urls;
use crate::ui::urls::encoding::{is_dashboard_page, segments};

/// An action: the one place that says who may run it and how the audit log describes it.
pub struct Action {
    /// The name in the audit log. The name in the path may be another one, because addresses do not change.
    pub name: &'static str,
    /// The path to which the form is posted; `{…}` stands for any segment.
    pub path: &'static str,
    /// The minimum role.
    pub role: Role,
    /// A field and its value that tell actions with the same path apart.
    pub only_if: Option<(&'static str, &'static str)>,
    /// What the form changes. Reads only fields that the action itself reads, because clients can add other fields.
    pub target: fn(&Form) -> Target,
}

impl Action {
    /// An action whose path has no other actions.
    const fn new(
        name: &'static str,
        path: &'static str,
        role: Role,
        target: fn(&Form) -> Target,
    ) -> Action {
        Action {
            name,
            path,
            role,
            only_if: None,
            target,
        }
    }

    /// The same action if `field` has this value.
    const fn only_if(self, field: &'static str, value: &'static str) -> Action {
        Action {
            only_if: Some((field, value)),
            ..self
        }
    }

    fn has_path(&self, path: &[String]) -> bool {
        let own = self.path.split('/').filter(|word| !word.is_empty());
        own.clone().count() == path.len()
            && own
                .zip(path)
                .all(|(own, word)| own.starts_with('{') || own == word)
    }

    fn matches(&self, form: &Form) -> bool {
        self.only_if
            .is_none_or(|(field, value)| form.field(field) == value)
    }
}

/// All actions. If several with the same path match a form, the first one counts.
static ACTIONS: &[&Action] = &[
    &alerts::CREATE_ALERT,
    &alerts::DELETE_ALERT,
    &alerts::TEST_ALERT,
    &database::CHECK,
    &database::REPAIR,
    &dead_letters::DELETE_DEAD,
    &dead_letters::DELETE_DEAD_JOBS,
    &dead_letters::REQUEUE,
    &dead_letters::REQUEUE_JOB,
    &dead_letters::REQUEUE_JOBS,
    &dead_letters::RESPAWN,
    &dead_letters::RESPAWN_JOBS,
    &display::SET_CLOCK,
    &display::SET_DENSITY,
    &display::SET_KEYS,
    &display::SET_THEME,
    &failures::MUTE_GROUP,
    &failures::RETRY_GROUP,
    &failures::MARK_FAILURES_SEEN,
    &failures::UNMUTE_GROUP,
    &jobs::ADD_TAG,
    &jobs::CANCEL,
    &jobs::DELETE_JOB,
    &jobs::MOVE_JOB,
    &jobs::NOTE,
    &jobs::PRIORITIZE,
    &jobs::REMOVE_TAG,
    &jobs::RETRY,
    &jobs::TIME_OUT,
    &jobs::TRACK,
    &jobs::REMOVE_DEPENDENCY,
    &jobs::REMOVE_ALL_DEPENDENCIES,
    &jobs::UNTRACK,
    &manual::COMPLETE,
    &manual::EDIT_AND_RETRY,
    &operations::START_OPERATION,
    &operations::STOP_OPERATION,
    &operations::UNDO_OPERATION,
    &options::SET_OPTION,
    &options::SET_QUEUE_OPTION,
    &options::UNSET_OPTION,
    &put::PUT,
    &queues::DELETE_QUEUE,
    &queues::DESTROY_QUEUE,
    &queues::FORGET_QUEUE,
    &queues::CREATE_QUEUE,
    &queues::PAUSE_QUEUE,
    &queues::PAUSE_QUEUES,
    &queues::RESUME_QUEUES,
    &queues::RESUME_QUEUE,
    &records::APPEND_EVENT,
    &records::CREATE_RECORD,
    &records::SET_STATE,
    &recurring::CHANGE_RECURRING,
    &recurring::PAUSE_RECURRING,
    &recurring::CREATE_RECURRING,
    &recurring::RESUME_RECURRING,
    &recurring::RUN_RECURRING,
    &recurring::END_RECURRING,
    &reschedule::RESCHEDULE,
    &searches::DELETE_SEARCH,
    &searches::SAVE_SEARCH,
    &session::SIGN_IN,
    &session::SIGN_OUT,
    &tokens::CREATE_TOKEN,
    &tokens::CREATE_TOKEN_IN,
    &tokens::REVOKE_TOKEN,
    &workers::FORGET_WORKER,
];

/// All actions.
pub fn all() -> impl Iterator<Item = &'static Action> {
    ACTIONS.iter().copied()
}

/// Names of actions in entries of earlier versions, and the current names, which pages and exports show instead.
const FORMER_NAMES: [(&str, &str); 8] = [
    ("forget_search", "delete_search"),
    ("make_queue", "create_queue"),
    ("mend", "repair"),
    ("operate", "start_operation"),
    ("retry_by_hand", "edit_and_retry"),
    ("revive", "requeue"),
    ("revive_job", "requeue_job"),
    ("revive_jobs", "requeue_jobs"),
];

/// The current name of an action with this name in the audit log.
pub fn current_name(stored: &str) -> &str {
    let found = FORMER_NAMES.iter().find(|(former, _)| *former == stored);
    found.map_or(stored, |(_, current)| current)
}

/// The name that entries of earlier versions have for an action; the current name if it has always been the same.
pub fn former_name(current: &str) -> &str {
    let found = FORMER_NAMES.iter().find(|(_, name)| *name == current);
    found.map_or(current, |(former, _)| former)
}

/// The role of the actions with this path, if there are any.
pub fn role(path: &str) -> Option<Role> {
    let path = segments(path);
    let action = ACTIONS.iter().find(|action| action.has_path(&path))?;
    Some(action.role)
}

/// The field that tells the actions with this path apart, if there are several.
pub fn deciding_field(path: &str) -> Option<&'static str> {
    let path = segments(path);
    let mut actions = ACTIONS.iter().filter(|action| action.has_path(&path));
    actions.find_map(|action| Some(action.only_if?.0))
}

/// The audit name and the target of this form; `None` if it is posted to a path without forms.
pub fn audited(form: &Form) -> Option<(String, Target)> {
    let path = segments(&form.request.path);
    let mut actions = ACTIONS.iter().filter(|action| action.has_path(&path));
    if let Some(action) = actions.find(|action| action.matches(form)) {
        return Some((action.name.to_owned(), (action.target)(form)));
    }
    // A server function that changes nothing or does not exist. A rejected request to it is recorded, too, but not
    // under a name that the client has chosen.
    match &path[..] {
        [ui, functions, name] if ui == "ui" && functions == "fn" => {
            let name = if reads(name) { name } else { UNKNOWN };
            Some((name.to_owned(), Target::none()))
        }
        _ => None,
    }
}

/// The audit name of a form that is posted to a server function that does not exist.
const UNKNOWN: &str = "unknown";

/// Whether a server function with this name reads.
fn reads(name: &str) -> bool {
    let path = |path: &'static str| path.strip_prefix("/ui/fn/");
    READ_FUNCTIONS
        .iter()
        .any(|(known, _)| path(known) == Some(name))
}

/// Whether this version stores entries under this name. Earlier versions also stored names from clients.
pub fn is_stored_name(name: &str) -> bool {
    let is_action = ACTIONS.iter().any(|action| action.name == name);
    is_action || reads(name) || [UNKNOWN, VARIOUS].contains(&name)
}

/// A posted form.
pub struct Form {
    request: PageRequest,
    fields: Vec<(String, String)>,
}

impl Form {
    /// The form posted to `path`.
    pub fn new(path: &str, body: &[u8]) -> Form {
        let body = PageRequest::with_query(String::from_utf8_lossy(body));
        Form {
            request: PageRequest::at(path),
            fields: body.all_params(),
        }
    }

    /// The path to which the form was posted.
    pub fn path(&self) -> &str {
        &self.request.path
    }

    /// The value of a field; empty if the form has no such field.
    pub fn field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The queue that the fields name (see [`QueueRef::fields`]).
    fn queue(&self) -> QueueRef {
        let protocol = self.field("protocol").parse();
        QueueRef {
            protocol: protocol.unwrap_or(Protocol::Qless),
            namespace: self.field("namespace").to_owned(),
            name: self.field("queue").to_owned(),
        }
    }
}

/// What an action changes: its description, and the page that shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub text: String,
    pub link: String,
}

impl Target {
    /// The link is left out if it is not a page of the dashboard: forms contain parts of links, and an admin who reads
    /// the audit log would follow it.
    fn new(text: String, link: String) -> Target {
        let is_page = is_dashboard_page(&link);
        let link = if is_page { link } else { String::new() };
        Target { text, link }
    }

    /// For actions that change nothing but the browser's own settings or session.
    fn none() -> Target {
        Target::default()
    }

    fn queue(queue: &QueueRef) -> Target {
        Target::new(format!("queue {}", queue.label()), urls::queue(queue))
    }

    fn job(queue: &QueueRef, id: &str) -> Target {
        let text = match queue.protocol {
            Protocol::Qless => format!("job {id}"),
            Protocol::Lmstfy | Protocol::Relay | Protocol::Jobq => {
                format!("job {id} in {}", queue.label())
            }
        };
        Target::new(text, urls::job(queue, id))
    }

    /// The qless job that the field `id` names.
    fn qless_job(form: &Form) -> Target {
        let id = form.field("id");
        Target::new(format!("job {id}"), urls::qless_job(id))
    }

    fn namespace(name: &str) -> Target {
        Target::new(format!("namespace {name}"), urls::namespace(name))
    }
}

/// The outcome of an action: the message, and the page that shows it.
pub struct ActionOutcome {
    message: String,
    /// `None`: the page of the form.
    next: Option<String>,
    /// The operation that undoes the action.
    undo: Option<i64>,
}

impl ActionOutcome {
    /// Shows the message on the page `next`.
    fn at(next: String, message: String) -> ActionOutcome {
        ActionOutcome {
            message,
            next: Some(next),
            undo: None,
        }
    }

    /// Offers to undo the action, which is an operation.
    fn with_undo(self, operation: i64) -> ActionOutcome {
        ActionOutcome {
            undo: Some(operation),
            ..self
        }
    }
}

impl From<String> for ActionOutcome {
    /// Shows the message on the page of the form.
    fn from(message: String) -> ActionOutcome {
        ActionOutcome {
            message,
            next: None,
            undo: None,
        }
    }
}

/// Why an action failed, in lower case and without a full stop.
pub struct ActionError(String);

impl<E: fmt::Display> From<E> for ActionError {
    fn from(error: E) -> ActionError {
        ActionError(error.to_string())
    }
}

/// The result of an action.
type ActionResult = Result<ActionOutcome, ActionError>;

/// Runs an action: checks its role, calls `run`, and redirects to `back`, or to the page that `run` returns. That page
/// shows the message or the error.
///
/// # Errors
/// If the user lacks the role, or the page cannot be a header value.
async fn act(
    action: &Action,
    back: &str,
    run: impl AsyncFnOnce(ActionContext) -> ActionResult,
) -> Result<(), PageError> {
    let context = ActionContext::new(action.role)?;
    match run(context.clone()).await {
        Ok(done) => {
            let next = done.next.as_deref().unwrap_or(back);
            context.redirect_with_message(next, true, done.message, done.undo)
        }
        Err(ActionError(why)) => {
            context.redirect_with_message(back, false, super::context::sentence(&why), None)
        }
    }
}

#[cfg(test)]
mod tests;
