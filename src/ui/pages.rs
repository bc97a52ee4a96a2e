//! The shell of every page and the routes of `/ui`.

pub mod about;
pub mod alerts;
pub mod api;
pub mod audit;
pub mod check;
pub mod config;
pub mod confirm;
pub mod daily_stats;
pub mod dead_letters;
pub mod edit;
pub mod failure;
pub mod failures;
pub mod job;
pub mod lmstfy_job;
pub mod login;
pub mod namespaces;
pub mod operations;
pub mod overview;
pub mod put;
pub mod queue;
pub mod queues;
pub mod record;
pub mod records;
pub mod recurring;
pub mod recurring_job;
pub mod redis_clients;
pub mod relay_job;
pub mod scheduled;
pub mod search;
pub mod statistics;
pub mod tags;
pub mod tracked;
pub mod worker;
pub mod workers;

use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_meta::{MetaTags, Title, provide_meta_context};
use leptos_router::components::{Route, Router, Routes};
use leptos_router::{ParamSegment, SsrMode, StaticSegment};

use crate::ui::components::commands;
use crate::ui::components::error::MissingPage;
use crate::ui::components::frame::{BODY, Frame};
use crate::ui::display;
use crate::ui::page_request::page_request;
use crate::ui::pages::about::AboutPage;
use crate::ui::pages::alerts::AlertsPage;
use crate::ui::pages::api::{ApiPage, ApisPage};
use crate::ui::pages::audit::AuditPage;
use crate::ui::pages::check::CheckPage;
use crate::ui::pages::config::ConfigPage;
use crate::ui::pages::confirm::ConfirmPage;
use crate::ui::pages::daily_stats::DailyStatsPage;
use crate::ui::pages::dead_letters::DeadPage;
use crate::ui::pages::edit::EditPage;
use crate::ui::pages::failure::FailurePage;
use crate::ui::pages::failures::FailuresPage;
use crate::ui::pages::job::JobPage;
use crate::ui::pages::lmstfy_job::LmstfyJobPage;
use crate::ui::pages::login::LoginPage;
use crate::ui::pages::namespaces::{NamespacePage, NamespacesPage};
use crate::ui::pages::operations::{OperationPage, OperationsPage};
use crate::ui::pages::overview::OverviewPage;
use crate::ui::pages::put::PutPage;
use crate::ui::pages::queue::QueuePage;
use crate::ui::pages::queues::QueuesPage;
use crate::ui::pages::record::RecordPage;
use crate::ui::pages::records::RecordsPage;
use crate::ui::pages::recurring::RecurringJobsPage;
use crate::ui::pages::recurring_job::RecurringJobPage;
use crate::ui::pages::redis_clients::RedisClientsPage;
use crate::ui::pages::relay_job::{DeadRelayJobPage, RelayJobPage};
use crate::ui::pages::scheduled::ScheduledPage;
use crate::ui::pages::search::SearchPage;
use crate::ui::pages::statistics::StatisticsPage;
use crate::ui::pages::tags::{TagPage, TagsPage};
use crate::ui::pages::tracked::TrackedPage;
use crate::ui::pages::worker::WorkerPage;
use crate::ui::pages::workers::WorkersPage;

/// Leptos starts the islands when the browser is idle. A page that is not painted (a background tab, a headless
/// browser) may never be idle, so the islands start after at most 200 ms.
const IDLE_CALLBACK_SCRIPT: &str = "if(window.requestIdleCallback){const idle=requestIdleCallback.bind(window);\
window.requestIdleCallback=f=>idle(f,{timeout:200})}";

/// The document around every page.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    let pkg = format!("/{}/{}", options.site_pkg_dir, options.output_name);
    let display = display::display();
    let request = page_request();
    let auto = request.auto_refresh_s();
    let base_path = request.base_path;
    view! {
        <!DOCTYPE html>
        <html
            lang="en"
            data-theme=display.data_theme()
            data-clock=display.data_clock()
            data-density=display.data_density()
            data-keys=display.data_keys()
        >
            <head>
                <meta charset="utf-8" />
                <meta name="viewport" content="width=device-width, initial-scale=1" />
                <meta name="color-scheme" content="light dark" />
                // With JavaScript, pages are live.
                {auto.map(|seconds| view! { <noscript><meta http-equiv="refresh" content=seconds.to_string() /></noscript> })}
                <link rel="icon" href="/ui/favicon.svg" type="image/svg+xml" />
                <link rel="stylesheet" href=format!("{pkg}.css") />
                <script nonce=use_nonce()>{IDLE_CALLBACK_SCRIPT}</script>
                <HydrationScripts options islands=true root=base_path />
                <MetaTags />
            </head>
            <body class=BODY>
                <App />
            </body>
        </html>
    }
}

/// The routes of all pages. Each page is complete as HTML (`SsrMode::Async`); only islands run in the browser. Routes
/// contain the full path, because `<Router base>` does not prefix links.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    let (ui, name) = (StaticSegment("ui"), ParamSegment("name"));
    let (queues, jobs) = (StaticSegment("queues"), StaticSegment("jobs"));
    let (failures, workers) = (StaticSegment("failures"), StaticSegment("workers"));
    let (recurring, tags) = (StaticSegment("recurring"), StaticSegment("tags"));
    let namespaces = StaticSegment("namespaces");
    let operations = StaticSegment("operations");
    let lmstfy = (ui, StaticSegment("lmstfy"), ParamSegment("namespace"), name);
    let relay = (ui, StaticSegment("relay"), name);
    let jobq = (ui, StaticSegment("jobq"), name);
    view! {
        <Title formatter=|title: String| {
            // Leptos does not escape titles.
            let title = commands::escape_textarea(&title);
            if title.is_empty() { "Switchyard".to_owned() } else { format!("{title} · Switchyard") }
        } />
        <Router>
            <Frame>
                <Routes fallback=MissingPage>
                    <Route path=ui view=OverviewPage ssr=SsrMode::Async />
                    <Route path=(ui, queues) view=QueuesPage ssr=SsrMode::Async />
                    <Route path=(ui, queues, name) view=QueuePage ssr=SsrMode::Async />
                    <Route path=(ui, queues, name, StaticSegment("stats")) view=DailyStatsPage ssr=SsrMode::Async />
                    <Route path=(ui, queues, name, ParamSegment("state")) view=QueuePage ssr=SsrMode::Async />
                    <Route path=(ui, jobs) view=SearchPage ssr=SsrMode::Async />
                    <Route path=(ui, jobs, name) view=JobPage ssr=SsrMode::Async />
                    <Route path=lmstfy view=QueuePage ssr=SsrMode::Async />
                    <Route path=(lmstfy, StaticSegment("stats")) view=DailyStatsPage ssr=SsrMode::Async />
                    <Route path=(lmstfy, ParamSegment("state")) view=QueuePage ssr=SsrMode::Async />
                    <Route path=(lmstfy, StaticSegment("job"), ParamSegment("id")) view=LmstfyJobPage ssr=SsrMode::Async />
                    <Route path=relay view=QueuePage ssr=SsrMode::Async />
                    <Route path=(relay, StaticSegment("stats")) view=DailyStatsPage ssr=SsrMode::Async />
                    <Route path=(relay, ParamSegment("state")) view=QueuePage ssr=SsrMode::Async />
                    <Route path=(relay, StaticSegment("job"), ParamSegment("id")) view=RelayJobPage ssr=SsrMode::Async />
                    <Route path=(relay, StaticSegment("dead"), ParamSegment("number")) view=DeadRelayJobPage ssr=SsrMode::Async />
                    <Route path=jobq view=RecordsPage ssr=SsrMode::Async />
                    <Route path=(jobq, StaticSegment("job"), ParamSegment("id")) view=RecordPage ssr=SsrMode::Async />
                    <Route path=(ui, namespaces) view=NamespacesPage ssr=SsrMode::Async />
                    <Route path=(ui, namespaces, name) view=NamespacePage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("confirm")) view=ConfirmPage ssr=SsrMode::Async />
                    <Route path=(ui, operations) view=OperationsPage ssr=SsrMode::Async />
                    <Route path=(ui, operations, name) view=OperationPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("dead")) view=DeadPage ssr=SsrMode::Async />
                    <Route path=(ui, failures) view=FailuresPage ssr=SsrMode::Async />
                    <Route path=(ui, failures, name) view=FailurePage ssr=SsrMode::Async />
                    <Route path=(ui, workers) view=WorkersPage ssr=SsrMode::Async />
                    <Route path=(ui, workers, name) view=WorkerPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("redis")) view=RedisClientsPage ssr=SsrMode::Async />
                    <Route path=(ui, recurring) view=RecurringJobsPage ssr=SsrMode::Async />
                    <Route path=(ui, recurring, name) view=RecurringJobPage ssr=SsrMode::Async />
                    <Route path=(ui, tags) view=TagsPage ssr=SsrMode::Async />
                    <Route path=(ui, tags, name) view=TagPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("scheduled")) view=ScheduledPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("put")) view=PutPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("edit")) view=EditPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("tracked")) view=TrackedPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("stats")) view=StatisticsPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("check")) view=CheckPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("about")) view=AboutPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("api")) view=ApisPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("api"), name) view=ApiPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("alerts")) view=AlertsPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("audit")) view=AuditPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("login")) view=LoginPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("config")) view=ConfigPage ssr=SsrMode::Async />
                </Routes>
            </Frame>
        </Router>
    }
}
