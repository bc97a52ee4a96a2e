//! The shell of every page and the routes of `/ui`.

use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_meta::{MetaTags, Title, provide_meta_context};
use leptos_router::{
    ParamSegment, SsrMode, StaticSegment,
    components::{Route, Router, Routes},
};

mod about;
mod audit;
mod bulk;
mod chart;
mod check;
mod config;
mod confirm;
mod dead;
/// What a browser has chosen for its pages.
pub mod display;
mod failure;
mod failures;
mod frame;
mod histogram;
mod icons;
mod incident;
mod job;
mod jobq;
mod keys;
mod letter;
mod lmstfy;
mod login;
mod missing;
mod namespaces;
mod operations;
mod overview;
mod parts;
mod payload;
mod problems;
mod put;
mod queue;
mod queues;
mod recurring;
mod recurrings;
mod relay;
mod scheduled;
mod search;
mod statistics;
mod stats;
mod tables;
mod tags;
mod timeline;
mod tracked;
/// The request that a page answers, and how names stand in addresses.
pub mod visit;
mod worker;
mod workers;

use about::AboutPage;
use audit::AuditPage;
use check::CheckPage;
use config::ConfigPage;
use confirm::ConfirmPage;
use dead::DeadPage;
use failure::FailurePage;
use failures::FailuresPage;
use frame::Frame;
use job::JobPage;
use jobq::RecordsPage;
use jobq::job::RecordPage;
use lmstfy::job::LmstfyJobPage;
use login::LoginPage;
use missing::MissingPage;
use namespaces::{NamespacePage, NamespacesPage};
use operations::{OperationPage, OperationsPage};
use overview::OverviewPage;
use put::PutPage;
use queue::QueuePage;
use queues::QueuesPage;
use recurring::RecurringPage;
use recurrings::RecurringsPage;
use relay::job::{DeadRelayJobPage, RelayJobPage};
use scheduled::ScheduledPage;
use search::SearchPage;
use statistics::StatisticsPage;
use stats::StatsPage;
use tags::{TagPage, TagsPage};
use tracked::TrackedPage;
use worker::WorkerPage;
use workers::WorkersPage;

/// Leptos begins with the islands when the page is idle, and a page of which nothing is painted (a tab in the
/// background, a browser without a screen) may never be: then within a fifth of a second.
const SOON: &str = "if(window.requestIdleCallback){const idle=requestIdleCallback.bind(window);\
window.requestIdleCallback=f=>idle(f,{timeout:200})}";

/// The document around every page.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    let pkg = format!("/{}/{}", options.site_pkg_dir, options.output_name);
    let display = display::display();
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
                <link rel="icon" href="/ui/favicon.svg" type="image/svg+xml" />
                <link rel="stylesheet" href=format!("{pkg}.css") />
                <script nonce=use_nonce()>{SOON}</script>
                <HydrationScripts options islands=true />
                <MetaTags />
            </head>
            <body>
                <App />
            </body>
        </html>
    }
}

/// All pages. Each is complete as HTML (`SsrMode::Async`); only islands run in the browser.
/// Routes carry their full path: `<Router base>` would not prefix links.
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
            // It is written as it is.
            let title = parts::written(&title);
            if title.is_empty() { "Switchyard".to_owned() } else { format!("{title} · Switchyard") }
        } />
        <Router>
            <Frame>
                <Routes fallback=MissingPage>
                    <Route path=ui view=OverviewPage ssr=SsrMode::Async />
                    <Route path=(ui, queues) view=QueuesPage ssr=SsrMode::Async />
                    <Route path=(ui, queues, name) view=QueuePage ssr=SsrMode::Async />
                    <Route path=(ui, queues, name, StaticSegment("stats")) view=StatsPage ssr=SsrMode::Async />
                    <Route path=(ui, queues, name, ParamSegment("state")) view=QueuePage ssr=SsrMode::Async />
                    <Route path=(ui, jobs) view=SearchPage ssr=SsrMode::Async />
                    <Route path=(ui, jobs, name) view=JobPage ssr=SsrMode::Async />
                    <Route path=lmstfy view=QueuePage ssr=SsrMode::Async />
                    <Route path=(lmstfy, StaticSegment("stats")) view=StatsPage ssr=SsrMode::Async />
                    <Route path=(lmstfy, ParamSegment("state")) view=QueuePage ssr=SsrMode::Async />
                    <Route path=(lmstfy, StaticSegment("job"), ParamSegment("id")) view=LmstfyJobPage ssr=SsrMode::Async />
                    <Route path=relay view=QueuePage ssr=SsrMode::Async />
                    <Route path=(relay, StaticSegment("stats")) view=StatsPage ssr=SsrMode::Async />
                    <Route path=(relay, ParamSegment("state")) view=QueuePage ssr=SsrMode::Async />
                    <Route path=(relay, StaticSegment("job"), ParamSegment("id")) view=RelayJobPage ssr=SsrMode::Async />
                    <Route path=(relay, StaticSegment("dead"), ParamSegment("letter")) view=DeadRelayJobPage ssr=SsrMode::Async />
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
                    <Route path=(ui, recurring) view=RecurringsPage ssr=SsrMode::Async />
                    <Route path=(ui, recurring, name) view=RecurringPage ssr=SsrMode::Async />
                    <Route path=(ui, tags) view=TagsPage ssr=SsrMode::Async />
                    <Route path=(ui, tags, name) view=TagPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("scheduled")) view=ScheduledPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("put")) view=PutPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("tracked")) view=TrackedPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("stats")) view=StatisticsPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("check")) view=CheckPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("about")) view=AboutPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("audit")) view=AuditPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("login")) view=LoginPage ssr=SsrMode::Async />
                    <Route path=(ui, StaticSegment("config")) view=ConfigPage ssr=SsrMode::Async />
                </Routes>
            </Frame>
        </Router>
    }
}
