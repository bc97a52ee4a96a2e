//! The dashboard: pages, the actions of their forms, and the HTTP around them.
//!
//! * [`pages`]: one file or folder per page: the component, its view model (`model.rs`), and the server functions that load
//!   it from the engine (`load.rs`)
//! * [`actions`]: what forms change, one file per topic
//! * [`components`]: what several pages show; [`model`] and [`present`]: their view models, and how these are made from
//!   engine types
//! * [`http`]: router, middleware, live feed, exports, downloads
//!
//! The paths of pages and forms are fixed, so that a form on a page from before an upgrade still works.

/// The minimum role for each path.
pub mod access;
/// What forms change.
pub mod actions;
/// What several pages show.
pub mod components;
/// What server functions know of their request.
pub mod context;
/// The cookies.
pub mod cookies;
/// Display settings of a browser.
pub mod display;
/// Why a page cannot be shown.
pub mod error;
/// Router, middleware, live feed, exports, downloads.
pub mod http;
/// View models that several pages show.
pub mod model;
/// The meaning of the server's options.
pub mod options;
/// The request that a page answers.
pub mod page_request;
/// The pages.
pub mod pages;
/// From engine types to view models.
pub mod present;
/// The addresses of pages.
pub mod urls;
