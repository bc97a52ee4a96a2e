//! `/ui/check`: the consistency check. A form that is posted to the same address runs it.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::actions::database::{CHECK, Repair};
use crate::ui::components::basics::{number_of, plural};
use crate::ui::components::commands::{api, curl_commands, shell_quote};
use crate::ui::components::error::error_view;
use crate::ui::components::forms::{ConfirmDialog, confirm_dialog};
use crate::ui::components::icons::icon;
use crate::ui::components::styles::{CARD, CARD_TITLE, HEALTHY};
use crate::ui::components::time::exact;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::check::model::{CheckOutcome, CheckView, CheckedKind};

/// Maximum number of inconsistencies of one kind that the engine reports.
const KIND_MAX: usize = 1_000;

#[component]
pub fn CheckPage() -> impl IntoView {
    let request = page_request();
    let found = match use_context::<CheckOutcome>() {
        Some(CheckOutcome(Ok(view))) => result(&view, &request),
        Some(CheckOutcome(Err(error))) => error_view(&error),
        None => ().into_any(),
    };
    view! {
        <Title text="Consistency check" />
        <h1>"Consistency check"</h1>
        <p class="text-muted wrap-anywhere">
            "Compares derived data (counts, tags, dependencies) with the jobs, and checks that tags and histories can be read. The check reads the whole database from one snapshot while the server keeps running; on a large database it takes a while."
        </p>
        <form method="post" action=CHECK.path>
            <button type="submit" class="btn btn-strong">{icon("check")} "Run check"</button>
        </form>
        // A refresh keeps the result.
        <div id="found" class="flex flex-col gap-4 empty:hidden" data-keep="">{found}</div>
        {curl(&request)}
    }
}

fn result(view: &CheckView, request: &PageRequest) -> AnyView {
    let when =
        view! { <span class="text-muted wrap-anywhere">" · checked " {exact(view.when)}</span> };
    if view.kinds.is_empty() {
        return view! {
            <p class=HEALTHY>
                {icon("complete")} <span>"No inconsistencies found." {when}</span>
            </p>
        }
        .into_any();
    }
    let n = number_of(view.total());
    let is_cut = view.kinds.iter().any(|kind| kind.total >= KIND_MAX);
    let at_least = if is_cut { "At least " } else { "" };
    view! {
        <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
            <p class="flex flex-wrap items-center gap-2 text-failed">
                {icon("failed")} <strong>{format!("{at_least}{} found.", plural(n, "inconsistency", "inconsistencies"))}</strong> {when}
            </p>
            {repair_dialog(request)}
        </div>
        {view.kinds.iter().map(kind).collect_view()}
    }
    .into_any()
}

fn kind(kind: &CheckedKind) -> AnyView {
    let id = format!("kind-{}", kind.kind);
    let n = number_of(kind.total);
    let total = if kind.total >= KIND_MAX {
        format!("{} or more inconsistencies", time::number(n))
    } else {
        plural(n, "inconsistency", "inconsistencies")
    };
    let more = kind.total - kind.sentences.len();
    let sentences = kind
        .sentences
        .iter()
        .map(|sentence| view! { <li>{sentence.clone()}</li> });
    view! {
        <section class=CARD aria-labelledby=id.clone()>
            <div class=CARD_TITLE>
                <h2 id=id.clone()>{title(&kind.kind)}</h2>
                <span class="text-muted wrap-anywhere">{total}</span>
            </div>
            <ul class="*:border-t *:border-line *:px-4 *:py-1.5 *:text-sm *:wrap-anywhere">
                {sentences.collect_view()}
                {(more > 0).then(|| view! { <li class="text-muted wrap-anywhere">{format!("and {more} more")}</li> })}
            </ul>
        </section>
    }
    .into_any()
}

/// The description of a kind of inconsistency.
fn title(kind: &str) -> String {
    match kind {
        "queue" => "Queues of jobs".to_owned(),
        "lease" => "Leases".to_owned(),
        "failure" => "Failures".to_owned(),
        "dependency" | "depends" => "Dependencies".to_owned(),
        "body" | "lost-body" => "Payloads".to_owned(),
        "tag" | "tagged" | "tags" => "Tags".to_owned(),
        "history" => "Histories".to_owned(),
        "tag-count" => "Job counts by tag".to_owned(),
        "failure-count" => "Job counts by failure group".to_owned(),
        "count" => "Job counts by state".to_owned(),
        "failed" | "statistics" => "Statistics".to_owned(),
        "number" => "Job IDs of Jobq queues".to_owned(),
        "worker" => "Workers".to_owned(),
        other => other.to_owned(),
    }
}

fn repair_dialog(request: &PageRequest) -> AnyView {
    confirm_dialog(ConfirmDialog {
        id: "repair".to_owned(),
        button: "Repair…".to_owned(),
        danger: false,
        title: "Repair inconsistencies?".to_owned(),
        text: "Runs the check again and corrects the inconsistencies that it finds. No job is deleted.".to_owned(),
        action: Repair::PATH,
        fields: vec![("back", request.path.clone())],
        confirm_label: "Repair".to_owned(),
        cancel_label: "Close",
    })
}

fn curl(request: &PageRequest) -> AnyView {
    let address = shell_quote(&api(request, "/check"));
    curl_commands(vec![
        ("Check", format!("curl {address}")),
        (
            "Check and repair",
            format!(
                "curl {address} -d {}",
                shell_quote("{\"data\": {\"resolve\": true}}")
            ),
        ),
    ])
}
