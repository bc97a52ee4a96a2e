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
use crate::ui::components::styles::FLASH;
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

/// The interval of the link that refreshes a page regularly.
const AUTO_REFRESH_S: u32 = 10;

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
    ("/ui/operations", "operations", "Bulk operations"),
    ("/ui/namespaces", "namespaces", "Namespaces"),
    ("/ui/stats", "stats", "Statistics"),
    ("/ui/config", "config", "Config"),
    ("/ui/check", "check", "Check"),
    ("/ui/audit", "audit", "Audit"),
    ("/ui/about", "about", "About"),
];

/// The grid of the page: the header, the rail at the left and the content; on phones, the rail is a bar at the bottom.
pub const BODY: &str = "grid min-h-dvh grid-cols-[208px_minmax(0,1fr)] grid-rows-[48px_1fr] \
    max-lg:grid-cols-[80px_minmax(0,1fr)] max-md:grid-cols-[minmax(0,1fr)] max-md:grid-rows-[auto_1fr_auto]";

const HEADER: &str = "sticky top-0 z-2 col-span-full row-start-1 flex items-center justify-between gap-3 border-b border-line \
    bg-card px-4 max-md:min-h-12 max-md:gap-1 max-md:pr-1 max-md:pl-3 max-md:has-[>p]:flex-wrap max-md:has-[>p]:pb-1.5";

const RAIL: &str = "sticky top-12 col-start-1 row-start-2 flex flex-col gap-0.5 self-start px-2 py-3 max-lg:px-1 max-md:top-auto \
    max-md:bottom-0 max-md:z-2 max-md:row-start-3 max-md:flex-row max-md:justify-around max-md:gap-0 max-md:self-stretch \
    max-md:overflow-x-auto max-md:border-t max-md:border-line max-md:bg-card max-md:pt-1 \
    max-md:pb-[max(4px,env(safe-area-inset-bottom))]";

/// A popover on phones; always visible on wide screens. Without popover support, the links are shown beside the button,
/// which has no effect.
const MORE: &str = "static mt-2 flex w-auto flex-col gap-0.5 overflow-visible border-t border-line bg-transparent pt-2.5 text-ink \
    max-md:[&:not(:popover-open)]:hidden max-md:[&:popover-open]:fixed max-md:inset-[auto_8px_calc(64px+env(safe-area-inset-bottom))_auto] \
    max-md:m-0 max-md:min-w-46 max-md:rounded-md max-md:border max-md:bg-card max-md:p-1.5 max-md:[box-shadow:var(--shadow-dialog)]";

const MAIN: &str = "col-start-2 row-start-2 flex w-full max-w-360 flex-col gap-4 px-6 pt-5 pb-10 focus-visible:outline-none \
    max-lg:pt-4 max-lg:pr-4 max-lg:pb-8 max-lg:pl-2 max-md:col-start-1 max-md:px-3 max-md:pb-6";

/// On phones, the name is below the top bar, where all of it fits.
const ENVIRONMENT: &str = "mr-auto min-w-0 truncate rounded-sm border px-2 py-px text-xs leading-5 font-semibold max-md:order-1 \
    max-md:mr-2 max-md:flex-[1_0_100%] max-md:text-center max-md:whitespace-normal max-md:wrap-anywhere";

/// The number of jobs beside a link.
const BADGE: &str = "ml-auto text-xs font-semibold max-lg:absolute max-lg:top-0.5 max-lg:left-[calc(50%+12px)] \
    max-md:in-[#more]:static";

/// The name and the role of the user.
const IDENTITY: &str = "mt-2 border-t border-line px-2.5 pt-2.5 wrap-anywhere max-md:pb-2 md:max-lg:px-0.5 md:max-lg:text-xs \
    [&_.btn]:mt-1.5";

/// The frame around a page, whose content is `children`.
#[component]
pub fn Frame(children: Children) -> impl IntoView {
    let request = page_request();
    if request.path == urls::LOGIN {
        return sign_in_frame(&request, children);
    }
    let more: Vec<Page> = (SECONDARY_PAGES.iter().copied())
        .filter(|(address, ..)| request.may(role_to_read(address)))
        .collect();
    view! {
        <a class="sr-only top-2 left-2 z-3 rounded-md bg-accent text-on-accent focus:not-sr-only focus:fixed focus:px-3 focus:py-2" href="#main">"Skip to content"</a>
        {sprite()}
        <header class=HEADER>
            {brand()}
            {environment(&request)}
            <div class="flex items-center gap-1 max-md:[&_.btn]:px-2 max-xs:[&_.btn]:min-w-7 max-xs:[&_.btn]:justify-center">
                {refresh_links(&request)}
                {keyboard::find_button(SEARCH)}
                <Live now=request.now seq=request.seq />
                {display_panel::button()}
            </div>
        </header>
        <nav id="rail" class=RAIL aria-label="Main" data-region="">
            {PAGES.map(|page| rail_link(&request, page)).collect_view()}
            // A popover, which opens without JavaScript. Wide screens show its content in place.
            <button
                type="button"
                class="rail-link md:hidden"
                popovertarget="more"
                aria-current=more.iter().any(|(address, ..)| is_within(&request, address)).then_some("true")
            >
                {icon("more")} <span>"More"</span> {badge(|counts| counts.dead, " dead", "text-dead")}
            </button>
            <div id="more" class=MORE popover="auto">
                // On phones, where the bar has no room for it.
                <a href=SEARCH class="rail-link md:hidden">{icon("search")} "Jobs"</a>
                {more.into_iter().map(|page| rail_link(&request, page)).collect_view()}
                {identity(&request)}
            </div>
        </nav>
        <main id="main" class=MAIN tabindex="-1" data-region="" data-seq=request.seq.to_string()>
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

/// Links that refresh the page once or regularly, without JavaScript.
fn refresh_links(request: &PageRequest) -> AnyView {
    let (interval_s, word) = match request.auto_refresh_s() {
        Some(seconds) => (None, format!("Stop refreshing every {seconds} s")),
        None => (Some(AUTO_REFRESH_S), format!("Every {AUTO_REFRESH_S} s")),
    };
    let address = request.with_auto_refresh(interval_s);
    view! { <noscript><a class="btn" href=request.here()>"Refresh"</a> <a class="btn" href=address>{word}</a></noscript> }
        .into_any()
}

fn brand() -> AnyView {
    view! {
        <a class="flex min-h-8 items-center gap-2 text-lg font-semibold text-ink hover:no-underline" href="/ui" aria-label="Switchyard, overview">
            <svg
                class="size-6 fill-none stroke-brand stroke-3 [stroke-linecap:round] [stroke-linejoin:round]"
                viewBox="0 0 32 32"
                aria-hidden="true">
                <path d="M5 22h9L20 10h7M5 10h9l2 4M18 18l2 4h7" />
            </svg>
            <span class="max-xs:hidden">"Switchyard"</span>
        </a>
    }
    .into_any()
}

/// The name of the server.
fn environment(request: &PageRequest) -> AnyView {
    let name = request.environment.clone();
    let is_production = ["production", "prod"].contains(&name.to_lowercase().as_str());
    let class = if is_production {
        "border-failed bg-failed text-card"
    } else {
        "border-control text-muted"
    };
    (!name.is_empty())
        .then(|| view! { <p class=format!("{ENVIRONMENT} {class}")><span class="sr-only">"Environment: "</span> {name}</p> })
        .into_any()
}

/// The user, and the link or button to sign in or out.
fn identity(request: &PageRequest) -> AnyView {
    let role = request.role.as_str();
    let name = request.user.clone();
    let who = view! { <p><span class="name">{name}</span> <span class="text-muted wrap-anywhere">" · " {role}</span></p> };
    match request.method {
        AuthMethod::Open if request.may(Role::Admin) => ().into_any(),
        AuthMethod::Open | AuthMethod::Key => view! { <div class=IDENTITY>{who}</div> }.into_any(),
        AuthMethod::Session => view! {
            <div class=IDENTITY>
                {who}
                <form method="post" action="/ui/logout"><button type="submit" class="btn">"Sign out"</button></form>
            </div>
        }
        .into_any(),
        AuthMethod::Guest | AuthMethod::Unauthenticated => {
            let mut address = format!("{}?next=", urls::LOGIN);
            encode(&request.here(), &mut address);
            view! { <div class=IDENTITY>{who} <a class="btn" href=address>"Sign in"</a></div> }
                .into_any()
        }
    }
}

/// The frame of the sign-in page, without navigation and counts.
fn sign_in_frame(request: &PageRequest, children: Children) -> AnyView {
    view! {
        {sprite()}
        <header class=HEADER>{brand()} {environment(request)}</header>
        <main id="main" class=MAIN tabindex="-1" data-region="">{children()}</main>
    }
    .into_any()
}

/// Whether the current page is this page or below it in the hierarchy.
fn is_within(request: &PageRequest, address: &str) -> bool {
    request.path == address
        || ![SEARCH, "/ui"].contains(&address) && request.path.starts_with(&format!("{address}/"))
        || address == "/ui/workers" && request.path == urls::REDIS_CLIENTS
        || address == "/ui/config" && request.path == urls::ALERTS
        || address == "/ui/about" && (request.path == "/ui/api" || request.path.starts_with("/ui/api/"))
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
    // On phones, the bar has no room for it.
    let class = if address == SEARCH {
        "rail-link max-md:hidden"
    } else {
        "rail-link"
    };
    view! {
        <a class=class href=address aria-current=current data-shortcut=keyboard::shortcut_of(address)>
            {icon(shape)} <span>{name}</span>
            {match shape {
                "failures" => badge(|counts| counts.failed, " failed", "text-failed"),
                "dead" => badge(|counts| counts.dead, " dead", "text-dead"),
                _ => ().into_any(),
            }}
        </a>
    }
    .into_any()
}

/// The number of jobs that need attention, beside a link.
fn badge(count: fn(&Counts) -> i64, what: &'static str, class: &'static str) -> AnyView {
    Suspend::new(async move {
        // On error, the badge is omitted; the page itself shows the error.
        let n = counts().await.map_or(0, |counts| count(&counts));
        (n > 0).then(|| {
            view! {
                <span class=format!("{BADGE} {class}")>
                    {short(n)} <span class="sr-only">{what}</span>
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
            {fields} <button type="submit" class="btn" data-undo="">"Undo"</button>
        </form>
    }
    .into_any()
}

/// The message of the last action, and how long ago that was. A refresh keeps it.
fn flash(request: &PageRequest) -> AnyView {
    let flash = request.flash.clone();
    let class = match &flash {
        Some(flash) if flash.done => format!("{FLASH} text-complete"),
        Some(_) => format!("{FLASH} text-failed"),
        // No gap without a message.
        None => "-mb-4".to_owned(),
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
                    <span class="text-muted wrap-anywhere">{ago(request.now, request.now)}</span>
                }
            })}
        </div>
    }
    .into_any()
}
