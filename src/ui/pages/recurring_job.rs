//! `/ui/recurring/{id}`: one recurring job, its newest children, and the forms to change or end it.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::actions::recurring::{
    ChangeRecurring, PauseRecurring, ResumeRecurring, RunRecurring, Unrecur,
};
use crate::ui::components::basics::{card, definitions, empty_note, loaded};
use crate::ui::components::commands::{api, copy, curl_commands, shell_quote};
use crate::ui::components::forms::{
    ConfirmDialog, action_button, confirm_dialog, hidden, may_post, queue_field, shortcut,
};
use crate::ui::components::links::{queue_link, tag_link};
use crate::ui::components::pause;
use crate::ui::components::payload::payload;
use crate::ui::components::styles::{CARD, CARD_PADDED, CARD_TITLE, CRUMB, FIELDS, SECTION_TITLE};
use crate::ui::components::tables::job_list::{self, JobList};
use crate::ui::components::time::exact;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::recurring::RecurringRow;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::recurring::{
    backlog, cron_fields, data_field, interval_fields, job_fields, label_fields, summary,
};
use crate::ui::pages::recurring_job::model::RecurringJobView;
use crate::ui::urls::encoding::segment;

#[component]
pub fn RecurringJobPage() -> impl IntoView {
    let request = page_request();
    loaded(load::recurring(request.name(2)), move |view| {
        page(&view, &request)
    })
}

fn page(view: &RecurringJobView, request: &PageRequest) -> AnyView {
    let row = &view.row;
    let name = row
        .klass
        .clone()
        .unwrap_or_else(|| "Recurring job".to_owned());
    view! {
        <Title text=format!("{name} {}", row.id) />
        <p class=CRUMB><a href="/ui/recurring">"Recurring jobs"</a></p>
        <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
            <h1 class="name">{name}</h1>
            <div class="flex flex-wrap items-center gap-2">
                {buttons(row, request)} {end(&row.id, request)}
            </div>
        </div>
        <p class="-mt-3 flex flex-wrap items-center gap-2 text-muted wrap-anywhere">
            <code id="rid" class="id">{row.id.clone()}</code> {copy("rid".to_owned(), "Copy ID".to_owned())}
        </p>
        <p class="flex flex-wrap items-center gap-2">{summary(row, request.now)}</p>
        <div class="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
            {card("facts", "Details", facts(view, request))}
            <section class=CARD_PADDED aria-labelledby="data">
                <div class=SECTION_TITLE>
                    <h2 id="data">"Payload of new jobs"</h2>
                    {copy("payload".to_owned(), "Copy the payload".to_owned())}
                </div>
                {payload(&view.body, request)}
            </section>
        </div>
        {change(view, request)}
        <section class=CARD aria-labelledby="children">
            <div class=CARD_TITLE>
                <h2 id="children">"Newest jobs"</h2>
                <span class="text-muted wrap-anywhere">{format!("{} created in total", time::number(row.children))}</span>
            </div>
            {if view.children.is_empty() {
                empty_note("No jobs found. None has been created yet, or the newest ones were canceled or removed.")
            } else {
                job_list::jobs("Newest jobs of this recurring job", JobList::Children, &view.children, request)
            }}
        </section>
        {curl(&row.id, request)}
    }
    .into_any()
}

fn facts(view: &RecurringJobView, request: &PageRequest) -> AnyView {
    let row = &view.row;
    let tags = if row.tags.is_empty() {
        "none".into_any()
    } else {
        row.tags
            .iter()
            .map(|tag| tag_link(tag))
            .collect_view()
            .into_any()
    };
    let facts = [
        (
            "Queue",
            view! { {queue_link(&QueueRef::qless(&row.queue))} " " {row.queue_paused.then(|| pause::chip(&row.pause, request.now))} }.into_any(),
        ),
        ("Schedule", row.schedule().into_any()),
        ("Next runs", next_runs(view)),
        (
            "Priority",
            view! { {row.priority.to_string()} <span class="text-muted wrap-anywhere">" · lower numbers run first"</span> }
                .into_any(),
        ),
        ("Retries", time::number(row.retries).into_any()),
        (
            "Catch-up limit",
            view! { {backlog(row.backlog)} <span class="text-muted wrap-anywhere">" missed runs"</span> }
                .into_any(),
        ),
        ("Tags", tags),
    ];
    definitions(facts)
}

/// A day in microseconds.
const DAY_US: i64 = 86_400_000_000;

/// The due times of the next jobs.
fn next_runs(view: &RecurringJobView) -> AnyView {
    if view.next_runs.is_empty() {
        return if view.row.is_paused {
            "none while paused"
        } else {
            "none"
        }
        .into_any();
    }
    let runs = view
        .next_runs
        .iter()
        .map(|run| view! { <li>{exact(*run)}</li> });
    view! { <ol>{runs.collect_view()}</ol> }.into_any()
}

/// The buttons that run the recurring job now, and pause or resume it.
fn buttons(row: &RecurringRow, request: &PageRequest) -> AnyView {
    let fields = || vec![("id", row.id.clone()), ("back", request.here())];
    let button = |action, word: &'static str| {
        let about = format!("{word}: recurring job {}", row.id);
        shortcut("", action_button(action, fields(), word, about))
    };
    let (action, word) = if row.is_paused {
        (ResumeRecurring::PATH, "Resume")
    } else {
        (PauseRecurring::PATH, "Pause")
    };
    view! { {button(RunRecurring::PATH, "Run now")} {button(action, word)} }.into_any()
}

fn change(view: &RecurringJobView, request: &PageRequest) -> AnyView {
    if !may_post(ChangeRecurring::PATH) {
        return ().into_any();
    }
    let row = &view.row;
    // The field is required. With a cron expression, the interval is not used, and the field shows a day.
    let interval = if row.cron.is_empty() {
        row.interval
    } else {
        DAY_US
    };
    let (number, unit) = time::as_number_and_unit(interval);
    view! {
        <section class=CARD_PADDED aria-labelledby="change">
            <h2 id="change">"Change recurring job"</h2>
            <p class="text-muted wrap-anywhere">
                "Applies to future runs. Changing the interval moves the next run by the difference. With a cron expression, the interval is ignored."
            </p>
            <form method="post" action=ChangeRecurring::PATH class=FIELDS>
                {hidden(vec![("form[id]", row.id.clone()), ("form[edit]", "all".to_owned()), ("back", request.here())])}
                {queue_field("change-queue", "form[queue]", &row.queue, &view.queues)}
                {label_fields("change", row.klass.clone().unwrap_or_default(), row.tags.join(", "))}
                {interval_fields("change", &number, unit)}
                {cron_fields("change", row.cron.clone(), row.zone.clone())}
                {job_fields(
                    "change",
                    row.priority.to_string(),
                    row.retries.to_string(),
                    row.backlog.to_string(),
                )}
                {data_field("change", &view.body)}
                <button type="submit" class="btn btn-strong">"Change"</button>
            </form>
        </section>
    }
    .into_any()
}

fn end(id: &str, request: &PageRequest) -> AnyView {
    confirm_dialog(ConfirmDialog {
        id: "end".to_owned(),
        button: "End…".to_owned(),
        danger: true,
        title: "End this recurring job?".to_owned(),
        text: "Stops creating jobs. Existing jobs are kept. This cannot be undone, but you can create a new recurring job.".to_owned(),
        action: Unrecur::PATH,
        fields: vec![
            ("id", id.to_owned()),
            ("back", request.here()),
            ("after", "/ui/recurring".to_owned()),
        ],
        confirm_label: "End recurring job".to_owned(),
        cancel_label: "Keep recurring job",
    })
}

fn curl(id: &str, request: &PageRequest) -> AnyView {
    let address = shell_quote(&api(request, &format!("/recurring/{}", segment(id))));
    curl_commands(vec![
        ("Get the recurring job", format!("curl {address}")),
        (
            "Change the interval",
            format!(
                "curl {address} -d {}",
                shell_quote(r#"{"data": {"interval": 300}}"#)
            ),
        ),
        ("End the recurring job", format!("curl -X DELETE {address}")),
    ])
}
