//! `/ui/recurring`: the recurring jobs of all queues or of one, and the form for a new one.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::actions::recurring::Recur;
use crate::ui::components::basics::{empty_note, loaded, plural};
use crate::ui::components::commands::{api, curl_commands, escape_textarea, shell_quote};
use crate::ui::components::forms::{NumberField, may_post, number_field, queue_field};
use crate::ui::components::icons::icon;
use crate::ui::components::links::queue_link;
use crate::ui::components::paging::key_pager;
use crate::ui::components::pause;
use crate::ui::components::state::paused_chip;
use crate::ui::components::styles::{CARD, CARD_PADDED, CRUMB, FIELDS};
use crate::ui::components::tables;
use crate::ui::components::time::ago;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::recurring::RecurringRow;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::recurring::model::RecurringJobsView;
use crate::ui::urls;

/// The units for an interval: length in seconds, and name.
const UNITS: [(i64, &str); 4] = [
    (1, "seconds"),
    (60, "minutes"),
    (3_600, "hours"),
    (86_400, "days"),
];

/// The parameters of the address that fill in the form.
const FORM_FIELDS: [&str; 13] = [
    "to", "id", "klass", "interval", "unit", "cron", "zone", "offset", "priority", "retries",
    "backlog", "tags", "data",
];

#[component]
pub fn RecurringJobsPage() -> impl IntoView {
    let request = page_request();
    let queue = request.param("queue").filter(|queue| !queue.is_empty());
    loaded(
        load::recurring_jobs(queue.clone(), request.page()),
        move |view| page(&view, queue.as_deref(), &request),
    )
}

fn page(view: &RecurringJobsView, queue: Option<&str>, request: &PageRequest) -> AnyView {
    let path = queue.map_or_else(|| "/ui/recurring".to_owned(), urls::recurring_in);
    view! {
        <Title text="Recurring jobs" />
        {queue.map(|queue| view! { <p class=CRUMB><a href="/ui/queues">"Queues"</a> <span aria-hidden="true">" › "</span> {queue_link(&QueueRef::qless(queue))}</p> })}
        <h1>"Recurring jobs"</h1>
        <p class="text-muted wrap-anywhere">
            {match queue {
                Some(queue) => format!("{} in queue “{queue}”. ", plural(view.total, "recurring job", "recurring jobs")),
                None => format!("{} in all queues. ", plural(view.total, "recurring job", "recurring jobs")),
            }}
            "When a run is due, its job is created at the next claim or peek of the queue."
            {queue.map(|_| view! { " " <a href="/ui/recurring">"Show all queues"</a> })}
        </p>
        <div class=CARD>
            {if view.rows.is_empty() {
                empty_note("No recurring jobs.")
            } else {
                list(&view.rows, request)
            }}
        </div>
        {key_pager(&path, &view.neighbors, view.rows.len(), view.total)}
        {form(view, queue, request)}
        {curl(request)}
    }
    .into_any()
}

fn list(rows: &[RecurringRow], request: &PageRequest) -> AnyView {
    let columns = [
        ("Recurring job", ""),
        ("Queue", "mid"),
        ("Schedule", ""),
        ("Next", "num"),
        ("Created", "num mid"),
        ("Catch-up limit", "num wide"),
        ("Priority", "num wide"),
        ("Retries", "num wide"),
    ];
    let rows = rows.iter().map(|row| {
        view! {
            <tr data-key=row.id.clone()>
                <th scope="row">
                    <a class="id" href=urls::recurring(&row.id)>{row.id.clone()}</a>
                    {row.klass.clone().map(|klass| view! { <span class="block text-xs leading-4 text-muted wrap-anywhere">{klass}</span> })}
                </th>
                <td class="mid">{queue_link(&QueueRef::qless(&row.queue))} {row.queue_paused.then(|| pause::chip(&row.pause, request.now))}</td>
                <td>{row.schedule()}</td>
                <td class="num max-sm:whitespace-normal">{next(row, request.now)}</td>
                <td class="num mid">{time::number(row.children)}</td>
                <td class="num wide">{backlog(row.backlog)}</td>
                <td class="num wide">{row.priority.to_string()}</td>
                <td class="num wide">{time::number(row.retries)}</td>
            </tr>
        }
    });
    tables::table(
        "Recurring jobs, next run first",
        tables::head(&columns),
        rows.collect_view().into_any(),
    )
}

/// When the next child is due. If it is overdue, why it has not been created.
pub fn next(row: &RecurringRow, now: i64) -> AnyView {
    if row.is_paused {
        return view! { {paused_chip()} " " <span class="text-muted">"until resumed"</span> }
            .into_any();
    }
    if row.next_due == i64::MAX {
        return "never".into_any();
    }
    if row.next_due > now {
        return ago(row.next_due, now);
    }
    let waits = if row.queue_paused {
        "queue is paused"
    } else {
        "waiting for a worker"
    };
    view! { <span class="text-waiting">"due " {ago(row.next_due, now)}</span> <span class="line-clamp-2 text-xs leading-4 text-muted wrap-anywhere">{waits}</span> }
        .into_any()
}

/// The catch-up limit as text.
pub fn backlog(backlog: i64) -> String {
    match backlog {
        0 => "all".to_owned(),
        n => time::number(n),
    }
}

/// The fields for an interval: a number and a unit.
pub fn interval_fields(id: &str, number: &str, unit: i64) -> AnyView {
    let units = UNITS.map(|(seconds, word)| {
        view! { <option value=seconds.to_string() selected=seconds == unit>{word}</option> }
    });
    let (number_id, unit_id) = (format!("{id}-interval"), format!("{id}-unit"));
    view! {
        <div>
            <label for=number_id.clone()>"Interval"</label>
            <span class="flex gap-1 [&_input]:w-24">
                <input
                    id=number_id
                    name="form[interval]"
                    type="number"
                    step="any"
                    min="0"
                    value=number.to_owned()
                    required
                    autocomplete="off"
                />
                <select id=unit_id name="form[unit]" aria-label="Interval unit">{units.collect_view()}</select>
            </span>
        </div>
    }
    .into_any()
}

/// The fields for a cron expression, which replaces the interval, and its time zone.
pub fn cron_fields(id: &str, cron: String, zone: String) -> AnyView {
    let (cron_id, zone_id) = (format!("{id}-cron"), format!("{id}-zone"));
    view! {
        <div>
            <label for=cron_id.clone()>"Or cron expression"</label>
            <input id=cron_id name="form[cron]" type="text" value=cron maxlength="255" placeholder="0 9 * * MON-FRI" spellcheck="false" autocomplete="off" />
        </div>
        <div>
            <label for=zone_id.clone()>"Time zone"</label>
            <input id=zone_id name="form[zone]" type="text" value=zone maxlength="64" placeholder="UTC" spellcheck="false" autocomplete="off" />
        </div>
    }
    .into_any()
}

/// The fields for the class and the tags of the jobs.
pub fn label_fields(id: &str, klass: String, tags: String) -> AnyView {
    let (klass_id, tags_id) = (format!("{id}-klass"), format!("{id}-tags"));
    view! {
        <div>
            <label for=klass_id.clone()>"Class (optional)"</label>
            <input id=klass_id name="form[klass]" type="text" value=klass maxlength="255" autocomplete="off" />
        </div>
        <div>
            <label for=tags_id.clone()>"Tags (comma-separated)"</label>
            <input id=tags_id name="form[tags]" type="text" value=tags autocomplete="off" />
        </div>
    }
    .into_any()
}

/// The field for the payload of the jobs.
pub fn data_field(id: &str, data: &str) -> AnyView {
    let id = format!("{id}-data");
    view! {
        <div class="flex-[1_0_100%]">
            <label for=id.clone()>"Payload of each job (JSON)"</label>
            <textarea id=id name="form[data]" rows="4" spellcheck="false" autocomplete="off">{escape_textarea(data)}</textarea>
        </div>
    }
    .into_any()
}

/// The fields for the priority, the retries and the catch-up limit.
pub fn job_fields(form: &str, priority: String, retries: String, backlog: String) -> AnyView {
    let field = |name: &str, label, value| NumberField {
        id: format!("{form}-{name}"),
        name: "",
        label,
        value,
        whole: true,
        min: Some("0"),
    };
    [
        NumberField {
            name: "form[priority]",
            whole: false,
            min: None,
            ..field("priority", "Priority (lower runs first)", priority)
        },
        NumberField {
            name: "form[retries]",
            ..field("retries", "Retries per job", retries)
        },
        NumberField {
            name: "form[backlog]",
            ..field(
                "backlog",
                "Catch-up limit for missed runs (0 = all)",
                backlog,
            )
        },
    ]
    .map(number_field)
    .into_any()
}

/// The form for a new recurring job. The address contains the initial values, so that an error keeps the user's input.
fn form(view: &RecurringJobsView, queue: Option<&str>, request: &PageRequest) -> AnyView {
    let typed = |name: &str| request.param(name).unwrap_or_default();
    let open = FORM_FIELDS.iter().any(|name| request.param(name).is_some());
    let unit = typed("unit").parse().unwrap_or(60);
    let to_queue = request
        .param("to")
        .or_else(|| queue.map(str::to_owned))
        .unwrap_or_default();
    let or = |name: &str, default: &str| match typed(name) {
        text if text.is_empty() => default.to_owned(),
        text => text,
    };
    if !may_post(Recur::PATH) {
        return ().into_any();
    }
    let offset = NumberField {
        id: "new-offset".to_owned(),
        name: "form[offset]",
        label: "First run after (s)",
        value: or("offset", "0"),
        whole: false,
        min: Some("0"),
    };
    let [priority, retries, backlog] = ["priority", "retries", "backlog"].map(|name| or(name, "0"));
    view! {
        <section class=CARD_PADDED aria-labelledby="new">
            <details open=open>
                <summary><h2 id="new">"Create recurring job"</h2></summary>
                <form method="post" action=Recur::PATH class=FIELDS>
                    {queue_field("new-queue", "form[queue]", &to_queue, &view.queues)}
                    <div>
                        <label for="new-id">"ID (optional)"</label>
                        <input id="new-id" name="form[id]" type="text" value=typed("id") maxlength="235" autocomplete="off" />
                    </div>
                    {label_fields("new", typed("klass"), typed("tags"))}
                    {interval_fields("new", &or("interval", "5"), unit)}
                    {cron_fields("new", typed("cron"), typed("zone"))}
                    {number_field(offset)}
                    {job_fields("new", priority, retries, backlog)}
                    {data_field("new", &or("data", "{}"))}
                    <button type="submit" class="btn btn-strong">"Create"</button>
                </form>
            </details>
        </section>
    }
    .into_any()
}

fn curl(request: &PageRequest) -> AnyView {
    let data = r#"{"data": {"id": "nightly", "meta": {}, "interval": 86400}}"#;
    curl_commands(vec![
        (
            "Create a recurring job",
            format!(
                "curl {} -d {}",
                shell_quote(&api(request, "/recur/mail")),
                shell_quote(data)
            ),
        ),
        (
            "List the recurring jobs of a queue",
            format!(
                "curl {}",
                shell_quote(&api(request, "/jobs/recurring/mail"))
            ),
        ),
    ])
}

/// The state of a recurring job in one line.
pub fn summary(row: &RecurringRow, now: i64) -> AnyView {
    view! {
        <span class="text-recurring">{icon("recurring")}</span>
        <span>{row.schedule()}</span>
        <span aria-hidden="true">"·"</span>
        <span>"next: " {next(row, now)}</span>
    }
    .into_any()
}
