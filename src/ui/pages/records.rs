//! `/ui/jobq/{queue}`: a Jobq queue, its records by state or by query, and the form for a new record.

pub mod forms;
pub mod load;
pub mod model;
pub mod query;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::actions::queues::{CreateQueue, DeleteQueue};
use crate::ui::components::basics::{empty_note, loaded, number_of, plural};
use crate::ui::components::bulk::{self, BulkBar};
use crate::ui::components::commands::{curl, curl_commands, json_string, shell_quote};
use crate::ui::components::exports::search_and_exports;
use crate::ui::components::forms::{ConfirmDialog, confirm_dialog, may_post};
use crate::ui::components::icons::icon;
use crate::ui::components::links::quoted_if_blank;
use crate::ui::components::paging::key_pager;
use crate::ui::components::styles::{CARD, CARD_PADDED, FIELDS};
use crate::ui::components::tables;
use crate::ui::components::time::ago;
use crate::ui::model::paging::Neighbors;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::queue::title;
use crate::ui::pages::records::model::{
    RecordFilter, RecordList, RecordRow, RecordsView, StateRow,
};
use crate::ui::pages::search::model::search_of_queue;
use crate::ui::urls;
use crate::ui::urls::encoding::encode;

/// Maximum number of states with a tab in the first row; the others are in a section below it that the user can open.
const TABS: usize = 12;

#[component]
pub fn RecordsPage() -> impl IntoView {
    let request = page_request();
    let filter = filter(&request);
    let asked = match (&filter, request.is_refresh) {
        // A refresh does not run the query again.
        (RecordFilter::Found(_), true) => RecordFilter::Nothing,
        _ => filter.clone(),
    };
    loaded(
        load::records(request.queue().0, asked, request.page()),
        move |view| page(&view, &filter, &request),
    )
}

/// The filter in the address.
fn filter(request: &PageRequest) -> RecordFilter {
    let query = request
        .raw_param("q")
        .filter(|query| !query.trim().is_empty());
    match (query, request.param("state"), request.param("others")) {
        (Some(query), ..) => RecordFilter::Found(query),
        (None, Some(label), _) => RecordFilter::Labeled(label),
        (None, None, Some(_)) => RecordFilter::Others,
        (None, None, None) => RecordFilter::All,
    }
}

fn page(view: &RecordsView, filter: &RecordFilter, request: &PageRequest) -> AnyView {
    let queue_ref = &view.queue_ref;
    let list = match &view.list {
        RecordList::Page(rows, count, neighbors) => {
            listed(view, filter, (rows, *count, neighbors), request)
        }
        list => query::results(queue_ref, list, request),
    };
    view! {
        <Title text=queue_ref.label() />
        {title(queue_ref, None, delete(view, request))}
        {tabs(view, filter)}
        {query::form(queue_ref, filter, request)}
        {list}
        {forms::create(queue_ref, view.total == 0)}
        {lines(queue_ref, request)}
    }
    .into_any()
}

fn listed(
    view: &RecordsView,
    filter: &RecordFilter,
    (rows, count, neighbors): (&[RecordRow], i64, &Neighbors),
    request: &PageRequest,
) -> AnyView {
    let queue_ref = &view.queue_ref;
    let path = match filter {
        RecordFilter::Labeled(label) => urls::labeled(queue_ref, Some(label)),
        RecordFilter::Others => urls::labeled(queue_ref, None),
        RecordFilter::All | RecordFilter::Found(_) | RecordFilter::Nothing => {
            urls::queue(queue_ref)
        }
    };
    // The search has no term for the state of a record.
    let search = search_of_queue(queue_ref, EffectiveState::Record);
    let is_all = matches!(filter, RecordFilter::All);
    let bar = is_all.then_some((search.as_str(), count));
    let list = if rows.is_empty() && neighbors.previous.is_none() {
        let nothing = match filter {
            RecordFilter::All => {
                "No jobs. Jobs appear here when they are created and stay until they are deleted."
            }
            _ => "No jobs in this state.",
        };
        empty_note(nothing)
    } else {
        table(
            "Jobs, least recently changed first",
            queue_ref,
            rows,
            request,
        )
    };
    view! {
        <div class=CARD>{selection_bar(bar, rows, request)} {list}</div>
        {key_pager(&path, neighbors, rows.len(), count)}
        {(is_all && !rows.is_empty()).then(|| search_and_exports(&search))}
    }
    .into_any()
}

/// The buttons for the selected records, and for all of them: with the search that finds them, and their number.
pub fn selection_bar(
    all: Option<(&str, i64)>,
    rows: &[RecordRow],
    request: &PageRequest,
) -> AnyView {
    let bar = BulkBar {
        search: all.map(|(search, _)| search),
        all: all.map(|(_, count)| count),
        shown: rows.len(),
        actions: bulk::actions_of(Some(Protocol::Jobq), Some(EffectiveState::Record)),
    };
    bulk::bar(bar, request)
}

/// The table of records.
pub fn table(
    caption: &str,
    queue_ref: &QueueRef,
    rows: &[RecordRow],
    request: &PageRequest,
) -> AnyView {
    let is_selectable = bulk::may_select(request);
    let mut columns = vec![
        ("Job", "w-[1%] min-w-18"),
        ("State", "w-[35%]"),
        ("Changed", "num"),
        ("Events", "num mid"),
        ("Payload", "w-[35%] mid"),
    ];
    if is_selectable {
        columns.insert(0, bulk::SELECT);
    }
    let rows = rows.iter().map(|row| {
        let id = row.id.to_string();
        view! {
            <tr data-key=id.clone()>
                {is_selectable.then(|| bulk::checkbox_of(row.seq, &id, request))}
                <th scope="row"><a class="id" href=urls::job(queue_ref, &id)>{id.clone()}</a></th>
                <td class="w-[35%] max-w-0 truncate">
                    {match &row.state {
                        Some(state) => view! { <code>{state.clone()}</code> }.into_any(),
                        None => view! { <span class="text-muted wrap-anywhere">"no state"</span> }.into_any(),
                    }}
                </td>
                <td class="num">{ago(row.modified, request.now)}</td>
                <td class="num mid">{row.events.map_or("many".to_owned(), |n| time::number(number_of(n)))}</td>
                <td class="w-[35%] max-w-0 truncate text-muted mid"><code>{row.preview.clone()}</code></td>
            </tr>
        }
    });
    tables::table(
        caption,
        tables::head(&columns),
        rows.collect_view().into_any(),
    )
}

/// The tabs: all records, and those of each state.
fn tabs(view: &RecordsView, filter: &RecordFilter) -> AnyView {
    let is_here = |state: &StateRow| match (&state.label, filter) {
        (Some(label), RecordFilter::Labeled(filter)) => label == filter,
        (None, RecordFilter::Others) => true,
        _ => false,
    };
    let tab = |state: &StateRow| {
        let address = urls::labeled(&view.queue_ref, state.label.as_deref());
        tab(address, &state.word, state.count, is_here(state))
    };
    let (first, more) = view.states.split_at(TABS.min(view.states.len()));
    // The selected state always has a tab.
    let here = more.iter().find(|state| is_here(state)).map(tab);
    let n = number_of(more.len());
    view! {
        <nav class="flex flex-wrap border-b border-line" aria-label="This queue">
            {tab_of_all(view, filter)}
            {first.iter().map(tab).collect_view()}
            {here}
        </nav>
        {(!more.is_empty()).then(|| view! {
            <details>
                <summary>{plural(n, "more state", "more states")}</summary>
                <nav class="flex flex-wrap border-b border-line" aria-label="More states">{more.iter().map(tab).collect_view()}</nav>
            </details>
        })}
    }
    .into_any()
}

fn tab_of_all(view: &RecordsView, filter: &RecordFilter) -> AnyView {
    let address = urls::queue(&view.queue_ref);
    tab(address, "all", view.total, *filter == RecordFilter::All)
}

fn tab(address: String, word: &str, count: i64, here: bool) -> AnyView {
    view! {
        <a
            class="tab"
            href=address.clone()
            data-key=address
            aria-current=here.then_some("page")
        >
            <span class="max-w-60 truncate">{quoted_if_blank(word)}</span>
            <span class="text-muted">{time::number(count)}</span>
        </a>
    }
    .into_any()
}

fn delete(view: &RecordsView, request: &PageRequest) -> AnyView {
    let queue_ref = &view.queue_ref;
    let (what, confirm_label) = match view.total {
        0 => ("The queue is empty.".to_owned(), "Delete queue".to_owned()),
        n => {
            let jobs = plural(n, "job", "jobs");
            (
                format!("Deletes {jobs} with payload, state and log."),
                format!("Delete queue and {jobs}"),
            )
        }
    };
    confirm_dialog(ConfirmDialog {
        id: "delete".to_owned(),
        button: "Delete…".to_owned(),
        danger: true,
        title: format!("Delete queue {}?", queue_ref.label()),
        text: format!("{what} This cannot be undone."),
        action: DeleteQueue::PATH,
        fields: [
            queue_ref.fields(),
            vec![("back", request.here()), ("after", "/ui/queues".to_owned())],
        ]
        .concat(),
        confirm_label,
        cancel_label: "Keep queue",
    })
}

/// The form for a new queue. The address contains the initial name, so that an error keeps the user's input.
pub fn new_queue(request: &PageRequest) -> AnyView {
    if !may_post(CreateQueue::PATH) {
        return ().into_any();
    }
    let typed = request.param("new");
    let open = typed.is_some();
    view! {
        <section class=CARD_PADDED aria-labelledby="new">
            <details open=open>
                <summary><h2 id="new">"Create a Jobq queue"</h2></summary>
                <p class="text-muted wrap-anywhere">
                    "Jobq queues must be created and stay until they are deleted. Queues of the other protocols are created by their first job."
                </p>
                <form method="post" action=CreateQueue::PATH class=FIELDS>
                    <div class="flex-[1_1_240px] [&_input]:w-full">
                        <label for="new-name">"Name (up to 255 characters, not a number)"</label>
                        <input
                            id="new-name"
                            name="name"
                            type="text"
                            value=typed.unwrap_or_default()
                            required
                            maxlength="255"
                            autocomplete="off"
                        />
                    </div>
                    <button type="submit" class="btn btn-strong">"Create"</button>
                </form>
            </details>
        </section>
    }
    .into_any()
}

/// The API calls that create the first records.
pub fn example_commands(request: &PageRequest) -> Vec<(&'static str, String)> {
    let queue_ref = QueueRef::jobq("hosts");
    let [create, poll, ..] = of_queue(&queue_ref, request);
    vec![
        ("Create the queue hosts", make(&queue_ref, request)),
        create,
        poll,
    ]
}

/// The API call that creates the queue.
fn make(queue_ref: &QueueRef, request: &PageRequest) -> String {
    let body = format!(r#"{{"name": {}}}"#, json_string(&queue_ref.name));
    let call = curl(request, "GET", "/api/v0/queue");
    format!("{call} -d {}", shell_quote(&body))
}

fn of_queue(queue_ref: &QueueRef, request: &PageRequest) -> [(&'static str, String); 4] {
    let post = |path: &str, body: &str| {
        format!(
            "{} -d {}",
            call(queue_ref, request, "GET", path),
            shell_quote(body)
        )
    };
    [
        (
            "Create a job",
            post(
                "/job",
                r#"{"payload": {"host": "db"}, "state": ["CREATED"]}"#,
            ),
        ),
        (
            "Claim the least recently changed job in state CREATED",
            post(
                "/poll_job",
                &format!(
                    r#"{{"query": {}, "state": ["ASSIGNED", {{"node": 1}}]}}"#,
                    query::CREATED
                ),
            ),
        ),
        (
            "List jobs by ID, 1,000 per page",
            call(queue_ref, request, "GET", "/job"),
        ),
        (
            "Delete the queue and its jobs",
            call(queue_ref, request, "DELETE", ""),
        ),
    ]
}

fn lines(queue_ref: &QueueRef, request: &PageRequest) -> AnyView {
    curl_commands(of_queue(queue_ref, request).into())
}

/// A request to the API of a queue.
pub fn call(queue_ref: &QueueRef, request: &PageRequest, method: &str, rest: &str) -> String {
    let mut path = "/api/v0/queue/".to_owned();
    encode(&queue_ref.name, &mut path);
    path.push_str(rest);
    curl(request, method, &path)
}

/// The label of a record's state, as a chip.
pub fn state_chip(word: &str) -> AnyView {
    view! {
        <span class="chip text-record">{icon("record")} <span class="max-w-70 min-w-0 truncate">{quoted_if_blank(word)}</span></span>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::page_request::PageRequest;
    use crate::ui::pages::records::model::RecordFilter;

    #[test]
    fn the_address_filters_the_records() {
        let filter = |query: &str| {
            filter(&PageRequest {
                query: query.to_owned(),
                ..PageRequest::default()
            })
        };
        assert_eq!(filter(""), RecordFilter::All);
        assert_eq!(filter("q=+&offset=50"), RecordFilter::All);
        assert_eq!(
            filter("state=null"),
            RecordFilter::Labeled("null".to_owned())
        );
        assert_eq!(filter("others=1"), RecordFilter::Others);
        assert_eq!(
            filter("q=%5B%5D&state=5"),
            RecordFilter::Found("[]".to_owned())
        );
    }
}
