//! The frame of every page: navigation, live indicator, display settings, flash.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::auth::{AuthMethod, Role};
use crate::islands::{Keys, Live};
use crate::ui::access::role_to_read;
use crate::ui::actions::operations::UndoOperation;
use crate::ui::components::forms::hidden;
use crate::ui::components::histogram::short;
use crate::ui::components::icons::{icon, sprite};
use crate::ui::components::time::ago;
use crate::ui::components::{display_panel, keyboard};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::state::Counts;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::urls;
use crate::ui::urls::encoding::encode;

/// The counts of the whole server.
#[server(name = LoadCounts, endpoint = "glance")]
pub async fn counts() -> Result<Counts, PageError> {
    read(Role::Viewer, async |context| context.feed.counts().await).await
}

/// The address, icon and name of a page.
pub type Page = (&'static str, &'static str, &'static str);

/// The search over all jobs. On a phone, its link is in the top bar.
const SEARCH: &str = "/ui/jobs";

/// The login page.
const LOGIN: &str = "/ui/login";

/// The main pages.
const PAGES: [Page; 5] = [
    ("/ui", "overview", "Overview"),
    ("/ui/queues", "queues", "Queues"),
    (SEARCH, "search", "Jobs"),
    ("/ui/failures", "failures", "Failures"),
    ("/ui/workers", "workers", "Workers"),
];

/// Further pages. On a phone, a button opens their list.
const SECONDARY_PAGES: &[Page] = &[
    ("/ui/dead", "dead", "Dead letters"),
    ("/ui/scheduled", "scheduled", "Scheduled"),
    ("/ui/recurring", "recurring", "Recurring"),
    ("/ui/tracked", "tracked", "Tracked"),
    ("/ui/tags", "tags", "Tags"),
    ("/ui/operations", "operations", "Operations"),
    ("/ui/namespaces", "namespaces", "Namespaces"),
    ("/ui/stats", "stats", "Statistics"),
    ("/ui/config", "config", "Config"),
    ("/ui/check", "check", "Check"),
    ("/ui/audit", "audit", "Audit"),
    ("/ui/about", "about", "About"),
];

/// The frame around the page that `children` is.
#[component]
pub fn Frame(children: Children) -> impl IntoView {
    let request = page_request();
    if request.path == LOGIN {
        return login_frame(&request, children);
    }
    let more: Vec<Page> = (SECONDARY_PAGES.iter().copied())
        .filter(|(address, ..)| request.may(role_to_read(address)))
        .collect();
    view! {
        <a class="skip" href="#main">"Skip to content"</a>
        {sprite()}
        <header class="top">
            {brand()}
            {environment(&request)}
            <div class="tools">
                <noscript><a class="button" href=request.here()>"Refresh"</a></noscript>
                {keyboard::find_button(SEARCH)}
                <Live now=request.now seq=request.seq />
                {display_panel::button()}
            </div>
        </header>
        <nav class="rail" id="rail" aria-label="Main" data-region="">
            {PAGES.map(|page| rail_link(&request, page)).collect_view()}
            // A popover, which opens without JavaScript. Wide screens show its content in place.
            <button
                type="button"
                class="rail-more"
                popovertarget="more"
                aria-current=more.iter().any(|(address, ..)| is_within(&request, address)).then_some("true")
            >
                {icon("more")} <span>"More"</span> {badge(|counts| counts.dead, " dead jobs", "s-dead")}
            </button>
            <div id="more" class="rail-rest" popover="auto">
                // On phones, where the bar has no room for it.
                <a href=SEARCH class="on-phones">{icon("search")} "Jobs"</a>
                {more.into_iter().map(|page| rail_link(&request, page)).collect_view()}
                {identity(&request)}
            </div>
        </nav>
        <main id="main" tabindex="-1" data-region="" data-seq=request.seq.to_string()>
            {flash(&request)}
            {children()}
        </main>
        {display_panel::panel(&request)}
        {keyboard::help(&request, &[&PAGES[..], SECONDARY_PAGES].concat())}
        {keyboard::palette()}
        <Keys />
    }
    .into_any()
}

fn brand() -> AnyView {
    view! {
        <a class="brand" href="/ui" aria-label="Switchyard, overview">
            <svg viewBox="0 0 32 32" aria-hidden="true">
                <path d="M5 22h9L20 10h7M5 10h9l2 4M18 18l2 4h7" />
            </svg>
            <span>"Switchyard"</span>
        </a>
    }
    .into_any()
}

/// The name of the server.
fn environment(request: &PageRequest) -> AnyView {
    let name = request.environment.clone();
    let is_production = ["production", "prod"].contains(&name.to_lowercase().as_str());
    let class = if is_production {
        "environment production"
    } else {
        "environment"
    };
    (!name.is_empty())
        .then(|| view! { <p class=class><span class="unseen">"Environment: "</span> {name}</p> })
        .into_any()
}

/// The user, and the link or button to sign in or out.
fn identity(request: &PageRequest) -> AnyView {
    let role = request.role.as_str();
    let name = request.user.clone();
    let who =
        view! { <p><span class="name">{name}</span> <span class="aside">" · " {role}</span></p> };
    match request.method {
        AuthMethod::Open if request.may(Role::Admin) => ().into_any(),
        AuthMethod::Open | AuthMethod::Key => view! { <div class="identity">{who}</div> }.into_any(),
        AuthMethod::Session => view! {
            <div class="identity">
                {who}
                <form method="post" action="/ui/logout"><button type="submit" class="button">"Sign out"</button></form>
            </div>
        }
        .into_any(),
        AuthMethod::Guest | AuthMethod::Unauthenticated => {
            let mut address = format!("{LOGIN}?next=");
            encode(&request.here(), &mut address);
            view! { <div class="identity">{who} <a class="button" href=address>"Sign in"</a></div> }
                .into_any()
        }
    }
}

/// The frame of the login page, without navigation and counts.
fn login_frame(request: &PageRequest, children: Children) -> AnyView {
    view! {
        {sprite()}
        <header class="top">{brand()} {environment(request)}</header>
        <main id="main" tabindex="-1" data-region="">{children()}</main>
    }
    .into_any()
}

/// Whether the current page is this page or below it in the hierarchy.
fn is_within(request: &PageRequest, address: &str) -> bool {
    request.path == address
        || ![SEARCH, "/ui"].contains(&address) && request.path.starts_with(&format!("{address}/"))
        || address == "/ui/workers" && request.path == urls::REDIS_CLIENTS
        // Job pages belong to Queues.
        || address == "/ui/queues"
            && ["/ui/jobs/", "/ui/lmstfy/", "/ui/relay/", "/ui/jobq/"].iter().any(|below| request.path.starts_with(below))
}

fn rail_link(request: &PageRequest, (address, shape, name): Page) -> AnyView {
    let current = if request.path == address {
        Some("page")
    } else {
        is_within(request, address).then_some("true")
    };
    view! {
        <a href=address aria-current=current data-shortcut=keyboard::shortcut_of(address)>
            {icon(shape)} <span>{name}</span>
            {match shape {
                "failures" => badge(|counts| counts.failed, " failed jobs", "s-failed"),
                "dead" => badge(|counts| counts.dead, " dead jobs", "s-dead"),
                _ => ().into_any(),
            }}
        </a>
    }
    .into_any()
}

/// The number of jobs or queues that need attention, beside a link.
fn badge(count: fn(&Counts) -> i64, what: &'static str, class: &'static str) -> AnyView {
    Suspend::new(async move {
        // On error, the badge is omitted; the page itself shows the error.
        let n = counts().await.map_or(0, |counts| count(&counts));
        (n > 0).then(|| {
            view! {
                <span class=format!("badge {class}")>
                    {short(n)} <span class="unseen">{what}</span>
                </span>
            }
        })
    })
    .into_any()
}

/// The button that undoes the last action: an operation with this ID.
fn undo_button(id: i64, request: &PageRequest) -> AnyView {
    let fields = hidden(vec![("id", id.to_string()), ("back", request.here())]);
    view! {
        <form method="post" action=UndoOperation::PATH>
            {fields} <button type="submit" class="button" data-undo="">"Undo"</button>
        </form>
    }
    .into_any()
}

/// The message of the last action, and how long ago that was. A refresh keeps it.
fn flash(request: &PageRequest) -> AnyView {
    let flash = request.flash.clone();
    let class = match &flash {
        Some(flash) if flash.done => "flash done",
        Some(_) => "flash refused",
        None => "flash",
    };
    let shape = if flash.as_ref().is_some_and(|flash| flash.done) {
        "complete"
    } else {
        "failed"
    };
    view! {
        <div id="flash" class=class role="status" data-keep="">
            {flash.map(|flash| {
                let undo = flash.undo.map(|id| undo_button(id, request));
                view! {
                    {icon(shape)} <span>{flash.text}</span> {undo}
                    <span class="aside">{ago(request.now, request.now)}</span>
                }
            })}
        </div>
    }
    .into_any()
}
