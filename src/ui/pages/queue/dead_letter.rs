//! The dead jobs of an lmstfy or Relay queue, and actions on some or all of them. The address contains the selection
//! and the action, so that the confirmation can list the selected jobs without JavaScript.
//!
//! lmstfy jobs are respawned with a new time to live; Relay jobs are requeued, unless their IDs are in use.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::time;
use crate::ui::actions::dead_letters::{
    DeleteDead, DeleteDeadJobs, Requeue, RequeueJobs, Respawn, RespawnJobs,
};
use crate::ui::components::basics::{element_id, number_of, plural};
use crate::ui::components::forms::{
    ConfirmDialog, confirm_dialog, confirm_dialog_with, hidden, may_post,
};
use crate::ui::components::icons::icon;
use crate::ui::components::links::{job_link, quoted_if_blank};
use crate::ui::components::styles::{CHOICES, NOTICE, QUESTION};
use crate::ui::components::time::ago;
use crate::ui::components::{bulk, tables};
use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::queue::lmstfy::{respawn_effect, ttl_field};
use crate::ui::pages::queue::model::QueueView;
use crate::ui::pages::queue::relay::{self, requeue_effect};
use crate::ui::urls;
use crate::ui::urls::encoding::encode;

/// Maximum number of jobs that a confirmation lists.
const SAMPLES: usize = 3;

/// The default number of oldest jobs to act on.
const OLDEST: i64 = 10;

/// An action on dead jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeadJobAction {
    /// Respawn (lmstfy) or requeue (Relay).
    Requeue,
    Delete,
}

impl DeadJobAction {
    /// Its name in the address.
    fn name_in_address(self, protocol: Protocol) -> &'static str {
        match self {
            DeadJobAction::Delete => "delete",
            DeadJobAction::Requeue if protocol == Protocol::Relay => "enqueue",
            DeadJobAction::Requeue => "respawn",
        }
    }

    /// The action on `jobs`, as a phrase.
    fn to(self, protocol: Protocol, jobs: &str) -> String {
        match self {
            DeadJobAction::Delete => format!("Delete {jobs}"),
            DeadJobAction::Requeue if protocol == Protocol::Relay => format!("Requeue {jobs}"),
            DeadJobAction::Requeue => format!("Respawn {jobs}"),
        }
    }

    /// The label of a button.
    fn button(self, protocol: Protocol) -> &'static str {
        match self {
            DeadJobAction::Delete => "Delete…",
            DeadJobAction::Requeue if protocol == Protocol::Relay => "Requeue…",
            DeadJobAction::Requeue => "Respawn…",
        }
    }

    /// The path of the server function.
    fn path(self, protocol: Protocol, selection: &Selection) -> &'static str {
        match (self, selection) {
            (DeadJobAction::Requeue, Selection::Ids(_)) if protocol == Protocol::Relay => {
                RequeueJobs::PATH
            }
            (DeadJobAction::Requeue, _) if protocol == Protocol::Relay => Requeue::PATH,
            (DeadJobAction::Requeue, Selection::Ids(_)) => RespawnJobs::PATH,
            (DeadJobAction::Requeue, _) => Respawn::PATH,
            (DeadJobAction::Delete, Selection::Ids(_)) => DeleteDeadJobs::PATH,
            (DeadJobAction::Delete, _) => DeleteDead::PATH,
        }
    }
}

/// The jobs to which the action applies.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Selection {
    Ids(Vec<String>),
    /// This many of the oldest jobs.
    Oldest(i64),
    All,
}

/// The action and the selection in the address.
fn from_address(protocol: Protocol, request: &PageRequest) -> (Option<DeadJobAction>, Selection) {
    let word = request.param("do").unwrap_or_default();
    let action = [DeadJobAction::Requeue, DeadJobAction::Delete];
    let action = action
        .into_iter()
        .find(|action| action.name_in_address(protocol) == word);
    let n = request.param("n").and_then(|n| n.trim().parse().ok());
    let selection = match request.param("of").as_deref() {
        Some("all") => Selection::All,
        Some("oldest") => Selection::Oldest(n.unwrap_or(0)),
        _ => Selection::Ids(request.params("id")),
    };
    (action, selection)
}

/// The address of this page without the confirmation.
fn address_without_confirmation(queue_ref: &QueueRef, request: &PageRequest) -> String {
    request.page_address(&urls::state(queue_ref, EffectiveState::Dead))
}

/// The confirmation for the selection in the address.
pub fn confirmation(view: &QueueView, request: &PageRequest) -> AnyView {
    let (queue_ref, size) = (&view.queue.queue_ref, view.queue.counts.dead);
    let (Some(action), selection) = from_address(queue_ref.protocol, request) else {
        return ().into_any();
    };
    let back = address_without_confirmation(queue_ref, request);
    let (count, mut fields) = match &selection {
        Selection::Ids(ids) => {
            let fields = ids.iter().map(|id| ("ids[]", id.clone()));
            (number_of(ids.len()), fields.collect())
        }
        Selection::Oldest(n) => (size.min(*n), Vec::new()),
        Selection::All => (size, Vec::new()),
    };
    if !may_post(action.path(queue_ref.protocol, &selection)) {
        return ().into_any();
    }
    if count <= 0 {
        return empty_selection(&selection, &back);
    }
    if !matches!(selection, Selection::Ids(_)) {
        fields.push(("count", count.to_string()));
    }
    fields.extend(queue_ref.fields());
    fields.push(("back", back.clone()));
    let (class, frame) = match action {
        DeadJobAction::Requeue => ("btn btn-strong", "border-l-accent"),
        DeadJobAction::Delete => ("btn btn-danger btn-strong", "border-l-failed"),
    };
    let jobs = plural(count, "job", "jobs");
    view! {
        <section
            id="question"
            data-keep=""
            class=format!("{QUESTION} {frame} [&_label]:mb-1 [&_label]:block [&_label]:font-medium [&_input[type=number]]:w-40")
            aria-labelledby="question-title">
            <h2 id="question-title">{action.to(queue_ref.protocol, &amount(&selection, count, size))} "?"</h2>
            <p>{effect(action, queue_ref, count)}</p>
            {samples(&selection, count, view)}
            <form method="post" action=action.path(queue_ref.protocol, &selection)>
                {hidden(fields)}
                {(action == DeadJobAction::Requeue && queue_ref.protocol == Protocol::Lmstfy).then(|| ttl_field("question"))}
                <div class="flex flex-wrap items-center gap-2">
                    <button type="submit" class=class>{action.to(queue_ref.protocol, &jobs)}</button>
                    <a class="btn" href=back.clone()>"Close"</a>
                </div>
            </form>
        </section>
    }
    .into_any()
}

/// The effect on the jobs, in sentences.
fn effect(action: DeadJobAction, queue_ref: &QueueRef, count: i64) -> String {
    let (one, more) = match queue_ref.protocol {
        Protocol::Relay => (
            "Deletes the job with its payload and state.",
            "Deletes the jobs with their payloads and states.",
        ),
        Protocol::Qless | Protocol::Lmstfy | Protocol::Jobq => (
            "Deletes the job and its payload.",
            "Deletes the jobs and their payloads.",
        ),
    };
    match action {
        DeadJobAction::Requeue if queue_ref.protocol == Protocol::Relay => {
            requeue_effect(queue_ref, count)
        }
        DeadJobAction::Requeue => respawn_effect(queue_ref, count),
        DeadJobAction::Delete => {
            let what = if count == 1 { one } else { more };
            format!("{what} This cannot be undone.")
        }
    }
}

/// The button that respawns or requeues all `count` dead jobs of a queue, with a confirmation.
pub fn requeue_all_button(queue_ref: &QueueRef, count: i64, request: &PageRequest) -> AnyView {
    let (protocol, jobs) = (queue_ref.protocol, plural(count, "job", "jobs"));
    let id = element_id("respawn-", &urls::queue(queue_ref));
    let all = match count {
        1 => "1".to_owned(),
        _ => format!("all {}", time::number(count)),
    };
    let dialog = ConfirmDialog {
        id: id.clone(),
        button: format!("{}…", DeadJobAction::Requeue.to(protocol, &all)),
        danger: false,
        title: format!("{}?", DeadJobAction::Requeue.to(protocol, &jobs)),
        text: effect(DeadJobAction::Requeue, queue_ref, count),
        action: DeadJobAction::Requeue.path(protocol, &Selection::All),
        fields: [
            queue_ref.fields(),
            vec![("count", count.to_string()), ("back", request.here())],
        ]
        .concat(),
        confirm_label: DeadJobAction::Requeue.to(protocol, &jobs),
        cancel_label: "Close",
    };
    if protocol == Protocol::Lmstfy {
        confirm_dialog_with(dialog, ttl_field(&id))
    } else {
        confirm_dialog(dialog)
    }
}

/// The note that the selection is empty.
fn empty_selection(selection: &Selection, back: &str) -> AnyView {
    let why = match selection {
        Selection::Ids(_) => {
            "No jobs selected. Select jobs in the list, or choose the oldest or all."
        }
        Selection::Oldest(_) => "No number given. Enter how many of the oldest jobs, 1 or more.",
        Selection::All => "No dead jobs are left in this queue.",
    };
    view! {
        <p id="question" class=format!("{NOTICE} text-stalled")>
            {icon("stalled")} <span>{why} " " <a href=back.to_owned()>"Close"</a></span>
        </p>
    }
    .into_any()
}

/// The selected jobs, in words.
fn amount(selection: &Selection, count: i64, size: i64) -> String {
    match selection {
        Selection::Ids(_) => plural(count, "selected job", "selected jobs"),
        _ if count == size && count > 1 => format!("all {} dead jobs", time::number(count)),
        _ if count == size => "the only dead job".to_owned(),
        _ if count == 1 => "the oldest dead job".to_owned(),
        _ => format!("the {} oldest dead jobs", time::number(count)),
    }
}

/// The first selected jobs on this page of the list.
fn samples(selection: &Selection, count: i64, view: &QueueView) -> AnyView {
    let is_shown = |job: &&JobRow| match selection {
        Selection::Ids(ids) => ids.contains(&job.address_id()),
        Selection::Oldest(_) | Selection::All => view.neighbors.previous.is_none(),
    };
    let shown: Vec<&JobRow> = view.jobs.iter().filter(is_shown).take(SAMPLES).collect();
    if shown.is_empty() {
        return ().into_any();
    }
    let more = count - number_of(shown.len());
    let rows = shown.into_iter().map(|job| {
        view! { <li data-key=job.address_id()>{job_link(job)} " " <code class="text-muted wrap-anywhere">{job.preview.clone()}</code></li> }
    });
    view! {
        <ul class="*:truncate *:py-0.5">
            {rows.collect_view()}
            {(more > 0).then(|| view! { <li class="text-muted wrap-anywhere">{format!("and {} more", time::number(more))}</li> })}
        </ul>
    }
    .into_any()
}

/// Whether the user may act on dead jobs.
fn may_act(protocol: Protocol) -> bool {
    may_post(DeadJobAction::Requeue.path(protocol, &Selection::All))
}

/// The list of dead jobs, with a checkbox for each, and the actions.
pub fn list(view: &QueueView, request: &PageRequest) -> AnyView {
    let queue_ref = &view.queue.queue_ref;
    let (_, selection) = from_address(queue_ref.protocol, request);
    let all = request
        .param("select")
        .is_some_and(|select| select == "all");
    let is_selected = |id: &String| match &selection {
        Selection::Ids(ids) => all || ids.contains(id),
        Selection::Oldest(_) | Selection::All => all,
    };
    let attempts = match queue_ref.protocol {
        Protocol::Relay => "Retries",
        Protocol::Qless | Protocol::Lmstfy | Protocol::Jobq => "Tries",
    };
    let acts = may_act(queue_ref.protocol);
    let mut columns = vec![
        ("Job", "xl:min-w-68"),
        ("Dead-lettered", "num"),
        (attempts, "num w-[1%] wide"),
        ("Payload", "w-[35%] wide"),
    ];
    if acts {
        columns.insert(0, bulk::SELECT);
        columns.push(("Action", "w-[1%] text-right"));
    }
    let rows = view
        .jobs
        .iter()
        .map(|job| row(job, is_selected(&job.address_id()), request));
    let table = tables::table(
        "Dead jobs, oldest first",
        tables::head(&columns),
        rows.collect_view().into_any(),
    );
    if !acts {
        return table;
    }
    view! {
        <form method="get" action=format!("{}#question", urls::state(queue_ref, EffectiveState::Dead))>
            {hidden(request.page_fields())}
            {selection_form(view, &selection, all, request)}
            {table}
        </form>
    }
    .into_any()
}

fn row(job: &JobRow, is_selected: bool, request: &PageRequest) -> AnyView {
    let (list, protocol, name) = (
        address_without_confirmation(&job.queue_ref, request),
        job.queue_ref.protocol,
        quoted_if_blank(&job.id),
    );
    let mark = if list.contains('?') { '&' } else { '?' };
    let mut again = format!(
        "{list}{mark}do={}&id=",
        DeadJobAction::Requeue.name_in_address(protocol)
    );
    encode(&job.address_id(), &mut again);
    again.push_str("#question");
    // The accessible name starts with the visible label (WCAG 2.5.3).
    let about = match protocol {
        Protocol::Relay => format!("Requeue job {name}…"),
        Protocol::Qless | Protocol::Lmstfy | Protocol::Jobq => format!("Respawn job {name}…"),
    };
    let acts = may_act(protocol);
    let attempts = match protocol {
        Protocol::Relay => relay::allowed(job),
        Protocol::Qless | Protocol::Lmstfy | Protocol::Jobq => job.attempts().1.to_string(),
    };
    view! {
        <tr data-key=job.address_id()>
            {acts
                .then(|| {
                    view! {
                        <td class="check-cell">
                            <input type="checkbox" name="id" value=job.address_id() checked=is_selected aria-label=format!("Select job {name}") />
                        </td>
                    }
                })}
            <th scope="row">{job_link(job)}</th>
            <td class="num">{ago(job.state_time, request.now)}</td>
            <td class="num wide">{attempts}</td>
            <td class="w-[35%] max-w-0 truncate text-muted wide"><code>{job.preview.clone()}</code></td>
            {acts
                .then(|| view! { <td class="w-[1%] text-right whitespace-nowrap"><a class="btn" href=again aria-label=about>{DeadJobAction::Requeue.button(protocol)}</a></td> })}
        </tr>
    }
    .into_any()
}

/// The form that selects jobs and an action.
fn selection_form(
    view: &QueueView,
    selection: &Selection,
    all: bool,
    request: &PageRequest,
) -> AnyView {
    let (size, protocol) = (view.queue.counts.dead, view.queue.queue_ref.protocol);
    let radio = |value: &'static str, checked: bool, label: AnyView| {
        view! {
            <label class="inline-flex min-h-7 items-center gap-1.5"><input type="radio" name="of" value=value checked=checked /> {label}</label>
        }
    };
    let n = match selection {
        Selection::Oldest(n) => *n,
        Selection::Ids(_) | Selection::All => OLDEST.min(size),
    };
    let list = address_without_confirmation(&view.queue.queue_ref, request);
    let select = if all {
        view! { <a href=list>"Select none"</a> }.into_any()
    } else {
        let mark = if list.contains('?') { '&' } else { '?' };
        let words = match view.jobs.len() {
            1 => "Select the job on this page".to_owned(),
            n => format!("Select the {n} on this page"),
        };
        view! { <a href=format!("{list}{mark}select=all")>{words}</a> }.into_any()
    };
    view! {
        <div class=CHOICES>
            <fieldset class="flex flex-wrap items-center gap-2">
                <legend class="sr-only">"Which dead jobs"</legend>
                {radio("selected", matches!(selection, Selection::Ids(_)), view! { "selected jobs" {bulk::selected_count()} }.into_any())}
                <span class="flex flex-wrap items-center gap-2">
                    {radio("oldest", matches!(selection, Selection::Oldest(_)), "the oldest".into_any())}
                    <input type="number" name="n" min="1" step="1" value=n.to_string() aria-label="How many of the oldest" class="w-18" />
                </span>
                {radio("all", *selection == Selection::All, format!("all {}", time::number(size)).into_any())}
            </fieldset>
            <div class="flex flex-wrap items-center gap-2">
                <button type="submit" name="do" value=DeadJobAction::Requeue.name_in_address(protocol) class="btn">{icon("retry")} {DeadJobAction::Requeue.button(protocol)}</button>
                <button type="submit" name="do" value=DeadJobAction::Delete.name_in_address(protocol) class="btn btn-danger">{DeadJobAction::Delete.button(protocol)}</button>
            </div>
            <span class="text-muted wrap-anywhere">{select}</span>
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::model::queue_ref::Protocol;
    use crate::ui::page_request::PageRequest;

    fn page_request(query: &str) -> PageRequest {
        PageRequest {
            query: query.to_owned(),
            ..PageRequest::default()
        }
    }

    #[test]
    fn the_address_contains_action_and_selection() {
        let from_address = |query: &str| from_address(Protocol::Lmstfy, &page_request(query));
        assert_eq!(from_address(""), (None, Selection::Ids(vec![])));
        assert_eq!(
            from_address("of=selected&n=10&do=delete&id=a&id=b"),
            (
                Some(DeadJobAction::Delete),
                Selection::Ids(vec!["a".to_owned(), "b".to_owned()])
            )
        );
        assert_eq!(
            from_address("id=a&of=oldest&n=7&do=respawn"),
            (Some(DeadJobAction::Requeue), Selection::Oldest(7))
        );
        assert_eq!(
            from_address("of=oldest&n=many&do=respawn").1,
            Selection::Oldest(0)
        );
        assert_eq!(
            from_address("of=all&n=&do=delete"),
            (Some(DeadJobAction::Delete), Selection::All)
        );
    }

    #[test]
    fn requeue_has_one_name_per_protocol() {
        let action = |protocol, query| from_address(protocol, &page_request(query)).0;
        assert_eq!(
            action(Protocol::Relay, "do=enqueue"),
            Some(DeadJobAction::Requeue)
        );
        assert_eq!(action(Protocol::Relay, "do=respawn"), None);
        assert_eq!(action(Protocol::Lmstfy, "do=enqueue"), None);
        assert_eq!(
            DeadJobAction::Requeue.to(Protocol::Relay, "2 jobs"),
            "Requeue 2 jobs"
        );
        assert_eq!(
            DeadJobAction::Requeue.to(Protocol::Lmstfy, "2 jobs"),
            "Respawn 2 jobs"
        );
    }

    #[test]
    fn the_confirmation_names_the_jobs() {
        let some = Selection::Ids(vec![]);
        assert_eq!(amount(&some, 3, 9), "3 selected jobs");
        assert_eq!(amount(&Selection::All, 1200, 1200), "all 1,200 dead jobs");
        assert_eq!(amount(&Selection::All, 1, 1), "the only dead job");
        assert_eq!(amount(&Selection::Oldest(1), 1, 9), "the oldest dead job");
        assert_eq!(
            amount(&Selection::Oldest(5), 5, 9),
            "the 5 oldest dead jobs"
        );
        assert_eq!(amount(&Selection::Oldest(9), 9, 9), "all 9 dead jobs");
    }
}
