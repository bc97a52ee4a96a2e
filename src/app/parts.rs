//! What several pages are made of.

mod shell;

use std::future::Future;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

pub use shell::{api, commands, copy, curl, json, quoted, written};

use super::display::display;
use super::icons::icon;
use super::visit::{Visit, to, visit};
use crate::api::Trouble;
use crate::api::act::DeleteJob;
use crate::api::roles;
use crate::api::views::{Api, JobRow, Place, Stand, Tally};
use crate::time;

/// A page that asks the server first: what `show` makes of the answer, or what went wrong.
pub fn loaded<T: Send + 'static>(
    ask: impl Future<Output = Result<T, Trouble>> + Send + 'static,
    show: impl FnOnce(T) -> AnyView + Send + 'static,
) -> AnyView {
    Suspend::new(async move {
        match ask.await {
            Ok(found) => show(found),
            Err(trouble) => super::missing::trouble(&trouble),
        }
    })
    .into_any()
}

/// The word for a state.
pub fn word(stand: Stand) -> &'static str {
    stand.as_str()
}

/// A state as icon, word and colour.
pub fn chip(stand: Stand) -> AnyView {
    view! { <span class=format!("chip s-{}", stand.as_str())>{icon(stand.as_str())} {word(stand)}</span> }
        .into_any()
}

/// How a job stands: its state, and what the word alone would hide.
pub fn standing(job: &JobRow) -> AnyView {
    let more = job.is_taken_away().then(|| {
        view! { <span class="aside">" · timed out, first in line"</span> }
    });
    view! { {chip(job.stand)} {more} }.into_any()
}

/// That a queue is paused.
pub fn paused() -> AnyView {
    view! { <span class="chip s-paused">{icon("paused")} "paused"</span> }.into_any()
}

/// A moment as this browser wants it: its distance from now, which the browser keeps fresh, or the time.
pub fn ago(moment: i64, now: i64) -> AnyView {
    let text = if display().tells_distances() {
        time::ago(moment, now)
    } else {
        time::utc(moment)
    };
    moment_as(None, moment, text)
}

/// A moment to the second.
pub fn exact(moment: i64) -> AnyView {
    moment_as(Some("exact"), moment, time::utc(moment))
}

/// A moment to the millisecond.
pub fn exact_millis(moment: i64) -> AnyView {
    moment_as(Some("millis"), moment, time::utc_millis(moment))
}

/// A moment both ways, that which this browser wants first.
pub fn when(moment: i64, now: i64) -> AnyView {
    let other = if display().tells_distances() {
        exact(moment)
    } else {
        moment_as(Some("ago"), moment, time::ago(moment, now))
    };
    view! { {ago(moment, now)} <span class="aside">" · " {other}</span> }.into_any()
}

/// `data-as` tells the browser what it may make of the text (`live/times.rs`).
fn moment_as(kind: Option<&'static str>, moment: i64, text: String) -> AnyView {
    view! {
        <time datetime=time::iso(moment) title=time::utc(moment) data-t=moment.to_string() data-as=kind>
            {text}
        </time>
    }
    .into_any()
}

/// A cell with a count; zeros step back, and what needs eyes has its state's colour.
pub fn count_cell(n: i64, stand: Stand, class: &str) -> AnyView {
    let look = match (n, stand) {
        (0, _) => "zero".to_owned(),
        (_, Stand::Failed | Stand::Stalled | Stand::Dead) => format!("s-{}", stand.as_str()),
        _ => String::new(),
    };
    view! { <td class=format!("n {look} {class}")>{time::number(n)}</td> }.into_any()
}

/// Shares of the states as a bar; what is complete is not part of it, for it only grows.
pub fn bar(tally: &Tally) -> AnyView {
    let shown: Vec<(Stand, i64)> = Stand::ALL
        .into_iter()
        .filter(|stand| *stand != Stand::Complete)
        .map(|stand| (stand, tally.of(stand)))
        .filter(|(_, n)| *n > 0)
        .collect();
    let total: i64 = shown.iter().map(|(_, n)| n).sum();
    let mut at = 0.0;
    let mut parts = Vec::new();
    for (stand, n) in &shown {
        let width = *n as f64 / total.max(1) as f64 * 1000.0;
        parts.push(view! {
            <rect
                class=format!("s-{}", stand.as_str())
                x=format!("{at:.1}")
                width=format!("{width:.1}")
                height="8"
            />
        });
        at += width;
    }
    let words: Vec<String> = shown
        .iter()
        .map(|(stand, n)| format!("{} {}", time::number(*n), word(*stand)))
        .collect();
    let label = if words.is_empty() {
        "empty".to_owned()
    } else {
        words.join(", ")
    };
    view! {
        <svg class="bar" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img" aria-label=label>
            <title>{label.clone()}</title>
            {parts}
        </svg>
    }
    .into_any()
}

/// Whether whoever looks at the page may do what is posted to this path.
pub fn may(action: &str) -> bool {
    visit().may(roles::to_do(action))
}

/// What is there only for those who may do what is posted to this path.
pub fn allowed(action: &str, show: impl FnOnce() -> AnyView) -> AnyView {
    may(action).then(show).into_any()
}

/// A question before something is done. It opens above the page without any script.
pub struct Ask {
    /// Of this question on its page.
    pub id: String,
    /// On the button that opens it.
    pub button: String,
    pub danger: bool,
    pub title: String,
    pub text: String,
    pub action: &'static str,
    /// Sent with the form.
    pub fields: Vec<(&'static str, String)>,
    /// On the button that does it.
    pub yes: String,
    /// On the button that leaves everything as it is.
    pub no: &'static str,
}

/// The button, and the question behind it.
pub fn ask(ask: Ask) -> AnyView {
    ask_with(ask, ().into_any())
}

/// [`ask`] with fields to fill in.
pub fn ask_with(ask: Ask, inputs: AnyView) -> AnyView {
    allowed(ask.action, || asking(ask, inputs))
}

fn asking(ask: Ask, inputs: AnyView) -> AnyView {
    let Ask {
        id,
        button,
        danger,
        title,
        text,
        action,
        fields,
        yes,
        no,
    } = ask;
    let look = if danger { "button danger" } else { "button" };
    let title_id = format!("{id}-title");
    view! {
        <button type="button" class=look popovertarget=id.clone()>{button}</button>
        <div id=id class="ask" popover="auto" role="dialog" aria-labelledby=title_id>
            <h2 id=title_id.clone()>{title}</h2>
            <p>{text}</p>
            <form method="post" action=action>
                {hidden(fields)}
                {inputs}
                <div class="row">
                    <button type="submit" class=format!("{look} strong")>{yes}</button>
                    <button type="button" class="button" popovertarget=id.clone() popovertargetaction="hide">{no}</button>
                </div>
            </form>
        </div>
    }
    .into_any()
}

/// The question before a job of a queue is deleted, as its clients delete one; `text` says what that means, and
/// `after` is where one is then.
pub fn deleting(place: &Place, id: &str, after: String, text: String, visit: &Visit) -> AnyView {
    ask(Ask {
        id: "delete".to_owned(),
        button: "Delete…".to_owned(),
        danger: true,
        title: "Delete this job?".to_owned(),
        text,
        action: DeleteJob::PATH,
        fields: [
            place.fields(),
            vec![
                ("id", id.to_owned()),
                ("back", visit.here()),
                ("after", after),
            ],
        ]
        .concat(),
        yes: "Delete job".to_owned(),
        no: "Keep job",
    })
}

/// What stands above everything on the page of a job that is found by its queue: the way there, how it stands, what
/// can be done with it, and its id. `below` is the list of the queue in which it is, if that is no other's.
pub fn job_head(
    place: &Place,
    id: &str,
    below: Option<AnyView>,
    stands: AnyView,
    actions: AnyView,
) -> AnyView {
    let separator = || view! { <span aria-hidden="true">" › "</span> };
    let shown = visible(id);
    let is_itself = shown == id;
    view! {
        <Title text=format!("Job {id}") />
        <p class="crumb">
            <a href="/ui/queues">"Queues"</a> {separator()} {queue_link(place)}
            {below.map(|below| view! { {separator()} {below} })}
        </p>
        <div class="head-row">
            <div class="row">
                <h1><span class="name">"Job"</span> {stands}</h1>
                {badge(place.api)}
            </div>
            <div class="row">{actions}</div>
        </div>
        <p class="lead row">
            <code id="jid" class="id">{shown}</code>
            {is_itself.then(|| hot("y", copy("jid".to_owned(), "Copy ID".to_owned())))}
        </p>
    }
    .into_any()
}

/// Facts, each with its name.
pub fn definitions<V: IntoView + 'static>(
    facts: impl IntoIterator<Item = (&'static str, V)>,
) -> AnyView {
    let rows = facts
        .into_iter()
        .map(|(name, value)| view! { <div><dt>{name}</dt> <dd>{value}</dd></div> });
    view! { <dl class="facts">{rows.collect_view()}</dl> }.into_any()
}

/// Hidden fields of a form.
pub fn hidden(fields: Vec<(&'static str, String)>) -> AnyView {
    fields
        .into_iter()
        .map(|(name, value)| view! { <input type="hidden" name=name value=value /> })
        .collect_view()
        .into_any()
}

/// A button that does one thing at once.
pub fn deed(
    action: &'static str,
    fields: Vec<(&'static str, String)>,
    label: &'static str,
    about: String,
) -> AnyView {
    allowed(action, || {
        view! {
            <form method="post" action=action>
                {hidden(fields)}
                <button type="submit" class="button" aria-label=about>{label}</button>
            </form>
        }
        .into_any()
    })
}

/// What a key presses (`app/keys.rs`), and the palette offers: the first button or link in `what`. An empty key is for
/// the palette only.
pub fn hot(key: &'static str, what: AnyView) -> AnyView {
    view! { <span class="hot" data-hot=key>{what}</span> }.into_any()
}

/// Rows on a page of a list that is read whole, such as that of all queues: their pages stay below 60 kB.
pub const PAGE_ROWS: usize = 40;

/// Of a whole list the page at the visit's offset, and links to the pages before and after it.
pub fn paged<'a, T>(visit: &Visit, path: &str, list: &'a [T]) -> (&'a [T], AnyView) {
    let rest = list.get(visit.offset()..).unwrap_or_default();
    let shown = rest.get(..PAGE_ROWS).unwrap_or(rest);
    let total = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let links = pages_of(visit, path, visit.offset(), shown.len(), total, PAGE_ROWS);
    (shown, links)
}

/// Links to the pages of a list before and after this one.
pub fn pager(visit: &Visit, path: &str, offset: usize, shown: usize, total: i64) -> AnyView {
    pages_of(
        visit,
        path,
        offset,
        shown,
        total,
        crate::api::read::PAGE_JOBS,
    )
}

fn pages_of(
    visit: &Visit,
    path: &str,
    offset: usize,
    shown: usize,
    total: i64,
    size: usize,
) -> AnyView {
    let address = |offset: usize| match offset {
        0 => path.to_owned(),
        _ if path.contains('?') => format!("{path}&offset={offset}"),
        _ => format!("{path}?offset={offset}"),
    };
    // The last page may have been emptied since; then the way back must still be there.
    if offset == 0 && visit.offset() == 0 && i64::try_from(shown).unwrap_or(i64::MAX) >= total {
        return ().into_any();
    }
    let range = if shown == 0 {
        "No entries on this page".to_owned()
    } else {
        format!(
            "{}–{} of {}",
            offset + 1,
            offset + shown,
            time::number(total)
        )
    };
    view! {
        <nav class="pager" aria-label="Pagination">
            {(offset > 0).then(|| view! { <a class="button" rel="prev" href=address(offset.saturating_sub(size))>"Previous"</a> })}
            <span>{range}</span>
            {(shown == size)
                .then(|| view! { <a class="button" rel="next" href=address(offset + size)>"Next"</a> })}
        </nav>
    }
    .into_any()
}

/// A link to a queue.
pub fn queue_link(place: &Place) -> AnyView {
    let namespace = (!place.namespace.is_empty())
        .then(|| view! { <span class="ns">{place.namespace.clone()} "/"</span> });
    view! { <a class="name" href=to::queue(place)>{namespace} {visible(&place.name)}</a> }
        .into_any()
}

/// A name of which there is something to see, also where it is empty.
pub fn visible(name: &str) -> String {
    if name.trim().is_empty() {
        format!("“{name}”")
    } else {
        name.to_owned()
    }
}

/// A job of a list, as a link to its page.
pub fn job_link(job: &JobRow) -> AnyView {
    view! { <a class="id" href=to::row(job)>{visible(&job.id)}</a> }.into_any()
}

/// A link to a queue, and its API: the same name may stand in several.
pub fn queue_name(place: &Place) -> AnyView {
    view! { {queue_link(place)} " " {badge(place.api)} }.into_any()
}

/// The API through which a queue is worked on, quietly.
pub fn badge(api: Api) -> AnyView {
    view! { <span class="api">{api.as_str()}</span> }.into_any()
}

/// A cell for what the API of a queue does not have.
pub fn lacking(api: Api, class: &str) -> AnyView {
    let title = format!("Not used by {}", api.as_str());
    view! { <td class=format!("n zero {class}") title=title>"–"</td> }.into_any()
}

/// A tag, as a link to all jobs that have it.
pub fn tag_link(tag: &str) -> AnyView {
    view! { <a class="tag" href=to::tag(tag)>{tag.to_owned()}</a> }.into_any()
}

/// A link to a page that not everybody may see; whoever may not sees the words.
pub fn link_if_seen(address: String, words: String) -> AnyView {
    if visit().may(roles::to_see(&address)) {
        view! { <a class="name" href=address>{words}</a> }.into_any()
    } else {
        view! { <span class="name">{words}</span> }.into_any()
    }
}

/// Names of queues for a field whose `list` is `id`.
pub fn queue_names(id: &'static str, names: &[String]) -> AnyView {
    let names = names
        .iter()
        .map(|name| view! { <option value=name.clone()></option> });
    view! { <datalist id=id>{names.collect_view()}</datalist> }.into_any()
}

/// A link to a worker.
pub fn worker_link(name: &str) -> AnyView {
    view! { <a class="name" href=to::worker(name)>{name.to_owned()}</a> }.into_any()
}

/// An id for an element that belongs to `name`, the same at every rendering of the page.
pub fn element_id(prefix: &str, name: &str) -> String {
    let mut id = prefix.to_owned();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() {
            id.push(byte.into());
        } else {
            id.push_str(&format!("_{byte:x}"));
        }
    }
    id
}

/// What a number counts: `1 job`, `2 jobs`.
pub fn many(n: i64, one: &str, more: &str) -> String {
    format!("{} {}", time::number(n), if n == 1 { one } else { more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_names_have_different_ids() {
        assert_eq!(element_id("x-", "a/b"), "x-a_2fb");
        assert_ne!(element_id("", "a/b"), element_id("", "a_2fb"));
    }

    #[test]
    fn a_page_has_40_rows() {
        for (rows, on_first, on_second) in [(39, 39, 0), (40, 40, 0), (41, 40, 1)] {
            let list = vec![(); rows];
            let shown = |query: &str| {
                let query = query.to_owned();
                let visit = Visit {
                    query,
                    ..Visit::default()
                };
                paged(&visit, "/ui/workers", &list).0.len()
            };
            assert_eq!((shown(""), shown("offset=40")), (on_first, on_second));
        }
    }
}
