//! The dead letter of a queue of lmstfy or Relay: what is in it, and what can be done with one, some or all of its
//! jobs. What is to be done to which jobs stands in the address, and the page asks whether that is meant: so a question
//! can name what was ticked, without a script.
//!
//! lmstfy's jobs are respawned, with a new time to live; Relay's are enqueued again, unless their ids are taken.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::icons::icon;
use super::lmstfy::{respawning, ttl_field};
use super::parts::{Ask, ago, ask, ask_with, element_id, hidden, job_link, many, may, visible};
use super::relay::{self, enqueuing};
use super::tables;
use super::visit::{Visit, encode, to};
use crate::api::act::{DeleteDead, DeleteDeadJobs, Respawn, RespawnJobs, Revive, ReviveJobs};
use crate::api::views::{Api, JobRow, Place, QueueView, Stand};
use crate::time;

/// Jobs that a question shows.
const SAMPLES: usize = 3;

/// How many of the oldest are offered.
const OLDEST: i64 = 10;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// Put to work again.
    Again,
    Delete,
}

impl Deed {
    /// As it stands in the address.
    fn word(self, api: Api) -> &'static str {
        match self {
            Deed::Delete => "delete",
            Deed::Again if api == Api::Relay => "enqueue",
            Deed::Again => "respawn",
        }
    }

    /// The deed in words, done to `jobs`.
    fn to(self, api: Api, jobs: &str) -> String {
        match self {
            Deed::Delete => format!("Delete {jobs}"),
            Deed::Again if api == Api::Relay => format!("Requeue {jobs}"),
            Deed::Again => format!("Respawn {jobs}"),
        }
    }

    /// On a button where it is plain to which jobs.
    fn button(self, api: Api) -> &'static str {
        match self {
            Deed::Delete => "Delete…",
            Deed::Again if api == Api::Relay => "Requeue…",
            Deed::Again => "Respawn…",
        }
    }

    /// The server function.
    fn path(self, api: Api, which: &Which) -> &'static str {
        match (self, which) {
            (Deed::Again, Which::Ticked(_)) if api == Api::Relay => ReviveJobs::PATH,
            (Deed::Again, _) if api == Api::Relay => Revive::PATH,
            (Deed::Again, Which::Ticked(_)) => RespawnJobs::PATH,
            (Deed::Again, _) => Respawn::PATH,
            (Deed::Delete, Which::Ticked(_)) => DeleteDeadJobs::PATH,
            (Deed::Delete, _) => DeleteDead::PATH,
        }
    }
}

/// To which jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    Ticked(Vec<String>),
    /// So many of the oldest.
    Oldest(i64),
    All,
}

/// What the address asks for.
fn asked(api: Api, visit: &Visit) -> (Option<Deed>, Which) {
    let word = visit.param("do").unwrap_or_default();
    let deed = [Deed::Again, Deed::Delete];
    let deed = deed.into_iter().find(|deed| deed.word(api) == word);
    let n = visit.param("n").and_then(|n| n.trim().parse().ok());
    let which = match visit.param("of").as_deref() {
        Some("all") => Which::All,
        Some("oldest") => Which::Oldest(n.unwrap_or(0)),
        _ => Which::Ticked(visit.params("id")),
    };
    (deed, which)
}

/// The page of the dead letter without a question, at the same place in the list.
fn plain(place: &Place, visit: &Visit) -> String {
    let list = to::stand(place, Stand::Dead);
    match visit.offset() {
        0 => list,
        offset => format!("{list}?offset={offset}"),
    }
}

/// The question whether what the address asks for is meant.
pub fn question(view: &QueueView, visit: &Visit) -> AnyView {
    let (place, size) = (&view.queue.place, view.queue.tally.dead);
    let (Some(deed), which) = asked(place.api, visit) else {
        return ().into_any();
    };
    let back = plain(place, visit);
    let (count, mut fields) = match &which {
        Which::Ticked(ids) => {
            let fields = ids.iter().map(|id| ("ids[]", id.clone()));
            (
                i64::try_from(ids.len()).unwrap_or(i64::MAX),
                fields.collect(),
            )
        }
        Which::Oldest(n) => (size.min(*n), Vec::new()),
        Which::All => (size, Vec::new()),
    };
    if !may(deed.path(place.api, &which)) {
        return ().into_any();
    }
    if count <= 0 {
        return nothing(&which, &back);
    }
    if !matches!(which, Which::Ticked(_)) {
        fields.push(("count", count.to_string()));
    }
    fields.extend(place.fields());
    fields.push(("back", back.clone()));
    let (look, frame) = match deed {
        Deed::Again => ("button strong", "card padded question"),
        Deed::Delete => ("button danger strong", "card padded question danger"),
    };
    let jobs = many(count, "job", "jobs");
    view! {
        <section id="question" class=frame aria-labelledby="question-title">
            <h2 id="question-title">{deed.to(place.api, &amount(&which, count, size))} "?"</h2>
            <p>{effect(deed, place, count)}</p>
            {samples(&which, count, view, visit)}
            <form method="post" action=deed.path(place.api, &which)>
                {hidden(fields)}
                {(deed == Deed::Again && place.api == Api::Lmstfy).then(|| ttl_field("question"))}
                <div class="row">
                    <button type="submit" class=look>{deed.to(place.api, &jobs)}</button>
                    <a class="button" href=back.clone()>"Close"</a>
                </div>
            </form>
        </section>
    }
    .into_any()
}

/// What becomes of the jobs.
fn effect(deed: Deed, place: &Place, count: i64) -> String {
    let (one, more) = match place.api {
        Api::Relay => (
            "Deletes the job with its payload and state.",
            "Deletes the jobs with their payloads and states.",
        ),
        Api::Qless | Api::Lmstfy | Api::Jobq => (
            "Deletes the job and its body.",
            "Deletes the jobs and their bodies.",
        ),
    };
    match deed {
        Deed::Again if place.api == Api::Relay => enqueuing(place, count),
        Deed::Again => respawning(place, count),
        Deed::Delete => {
            let what = if count == 1 { one } else { more };
            format!("{what} This cannot be undone.")
        }
    }
}

/// Puts a whole dead letter to work again, `count` jobs as far as is known, after a question.
pub fn all_again(place: &Place, count: i64, visit: &Visit) -> AnyView {
    let (api, jobs) = (place.api, many(count, "job", "jobs"));
    let id = element_id("respawn-", &to::queue(place));
    let all = match count {
        1 => "1".to_owned(),
        _ => format!("all {}", time::number(count)),
    };
    let question = Ask {
        id: id.clone(),
        button: format!("{}…", Deed::Again.to(api, &all)),
        danger: false,
        title: format!("{}?", Deed::Again.to(api, &jobs)),
        text: effect(Deed::Again, place, count),
        action: Deed::Again.path(api, &Which::All),
        fields: [
            place.fields(),
            vec![("count", count.to_string()), ("back", visit.here())],
        ]
        .concat(),
        yes: Deed::Again.to(api, &jobs),
        no: "Close",
    };
    if api == Api::Lmstfy {
        ask_with(question, ttl_field(&id))
    } else {
        ask(question)
    }
}

/// Instead of a question about no job.
fn nothing(which: &Which, back: &str) -> AnyView {
    let why = match which {
        Which::Ticked(_) => {
            "No jobs selected. Select jobs in the list, or choose the oldest or all."
        }
        Which::Oldest(_) => "No number given. Enter how many of the oldest jobs, 1 or more.",
        Which::All => "No dead jobs are left in this queue.",
    };
    view! {
        <p id="question" class="notice s-stalled">
            {icon("stalled")} <span>{why} " " <a href=back.to_owned()>"Close"</a></span>
        </p>
    }
    .into_any()
}

/// The jobs in words.
fn amount(which: &Which, count: i64, size: i64) -> String {
    match which {
        Which::Ticked(_) => many(count, "selected job", "selected jobs"),
        _ if count == size && count > 1 => format!("all {} dead jobs", time::number(count)),
        _ if count == size => "the only dead job".to_owned(),
        _ if count == 1 => "the oldest dead job".to_owned(),
        _ => format!("the {} oldest dead jobs", time::number(count)),
    }
}

/// The first of the jobs, if they are on this page of the list.
fn samples(which: &Which, count: i64, view: &QueueView, visit: &Visit) -> AnyView {
    let meant = |job: &&JobRow| match which {
        Which::Ticked(ids) => ids.contains(&job.handle()),
        Which::Oldest(_) | Which::All => visit.offset() == 0,
    };
    let shown: Vec<&JobRow> = view.jobs.iter().filter(meant).take(SAMPLES).collect();
    if shown.is_empty() {
        return ().into_any();
    }
    let more = count - i64::try_from(shown.len()).unwrap_or(i64::MAX);
    let rows = shown.into_iter().map(|job| {
        view! { <li data-key=job.handle()>{job_link(job)} " " <code class="aside">{job.glimpse.clone()}</code></li> }
    });
    view! {
        <ul class="samples">
            {rows.collect_view()}
            {(more > 0).then(|| view! { <li class="aside">{format!("and {} more", time::number(more))}</li> })}
        </ul>
    }
    .into_any()
}

/// Whether dead jobs may be ticked at all: who may do one thing with them may do the other.
fn may_act(api: Api) -> bool {
    may(Deed::Again.path(api, &Which::All))
}

/// The jobs, each with a box to tick, and what can be done with them.
pub fn list(view: &QueueView, visit: &Visit) -> AnyView {
    let place = &view.queue.place;
    let (_, which) = asked(place.api, visit);
    let all = visit.param("select").is_some_and(|select| select == "all");
    let ticked = |id: &String| match &which {
        Which::Ticked(ids) => all || ids.contains(id),
        Which::Oldest(_) | Which::All => all,
    };
    let (tries, body) = match place.api {
        Api::Relay => ("Retries", "Payload"),
        Api::Qless | Api::Lmstfy | Api::Jobq => ("Tries", "Body"),
    };
    let acts = may_act(place.api);
    let mut columns = vec![
        ("Job", ""),
        ("Dead since", "n"),
        (tries, "n wide"),
        (body, "wide payload-cell"),
    ];
    if acts {
        columns.insert(0, ("Select", "tick"));
        columns.push(("Action", "act"));
    }
    let rows = view
        .jobs
        .iter()
        .map(|job| row(job, ticked(&job.handle()), visit));
    let table = tables::table(
        "Dead jobs, oldest first",
        tables::head(&columns),
        rows.collect_view().into_any(),
    );
    if !acts {
        return table;
    }
    view! {
        <form method="get" action=format!("{}#question", to::stand(place, Stand::Dead))>
            {(visit.offset() > 0).then(|| hidden(vec![("offset", visit.offset().to_string())]))}
            {choice(view, &which, all, visit)}
            {table}
        </form>
    }
    .into_any()
}

fn row(job: &JobRow, ticked: bool, visit: &Visit) -> AnyView {
    let (list, api, name) = (plain(&job.place, visit), job.place.api, visible(&job.id));
    let mark = if list.contains('?') { '&' } else { '?' };
    let mut again = format!("{list}{mark}do={}&id=", Deed::Again.word(api));
    encode(&job.handle(), &mut again);
    again.push_str("#question");
    // It begins with what stands on the button.
    let about = match api {
        Api::Relay => format!("Requeue job {name}…"),
        Api::Qless | Api::Lmstfy | Api::Jobq => format!("Respawn job {name}…"),
    };
    let acts = may_act(api);
    let tries = match api {
        Api::Relay => relay::allowed(job),
        Api::Qless | Api::Lmstfy | Api::Jobq => job.tries().1.to_string(),
    };
    view! {
        <tr data-key=job.handle()>
            {acts
                .then(|| {
                    view! {
                        <td class="tick">
                            <input type="checkbox" name="id" value=job.handle() checked=ticked aria-label=format!("Select job {name}") />
                        </td>
                    }
                })}
            <th scope="row">{job_link(job)}</th>
            <td class="n">{ago(job.when, visit.now)}</td>
            <td class="n wide">{tries}</td>
            <td class="wide payload-cell"><code>{job.glimpse.clone()}</code></td>
            {acts
                .then(|| view! { <td class="act"><a class="button" href=again aria-label=about>{Deed::Again.button(api)}</a></td> })}
        </tr>
    }
    .into_any()
}

/// Which jobs, and what is to be done with them.
fn choice(view: &QueueView, which: &Which, all: bool, visit: &Visit) -> AnyView {
    let (size, api) = (view.queue.tally.dead, view.queue.place.api);
    let radio = |value: &'static str, checked: bool, label: AnyView| {
        view! {
            <label class="choice"><input type="radio" name="of" value=value checked=checked /> {label}</label>
        }
    };
    let n = match which {
        Which::Oldest(n) => *n,
        Which::Ticked(_) | Which::All => OLDEST.min(size),
    };
    let list = plain(&view.queue.place, visit);
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
        <div class="choices">
            <fieldset class="row">
                <legend class="unseen">"Which dead jobs"</legend>
                {radio("ticked", matches!(which, Which::Ticked(_)), "selected jobs".into_any())}
                <span class="row">
                    {radio("oldest", matches!(which, Which::Oldest(_)), "the oldest".into_any())}
                    <input type="number" name="n" min="1" step="1" value=n.to_string() aria-label="How many of the oldest" class="few" />
                </span>
                {radio("all", *which == Which::All, format!("all {}", time::number(size)).into_any())}
            </fieldset>
            <div class="row">
                <button type="submit" name="do" value=Deed::Again.word(api) class="button">{icon("retry")} {Deed::Again.button(api)}</button>
                <button type="submit" name="do" value=Deed::Delete.word(api) class="button danger">{Deed::Delete.button(api)}</button>
            </div>
            <span class="aside">{select}</span>
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(query: &str) -> Visit {
        Visit {
            query: query.to_owned(),
            ..Visit::default()
        }
    }

    #[test]
    fn the_address_says_what_is_to_be_done_to_which_jobs() {
        let asked = |query: &str| asked(Api::Lmstfy, &visit(query));
        assert_eq!(asked(""), (None, Which::Ticked(vec![])));
        assert_eq!(
            asked("of=ticked&n=10&do=delete&id=a&id=b"),
            (
                Some(Deed::Delete),
                Which::Ticked(vec!["a".to_owned(), "b".to_owned()])
            )
        );
        assert_eq!(
            asked("id=a&of=oldest&n=7&do=respawn"),
            (Some(Deed::Again), Which::Oldest(7))
        );
        assert_eq!(asked("of=oldest&n=many&do=respawn").1, Which::Oldest(0));
        assert_eq!(
            asked("of=all&n=&do=delete"),
            (Some(Deed::Delete), Which::All)
        );
    }

    #[test]
    fn what_an_api_does_not_have_is_not_asked_for() {
        let deed = |api, query| asked(api, &visit(query)).0;
        assert_eq!(deed(Api::Relay, "do=enqueue"), Some(Deed::Again));
        assert_eq!(deed(Api::Relay, "do=respawn"), None);
        assert_eq!(deed(Api::Lmstfy, "do=enqueue"), None);
        assert_eq!(Deed::Again.to(Api::Relay, "2 jobs"), "Requeue 2 jobs");
        assert_eq!(Deed::Again.to(Api::Lmstfy, "2 jobs"), "Respawn 2 jobs");
    }

    #[test]
    fn a_question_names_the_jobs() {
        let ticked = Which::Ticked(vec![]);
        assert_eq!(amount(&ticked, 3, 9), "3 selected jobs");
        assert_eq!(amount(&Which::All, 1200, 1200), "all 1,200 dead jobs");
        assert_eq!(amount(&Which::All, 1, 1), "the only dead job");
        assert_eq!(amount(&Which::Oldest(1), 1, 9), "the oldest dead job");
        assert_eq!(amount(&Which::Oldest(5), 5, 9), "the 5 oldest dead jobs");
        assert_eq!(amount(&Which::Oldest(9), 9, 9), "all 9 dead jobs");
    }
}
