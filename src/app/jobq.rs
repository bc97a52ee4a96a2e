//! `/ui/jobq/{queue}`: a queue of Jobq, its records by state or by a query, and the form for another one.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use super::icons::icon;
use super::parts::{
    Ask, ago, ask, commands, curl, json, loaded, many, may, pager, quoted, visible,
};
use super::queue::title;
use super::tables;
use super::visit::{Visit, encode, to, visit};
use crate::api::act::{DeleteQueue, MakeQueue};
use crate::api::read;
use crate::api::views::{Place, RecordList, RecordRow, RecordsView, StateRow, Wanted};
use crate::time;

/// Forms whose texts are JSON.
mod forms;
/// One record.
pub mod job;
/// The box for queries, and what they find.
mod query;

/// States that have a tab; the others are folded.
const TABS: usize = 12;

#[component]
pub fn RecordsPage() -> impl IntoView {
    let visit = visit();
    let wanted = wanted(&visit);
    let asked = match (&wanted, visit.refresh) {
        // What a query has found stays as it was until it is run again.
        (Wanted::Found(_), true) => Wanted::Nothing,
        _ => wanted.clone(),
    };
    loaded(
        read::records(visit.place().0, asked, visit.offset()),
        move |view| page(&view, &wanted, &visit),
    )
}

/// What the address asks for.
fn wanted(visit: &Visit) -> Wanted {
    let query = visit.param("q").filter(|query| !query.trim().is_empty());
    match (query, visit.param("state"), visit.param("others")) {
        (Some(query), ..) => Wanted::Found(query),
        (None, Some(label), _) => Wanted::Labelled(label),
        (None, None, Some(_)) => Wanted::Others,
        (None, None, None) => Wanted::All,
    }
}

fn page(view: &RecordsView, wanted: &Wanted, visit: &Visit) -> AnyView {
    let place = &view.place;
    let list = match &view.list {
        RecordList::Page(rows, count) => listed(view, wanted, rows, *count, visit),
        list => query::answer(place, list, visit),
    };
    view! {
        <Title text=place.label() />
        {title(place, None, delete(view, visit))}
        {tabs(view, wanted)}
        {query::form(place, wanted, visit)}
        {list}
        {forms::create(place, view.total == 0)}
        {lines(place, visit)}
    }
    .into_any()
}

fn listed(
    view: &RecordsView,
    wanted: &Wanted,
    rows: &[RecordRow],
    count: i64,
    visit: &Visit,
) -> AnyView {
    let place = &view.place;
    let path = match wanted {
        Wanted::Labelled(label) => to::labelled(place, Some(label)),
        Wanted::Others => to::labelled(place, None),
        Wanted::All | Wanted::Found(_) | Wanted::Nothing => to::queue(place),
    };
    let list = if rows.is_empty() && visit.offset() == 0 {
        let nothing = match wanted {
            Wanted::All => {
                "No jobs. Jobs appear here when they are created and stay until they are deleted."
            }
            _ => "No jobs in this state.",
        };
        view! { <p class="empty">{nothing}</p> }.into_any()
    } else {
        table("Jobs, least recently changed first", place, rows, visit)
    };
    view! {
        <div class="card">{list}</div>
        {pager(visit, &path, visit.offset(), rows.len(), count)}
    }
    .into_any()
}

/// Records, each on a line.
fn table(caption: &str, place: &Place, rows: &[RecordRow], visit: &Visit) -> AnyView {
    let columns = [
        ("Job", "first"),
        ("State", "state-cell"),
        ("Changed", "n"),
        ("Events", "n mid"),
        ("Payload", "mid payload-cell"),
    ];
    let rows = rows.iter().map(|row| {
        let id = row.id.to_string();
        view! {
            <tr data-key=id.clone()>
                <th scope="row" class="first"><a class="id" href=to::job(place, &id)>{id.clone()}</a></th>
                <td class="state-cell">
                    {match &row.state {
                        Some(state) => view! { <code>{state.clone()}</code> }.into_any(),
                        None => view! { <span class="aside">"no state"</span> }.into_any(),
                    }}
                </td>
                <td class="n">{ago(row.modified, visit.now)}</td>
                <td class="n mid">{row.events.map_or("many".to_owned(), |n| time::number(i64::try_from(n).unwrap_or(i64::MAX)))}</td>
                <td class="mid payload-cell"><code>{row.glimpse.clone()}</code></td>
            </tr>
        }
    });
    tables::table(
        caption,
        tables::head(&columns),
        rows.collect_view().into_any(),
    )
}

/// All records, and those of each state.
fn tabs(view: &RecordsView, wanted: &Wanted) -> AnyView {
    let is_here = |state: &StateRow| match (&state.label, wanted) {
        (Some(label), Wanted::Labelled(wanted)) => label == wanted,
        (None, Wanted::Others) => true,
        _ => false,
    };
    let tab = |state: &StateRow| {
        let address = to::labelled(&view.place, state.label.as_deref());
        tab(address, &state.word, state.count, is_here(state))
    };
    let (first, more) = view.states.split_at(TABS.min(view.states.len()));
    // The one that is shown has its tab, however rare.
    let here = more.iter().find(|state| is_here(state)).map(tab);
    let n = i64::try_from(more.len()).unwrap_or(i64::MAX);
    view! {
        <nav class="tabs states" aria-label="This queue">
            {tab_of_all(view, wanted)}
            {first.iter().map(tab).collect_view()}
            {here}
        </nav>
        {(!more.is_empty()).then(|| view! {
            <details class="more">
                <summary>{many(n, "more state", "more states")}</summary>
                <nav class="tabs states" aria-label="More states">{more.iter().map(tab).collect_view()}</nav>
            </details>
        })}
    }
    .into_any()
}

fn tab_of_all(view: &RecordsView, wanted: &Wanted) -> AnyView {
    let address = to::queue(&view.place);
    tab(address, "all", view.total, *wanted == Wanted::All)
}

fn tab(address: String, word: &str, count: i64, here: bool) -> AnyView {
    view! {
        <a
            class=if count == 0 { "tab zero" } else { "tab" }
            href=address.clone()
            data-key=address
            aria-current=here.then_some("page")
        >
            <span class="tab-name">{visible(word)}</span>
            <span class="tab-n">{time::number(count)}</span>
        </a>
    }
    .into_any()
}

fn delete(view: &RecordsView, visit: &Visit) -> AnyView {
    let place = &view.place;
    let (what, yes) = match view.total {
        0 => ("The queue is empty.".to_owned(), "Delete queue".to_owned()),
        n => {
            let jobs = many(n, "job", "jobs");
            (
                format!("Deletes {jobs} with payload, state and log."),
                format!("Delete queue and {jobs}"),
            )
        }
    };
    ask(Ask {
        id: "delete".to_owned(),
        button: "Delete…".to_owned(),
        danger: true,
        title: format!("Delete queue {}?", place.label()),
        text: format!("{what} This cannot be undone."),
        action: DeleteQueue::PATH,
        fields: [
            place.fields(),
            vec![("back", visit.here()), ("after", "/ui/queues".to_owned())],
        ]
        .concat(),
        yes,
        no: "Keep queue",
    })
}

/// The form for another queue. What the address says fills it in, so that a refusal leaves what was typed.
pub fn new_queue(visit: &Visit) -> AnyView {
    if !may(MakeQueue::PATH) {
        return ().into_any();
    }
    let typed = visit.param("new");
    let open = typed.is_some();
    view! {
        <section class="card padded" aria-labelledby="new">
            <details class="more" open=open>
                <summary><h2 id="new">"Create a Jobq queue"</h2></summary>
                <p class="aside">
                    "Jobq queues must be created and stay until they are deleted. Queues of the other protocols are created by their first job."
                </p>
                <form method="post" action=MakeQueue::PATH class="fields">
                    <div class="grow">
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
                    <button type="submit" class="button strong">"Create"</button>
                </form>
            </details>
        </section>
    }
    .into_any()
}

/// How the first records are made by curl.
pub fn first_lines(visit: &Visit) -> Vec<(&'static str, String)> {
    let place = Place::jobq("hosts");
    let [create, poll, ..] = of_queue(&place, visit);
    vec![
        ("Create the queue hosts", make(&place, visit)),
        create,
        poll,
    ]
}

fn make(place: &Place, visit: &Visit) -> String {
    let body = format!(r#"{{"name": {}}}"#, json(&place.name));
    let call = curl(visit, "GET", "/api/v0/queue");
    format!("{call} -d {}", quoted(&body))
}

fn of_queue(place: &Place, visit: &Visit) -> [(&'static str, String); 4] {
    let post =
        |path: &str, body: &str| format!("{} -d {}", call(place, visit, "GET", path), quoted(body));
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
            call(place, visit, "GET", "/job"),
        ),
        (
            "Delete the queue and its jobs",
            call(place, visit, "DELETE", ""),
        ),
    ]
}

fn lines(place: &Place, visit: &Visit) -> AnyView {
    view! {
        <details class="more">
            <summary>"API call (curl)"</summary>
            {commands("curl", of_queue(place, visit).into())}
        </details>
    }
    .into_any()
}

/// A call of the API below a queue.
fn call(place: &Place, visit: &Visit, method: &str, rest: &str) -> String {
    let mut path = "/api/v0/queue/".to_owned();
    encode(&place.name, &mut path);
    path.push_str(rest);
    curl(visit, method, &path)
}

/// The state of a record in a word, as others have their chip.
fn state_chip(word: &str) -> AnyView {
    view! {
        <span class="chip s-record">{icon("record")} <span class="chip-word">{visible(word)}</span></span>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_says_which_records_are_wanted() {
        let wanted = |query: &str| {
            wanted(&Visit {
                query: query.to_owned(),
                ..Visit::default()
            })
        };
        assert_eq!(wanted(""), Wanted::All);
        assert_eq!(wanted("q=+&offset=50"), Wanted::All);
        assert_eq!(wanted("state=null"), Wanted::Labelled("null".to_owned()));
        assert_eq!(wanted("others=1"), Wanted::Others);
        assert_eq!(wanted("q=%5B%5D&state=5"), Wanted::Found("[]".to_owned()));
    }
}
