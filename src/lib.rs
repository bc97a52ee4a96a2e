//! Switchyard: a job-queue server and its dashboard.
//!
//! The rooms, and which of the two builds they belong to: the server (feature `ssr`) has all of them, the browser half
//! (feature `hydrate`) only `islands` and `time`. `ARCHITECTURE.md` has the walls between them.

/// The files of the page: style sheet, script, WebAssembly, icon.
#[cfg(feature = "ssr")]
pub mod assets;
/// Authentication and authorization.
#[cfg(feature = "ssr")]
pub mod auth;
/// How much work a request may do.
#[cfg(feature = "ssr")]
pub mod budget;
/// The command line: one file per subcommand.
#[cfg(feature = "ssr")]
pub mod cli;
/// The settings, from flags, environment variables and files.
#[cfg(feature = "ssr")]
pub mod config;
/// Made-up queues and workers, to look at the dashboard with.
#[cfg(feature = "ssr")]
pub mod demo;
/// The queues and jobs behind every protocol and the dashboard.
#[cfg(feature = "ssr")]
pub mod engine;
/// The HTTP server: listener, limits, TLS, and the routes of all APIs.
#[cfg(feature = "ssr")]
pub mod http;
/// Components that run in the browser.
pub mod islands;
/// The fronts: one file per protocol.
#[cfg(feature = "ssr")]
pub mod protocol;
/// The query language of Jobq.
#[cfg(feature = "ssr")]
pub mod query;
/// Facts about a request that the listener records.
#[cfg(feature = "ssr")]
pub mod request;
/// The language of the search over all jobs.
#[cfg(feature = "ssr")]
pub mod search;
/// What is kept of secrets, and how they are compared.
#[cfg(feature = "ssr")]
pub mod secret;
/// The database: transactions, group commit, readers.
#[cfg(feature = "ssr")]
pub mod store;
/// Moments and spans as text, the same on the server and in the browser.
pub mod time;
/// The dashboard: pages, actions, and their HTTP.
#[cfg(feature = "ssr")]
pub mod ui;

/// Called by the page's script once the WebAssembly is there; the script then wakes all islands before anything
/// else can run. `<html data-live>` tells style sheets and tests so.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    leptos::mount::hydrate_islands();
    if let Some(html) = leptos::prelude::document().document_element() {
        html.set_attribute("data-live", "").ok();
    }
}
