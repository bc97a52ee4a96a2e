//! Switchyard: a job-queue server and its dashboard.
//!
//! The rooms, and which of the two builds they belong to. `ARCHITECTURE.md` has the walls between them.

/// The dashboard: shell, routes, pages and islands (server and browser).
pub mod app;
/// The files of the page: style sheet, script, WebAssembly, icon.
#[cfg(feature = "ssr")]
pub mod assets;
/// The HTTP server: router, limits, security headers.
#[cfg(feature = "ssr")]
pub mod server;

/// Called by the page's script once the WebAssembly is there. The islands then wake one by one.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    leptos::mount::hydrate_islands();
}
