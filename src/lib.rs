//! Switchyard: a job queue server and its dashboard.
//!
//! The server (feature `ssr`) has all modules; the browser code (feature `hydrate`) has only `islands` and `time`.
//! `ARCHITECTURE.md` describes the modules and the allowed imports between them.

/// Alerts: calls webhooks when problems begin and end.
#[cfg(feature = "ssr")]
pub mod alerts;
/// The static files of the dashboard: style sheet, script, WebAssembly, icon.
#[cfg(feature = "ssr")]
pub mod assets;
/// Authentication and authorization.
#[cfg(feature = "ssr")]
pub mod auth;
/// Measures a server, for `switchyard bench`.
#[cfg(feature = "ssr")]
pub mod bench;
/// Runs long work on the request threads without delaying other requests.
#[cfg(feature = "ssr")]
pub mod blocking;
/// Limits on the work of a request.
#[cfg(feature = "ssr")]
pub mod budget;
/// The command line: one file per subcommand.
#[cfg(feature = "ssr")]
pub mod cli;
/// HTTP clients for the command line, for webhooks, and for the export of traces.
#[cfg(feature = "ssr")]
pub mod client;
/// The settings, from flags, environment variables and files.
#[cfg(feature = "ssr")]
pub mod config;
/// Generated traffic for `switchyard dev`.
#[cfg(feature = "ssr")]
pub mod demo;
/// The job store behind every protocol and the dashboard.
#[cfg(feature = "ssr")]
pub mod engine;
/// The HTTP server: listener, limits, TLS, and the routes of all APIs.
#[cfg(feature = "ssr")]
pub mod http;
/// Imports from Redis and from Relay's table.
#[cfg(feature = "ssr")]
pub mod import;
/// Components that run in the browser.
pub mod islands;
/// Limits on the memory of all requests together.
#[cfg(feature = "ssr")]
pub mod memory;
/// Counters, gauges and histograms, and Prometheus' text formats.
#[cfg(feature = "ssr")]
pub mod metrics;
/// The descriptions of the APIs in OpenAPI.
#[cfg(feature = "ssr")]
pub mod openapi;
/// The protocols, one module each.
#[cfg(feature = "ssr")]
pub mod protocol;
/// The query language of Jobq.
#[cfg(feature = "ssr")]
pub mod query;
/// The clients that are connected over the Redis protocol.
#[cfg(feature = "ssr")]
pub mod redis_clients;
/// Facts about a request that the listener records.
#[cfg(feature = "ssr")]
pub mod request;
/// The search language of the dashboard.
#[cfg(feature = "ssr")]
pub mod search;
/// Secrets: hashes, comparison, files.
#[cfg(feature = "ssr")]
pub mod secret;
/// The database: transactions, group commit, readers.
#[cfg(feature = "ssr")]
pub mod store;
/// Times and durations as text, for server and browser.
pub mod time;
/// Traces of requests, exported with OpenTelemetry's protocol.
#[cfg(feature = "ssr")]
pub mod traces;
/// The dashboard: pages, actions, and their HTTP.
#[cfg(feature = "ssr")]
pub mod ui;

/// Hydrates all islands; the page's script calls it when the WebAssembly is loaded. Style sheets and tests check
/// `<html data-live>` to see that hydration is complete.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    leptos::mount::hydrate_islands();
    if let Some(html) = leptos::prelude::document().document_element() {
        html.set_attribute("data-live", "").ok();
    }
}
